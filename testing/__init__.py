"""Testing kit: scripted models, virtual time, baselines. Source: docs/testing.md."""

from rungent.testing.baseline import BaselineCase as BaselineCase
from rungent.testing.baseline import BaselineContext as BaselineContext
from rungent.testing.baseline import BaselineEnvironment as BaselineEnvironment
from rungent.testing.baseline import BaselineReport as BaselineReport
from rungent.testing.baseline import BaselineResult as BaselineResult
from rungent.testing.baseline import BaselineSuite as BaselineSuite
from rungent.testing.baseline import run_baseline as run_baseline
from rungent.testing.clock import HoldAutojump as HoldAutojump
from rungent.testing.clock import virtual_now as virtual_now
from rungent.testing.scripted import Delay as Delay
from rungent.testing.scripted import ScriptedModel as ScriptedModel

__all__ = [
    "BaselineCase",
    "BaselineContext",
    "BaselineEnvironment",
    "BaselineReport",
    "BaselineResult",
    "BaselineSuite",
    "Delay",
    "HoldAutojump",
    "ScriptedModel",
    "run_baseline",
    "virtual_now",
]
