"""Baselines: matching, the suite, the report, the commands, and the matrix of the example."""
