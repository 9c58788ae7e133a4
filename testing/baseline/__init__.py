"""Baselines: conversations with expectations, for scripted and for real models.

Source: docs/baselines.md.
"""

from rungent.testing.baseline.cases import BaselineCase as BaselineCase
from rungent.testing.baseline.cases import BaselineContext as BaselineContext
from rungent.testing.baseline.cases import BaselineEnvironment as BaselineEnvironment
from rungent.testing.baseline.cases import BaselineResult as BaselineResult
from rungent.testing.baseline.cases import Measures as Measures
from rungent.testing.baseline.report import BaselineReport as BaselineReport
from rungent.testing.baseline.suite import BaselineSuite as BaselineSuite
from rungent.testing.baseline.suite import run_baseline as run_baseline

__all__ = [
    "BaselineCase",
    "BaselineContext",
    "BaselineEnvironment",
    "BaselineReport",
    "BaselineResult",
    "BaselineSuite",
    "Measures",
    "run_baseline",
]
