"""The browser SDK: what Python generates for it, and its conversation with a served app."""
