"""Simulation: whole systems played in virtual time, with faults, from a seed.

Source: docs/simulation.md.
"""

from rungent.testing.simulation.explore import Failure as Failure
from rungent.testing.simulation.explore import Report as Report
from rungent.testing.simulation.explore import explore as explore
from rungent.testing.simulation.explore import simulate as simulate
from rungent.testing.simulation.plan import EVERY_KIND as EVERY_KIND
from rungent.testing.simulation.plan import Chance as Chance
from rungent.testing.simulation.plan import Kind as Kind
from rungent.testing.simulation.plan import Plan as Plan
from rungent.testing.simulation.plan import plan_of as plan_of
from rungent.testing.simulation.play import Outcome as Outcome
from rungent.testing.simulation.play import Settings as Settings
from rungent.testing.simulation.play import play as play
from rungent.testing.simulation.rules import Violation as Violation
from rungent.testing.simulation.scenario import Execution as Execution
from rungent.testing.simulation.scenario import Seen as Seen
from rungent.testing.simulation.scenario import SimScenario as SimScenario
from rungent.testing.simulation.shrink import ddmin as ddmin
from rungent.testing.transcript_model import TranscriptModel as TranscriptModel

__all__ = [
    "EVERY_KIND",
    "Chance",
    "Execution",
    "Failure",
    "Kind",
    "Outcome",
    "Plan",
    "Report",
    "Seen",
    "Settings",
    "SimScenario",
    "TranscriptModel",
    "Violation",
    "ddmin",
    "explore",
    "plan_of",
    "play",
    "simulate",
]
