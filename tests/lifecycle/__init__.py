"""The pure core: no clock, no store, no trio."""
