"""Event logs of every kind that the runtime wrote, and the states they add up to."""
