"""Figures: commands that measure, never tests that judge.

`python -m tests.benchmarks` prints every table, `python -m tests.benchmarks loop` one of them.
Machines differ and are shared: compare rows of one run, not runs.
"""
