"""What all parts of one play share: the plan, the store, what happened, and the first violation.

Source: docs/simulation.md.
"""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime

import trio

from rungent.store import Store
from rungent.testing.simulation.plan import Plan
from rungent.testing.simulation.rules import Violation
from rungent.testing.simulation.scenario import Execution, SimScenario
from rungent.tools.decorator import AnyTool

__all__ = ["LATENCIES", "Stage"]

LATENCIES = (0.0, 0.0, 0.001, 0.005)
"""What a store takes before and after each operation, in seconds: one is drawn."""


@dataclass
class Stage:
    """One play. `scope` ends it, `fired` are the chances that came, `harms` counts those that hurt.

    `ended_at` says when runs were seen to have ended, in trio's time.
    """

    scenario: SimScenario
    plan: Plan
    store: Store
    now: Callable[[], datetime]
    scope: trio.CancelScope = field(default_factory=trio.CancelScope)
    violation: str | None = None
    fired: list[str] = field(default_factory=list[str])
    harms: int = 0
    committed: trio.Event = field(default_factory=trio.Event)
    session_ids: list[str] = field(default_factory=list[str])
    ended_at: dict[str, float] = field(default_factory=dict[str, float])
    executions: list[Execution] = field(default_factory=list[Execution])
    begun: Counter[str] = field(default_factory=Counter[str])
    attempts: int = 0
    requests: int = 0
    open_streams: int = 0
    notes: list[str] = field(default_factory=list[str])
    tools: dict[str, AnyTool] = field(init=False)
    _streams: dict[str, random.Random] = field(default_factory=dict[str, random.Random])

    def __post_init__(self) -> None:
        agents = self.scenario.agents()
        self.tools = {tool.name: tool for agent in agents for tool in agent.tools}

    def stream(self, who: str) -> random.Random:
        """The chance of one part of the play: what others draw does not change it."""
        if who not in self._streams:
            self._streams[who] = self.choice_for(who)
        return self._streams[who]

    def choice_for(self, what: str) -> random.Random:
        """Chance of its own for one thing, the same however often it is asked for."""
        return random.Random(f"{self.plan.seed} {what}")

    def fire(self, what: str, *, harm: bool = False) -> None:
        """A chance came."""
        self.fired.append(what)
        self.harms += harm
        self.note(f"-- {what}")

    def note(self, line: str) -> None:
        """Add a line to what is shown of a failed play."""
        self.notes.append(f"{trio.current_time():10.3f} {line}")

    def fail(self, reason: str) -> None:
        """End the play: a promise was broken. The first one counts."""
        if self.violation is None:
            self.violation = reason
            self.note(f"!! {reason}")
        self.scope.cancel()

    def require(self, condition: object, reason: str) -> None:
        """Raise Violation, and end the play, unless the condition holds."""
        if not condition:
            self.fail(reason)
            raise Violation(reason)

    async def latency(self, who: str) -> None:
        """What a database takes."""
        await trio.sleep(self.stream(who).choice(LATENCIES))
