"""Sessions as their owner sees them."""

from __future__ import annotations

import pytest
import trio
from trio.testing import MockClock

from rungent import Identity, InvalidRequest, NotFound, ToolCall, ToolContext, tool
from tests.helpers import OWNER, asking, stage


@tool(effect="read", approval="never")
async def look(ctx: ToolContext, n: int) -> int:
    """Look."""
    return n


async def test_the_whole_transcript_is_readable_with_parsed_calls(
    autojump_clock: MockClock,
) -> None:
    script = [asking(ToolCall("look", {"n": 1}, "a"), text="Let me see."), "Seen."]
    async with stage(script, tools=[look]) as on:
        await on.play("hello")
        session, messages = await on.runtime.get_session(on.session.id, identity=OWNER)
        assert session.message_count == 4
        assert [(m.role, m.content, m.public) for m in messages] == [
            ("user", "hello", True),
            ("assistant", "Let me see.", False),
            ("tool", '{"tool_status":"success","data":1}', False),
            ("assistant", "Seen.", True),
        ]
        assert messages[1].tool_calls == (ToolCall("look", {"n": 1}, "a"),)
        assert (messages[2].tool_call_id, messages[2].name) == ("a", "look")


async def test_messages_and_titles_move_a_session_to_the_front(autojump_clock: MockClock) -> None:
    async with stage(["ok"]) as on:
        other = await on.runtime.create_session(identity=OWNER)
        await trio.sleep(1)

        async def front() -> str:
            return (await on.runtime.list_sessions(identity=OWNER))[0][0].id

        await on.play()
        assert await front() == on.session.id
        await trio.sleep(1)
        named = await on.runtime.set_session_title(other.id, " New ", identity=OWNER)
        assert named.title == "New"
        assert await front() == other.id
        assert (await on.runtime.set_session_title(other.id, None, identity=OWNER)).title is None


async def test_a_foreign_session_is_not_there(autojump_clock: MockClock) -> None:
    async with stage() as on:
        for identity in (Identity("eve"), Identity("ada", ""), Identity("ada", "t")):
            with pytest.raises(NotFound):
                await on.runtime.get_session(on.session.id, identity=identity)
            with pytest.raises(NotFound):
                await on.runtime.set_session_title(on.session.id, "x", identity=identity)
            with pytest.raises(NotFound):
                await on.runtime.list_session_runs(on.session.id, identity=identity)
        with pytest.raises(InvalidRequest):
            await on.runtime.set_session_title(on.session.id, " ", identity=OWNER)
