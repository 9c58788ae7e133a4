"""Commits that only add to the log say so, and never hide a change of the run."""

from __future__ import annotations

from typing_extensions import override

from rungent import ToolContext, tool
from rungent.llm.port import ModelFailure, TextDelta
from rungent.store.memory import MemoryStore
from rungent.store.port import Commit
from rungent.testing.scripted import Delay
from tests.helpers import calls, stage

THE_LOG = {"version", "event_seq", "updated_at"}


class WatchfulStore(MemoryStore):
    """Notes what each commit says of itself, and which fields of the run it really changed."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[bool, set[str]]] = []

    @override
    async def commit(self, commit: Commit, *, owner: str, token: int) -> None:
        before = await self.get_run(commit.run.id)
        await super().commit(commit, owner=owner, token=token)
        after = await self.get_run(commit.run.id)
        changed = {name for name, value in dict(after).items() if value != getattr(before, name)}
        self.seen.append((commit.appends, changed))


@tool(effect="read", approval="never", title="Look")
async def look(ctx: ToolContext) -> str:
    """Look around."""
    await ctx.report_progress("Half of it seen.")
    return "a temple"


async def test_only_what_leaves_the_run_alone_says_that_it_appends(autojump_clock: object) -> None:
    store = WatchfulStore()
    script = [
        [TextDelta("Let me"), Delay(4), ModelFailure("network")],
        calls("look"),
        [TextDelta("A "), Delay(1), TextDelta("temple"), Delay(1), TextDelta(".")],
    ]
    async with stage(script, tools=[look], store=store) as play:
        await play.play()
    appending = [changed for appends, changed in store.seen if appends]
    assert len(appending) >= 4
    assert all(changed <= THE_LOG for changed in appending)
    assert any(not appends for appends, _ in store.seen)
