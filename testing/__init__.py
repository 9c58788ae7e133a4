"""Testing kit: a scripted model and virtual time. Source: docs/testing.md."""

from rungent.testing.clock import HoldAutojump as HoldAutojump
from rungent.testing.clock import virtual_now as virtual_now
from rungent.testing.scripted import Delay as Delay
from rungent.testing.scripted import ScriptedModel as ScriptedModel

__all__ = ["Delay", "HoldAutojump", "ScriptedModel", "virtual_now"]
