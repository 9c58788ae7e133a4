"""Figures: commands that measure, never tests that judge. Source: docs/performance.md

`python -m tests.benchmarks` prints every table, `python -m tests.benchmarks loop` one of them.
Each module has `measure(size)`, with the sizes FULL and TINY. Machines differ and are shared:
compare rows of one run, not runs.
"""
