"""Request states: made by this server, for this call, for a while, and for one use."""

from __future__ import annotations

import base64
import json
from datetime import datetime, timedelta
from typing import Any

import pytest
import trio

from rungent.asgi.mcp.states import InvalidState, RequestStates, UsedInProcess
from rungent.ids import system_now
from tests.mcp.calling import CAN_ASK, Wire, code_of, envelope, wire

KEY, OTHER_KEY = b"k" * 32, b"o" * 32
APPROVED = {"approval": {"action": "accept", "content": {"decision": "approve"}}}
ROME = {"city": "Rome"}


class Clock:
    """A wall clock that tests move."""

    def __init__(self) -> None:
        self.moment = system_now()

    def __call__(self) -> datetime:
        return self.moment


async def asked(w: Wire) -> str:
    """The state of a question about Rome."""
    result = await w.call("book", CAN_ASK, arguments=ROME)
    assert result["resultType"] == "input_required"
    state: str = result["requestState"]
    return state


async def answered(w: Wire, state: Any, **changes: Any) -> Any:
    params: dict[str, Any] = {
        "name": "book",
        "arguments": ROME,
        "requestState": state,
        "inputResponses": APPROVED,
        **changes,
    }
    user = params.pop("user", "ada")
    return await w.modern("tools/call", params, CAN_ASK, x_user=user)


async def test_an_answer_counts_once() -> None:
    async with wire() as w:
        state = await asked(w)
        first, second = await answered(w, state), await answered(w, state)
    assert envelope(first.json()["result"])["data"] == "booked"
    assert (second.status, code_of(second)) == (400, -32602)
    assert w.desk.booked == ["Rome"]


async def test_of_answers_at_the_same_instant_one_counts() -> None:
    answers: list[Any] = []
    async with wire() as w:
        state = await asked(w)

        async def answer() -> None:
            answers.append(await answered(w, state))

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(answer)
    assert sorted(a.status for a in answers) == [200, 400, 400, 400, 400]
    assert w.desk.booked == ["Rome"]


@pytest.mark.parametrize(
    "changes",
    [
        {"arguments": {"city": "Oslo"}},
        {"arguments": {}},
        {"name": "add", "arguments": {"a": 1, "b": 2}},
        {"user": "bob"},
        {"requestState": 5},
        {"requestState": ""},
        {"requestState": "."},
        {"requestState": "é.é"},
        {"inputResponses": []},
        {"inputResponses": {"approval": 5}},
        {"inputResponses": {"approval": {"action": "run"}}},
        {"inputResponses": {"approval": {"action": "accept"}}},
    ],
)
async def test_what_does_not_belong_together_is_refused(changes: dict[str, Any]) -> None:
    async with wire() as w:
        state = await asked(w)
        refused = await answered(w, state, **changes)
        assert (refused.status, code_of(refused)) == (400, -32602)
        assert w.desk.booked == []
        # Nothing was used up.
        assert (await answered(w, state)).status == 200


async def test_no_changed_byte_passes() -> None:
    async with wire() as w:
        state = await asked(w)
        for at in range(0, len(state), 7):
            other = "A" if state[at] != "A" else "B"
            changed = state[:at] + other + state[at + 1 :]
            assert (await answered(w, changed)).status == 400
    assert w.desk.booked == []


async def test_a_state_expires() -> None:
    clock = Clock()
    async with wire(now=clock, state_ttl_seconds=60) as w:
        early, late = await asked(w), await asked(w)
        clock.moment += timedelta(seconds=59)
        assert (await answered(w, early)).status == 200
        clock.moment += timedelta(seconds=1)
        assert (await answered(w, late)).status == 400


async def test_answers_that_do_not_count_leave_the_question_open() -> None:
    empty: Any = {"approval": {"action": "accept", "content": {}}}
    tried: list[Any] = [{}, None, empty]
    async with wire() as w:
        state = await asked(w)
        again = [
            (await answered(w, state, inputResponses=responses)).json()["result"]
            for responses in tried
        ]
        last = await answered(w, state)
    assert {result["resultType"] for result in again} == {"input_required"}
    assert {result["requestState"] for result in again} == {state}
    shown = again[-1]["inputRequests"]["approval"]["params"]["message"]
    assert shown == "Book Rome?\n\nEither approve or reject is expected."
    assert last.json()["result"]["resultType"] == "complete"


async def test_an_answer_without_a_state_was_never_asked_for() -> None:
    async with wire() as w:
        answer = await answered(w, None)
    assert answer.json()["result"]["resultType"] == "input_required"
    assert w.desk.booked == []


class Shared:
    """What several workers share: here a set, elsewhere a table."""

    def __init__(self) -> None:
        self.used: set[str] = set()

    async def claim(self, nonce: str, expires_at: datetime) -> bool:
        await trio.lowlevel.checkpoint()
        fresh = nonce not in self.used
        self.used.add(nonce)
        return fresh


async def test_workers_with_a_key_and_a_memory_in_common_are_one_server() -> None:
    shared: dict[str, Any] = {"used_states": Shared()}
    async with (
        wire(state_keys=[KEY], **shared) as one,
        wire(state_keys=[OTHER_KEY, KEY], **shared) as two,
        wire(**shared) as stranger,
    ):
        state = await asked(one)
        assert (await answered(stranger, state)).status == 400
        assert (await answered(two, state)).status == 200
        assert (await answered(one, state)).status == 400
    assert (one.desk.booked, two.desk.booked) == ([], ["Rome"])


async def test_endpoints_that_share_a_key_do_not_take_each_others_states() -> None:
    async with (
        wire(state_keys=[KEY], server_name="one") as one,
        wire(state_keys=[KEY], server_name="two") as two,
    ):
        assert (await answered(two, await asked(one))).status == 400


async def test_the_client_sees_no_more_than_what_it_sent_and_was_asked() -> None:
    """A state is signed and not encrypted; so this is what it may hold."""
    async with wire() as w:
        state = await asked(w)
    head = state.partition(".")[0]
    note = json.loads(base64.urlsafe_b64decode(head + "=" * (-len(head) % 4)))
    assert note["content"]["next"] == {"tool": "book", "arguments": ROME}
    assert "deps" not in json.dumps(note)


async def test_a_full_memory_refuses_and_recovers() -> None:
    clock = Clock()
    used = UsedInProcess(clock, limit=2)
    end = clock() + timedelta(seconds=10)
    assert [await used.claim(name, end) for name in ("a", "a", "b", "c")] == [
        True,
        False,
        True,
        False,
    ]
    clock.moment += timedelta(seconds=10)
    assert await used.claim("c", end + timedelta(seconds=10))


async def test_only_a_plain_yes_of_the_shared_memory_counts() -> None:
    class Odd:
        async def claim(self, nonce: str, expires_at: datetime) -> Any:
            await trio.lowlevel.checkpoint()
            return "yes"

    states = RequestStates(keys=[KEY], audience="x", ttl_seconds=5, used=Odd(), now=system_now)
    with pytest.raises(InvalidState):
        await states.use(states.read(states.seal({})))
