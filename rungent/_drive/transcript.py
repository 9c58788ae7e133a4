"""The session's messages as one drive knows them, and the requests made from them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from rungent._lifecycle.offer import offer_of
from rungent._lifecycle.prompt import BYTES_PER_TOKEN, entry_of, fit, system_text
from rungent.agent import Agent
from rungent.ids import new_call_id
from rungent.llm.port import Echo, ModelRequest
from rungent.records import Message, Run, ToolCall
from rungent.text import dump_json, storable, to_json_value

__all__ = ["Transcript"]


class Transcript:
    """Grows with every commit of the drive. Reasoning echoes live here and nowhere else."""

    def __init__(self, agent: Agent, messages: Iterable[Message]) -> None:
        self._agent = agent
        self._offer = offer_of(agent)
        self._wires: list[Mapping[str, Any]] = []
        # Where an exchange begins, and how many bytes come before each message: a request is cut
        # to its budget without a look at every message.
        self._cuts = [0]
        self._before = [0]
        self._call_ids: set[str] = set()
        self._results: dict[str, str] = {}
        self._echo: tuple[tuple[str, ...], Echo] | None = None
        self._system = ("", 0)
        self.extend(messages)

    def extend(self, messages: Iterable[Message]) -> None:
        """Add committed messages at the end."""
        for message in messages:
            ids = tuple(call.id for call in message.tool_calls if call.id is not None)
            self._call_ids.update(ids)
            if message.tool_call_id is not None:
                self._results[message.tool_call_id] = message.content
            echo = self._echo[1] if ids and self._echo and self._echo[0] == ids else None
            entry = entry_of(message, echo)
            if self._wires and message.role == "user":
                self._cuts.append(len(self._wires))
            self._wires.append(entry.wire)
            self._before.append(self._before[-1] + entry.size)

    def expect_echo(self, calls: Iterable[ToolCall], echo: Echo | None) -> None:
        """Keep what the provider wants back with the message that will hold these calls."""
        ids = tuple(call.id for call in calls if call.id is not None)
        self._echo = None if echo is None else (ids, echo)

    def result_of(self, call_id: str) -> str | None:
        """The tool message that answered a call, if it is in the transcript."""
        return self._results.get(call_id)

    def free_call_id(self) -> str:
        """An id for a call that the runtime makes itself."""
        return new_call_id(self._call_ids)

    def identified(self, calls: Iterable[ToolCall]) -> tuple[ToolCall, ...]:
        """The calls with storable contents and ids that are unique in the session."""
        taken = set(self._call_ids)
        named: list[ToolCall] = []
        for call in calls:
            call_id = storable(call.id) if call.id else ""
            if not call_id or call_id in taken:
                call_id = new_call_id(taken)
            taken.add(call_id)
            arguments = {
                storable(key): to_json_value(value) for key, value in call.arguments.items()
            }
            named.append(ToolCall(storable(call.name), arguments, call_id))
        return tuple(named)

    def request(self, run: Run, context: str, *, correction: bool, budget: int) -> ModelRequest:
        """The request of the next attempt; `budget` is in tokens."""
        tools = self._offer.answered if run.state.answer is not None else self._offer.usual
        begin = 0
        system: Mapping[str, Any] = {}
        for left_out in (False, True):
            instructions = self._agent.instructions
            text = system_text(instructions, context, left_out=left_out, correction=correction)
            system = {"role": "system", "content": text}
            if text != self._system[0]:
                self._system = (text, len(dump_json({"messages": [system]}).encode()))
            fixed = self._system[1] + tools.size
            begin = fit(self._cuts, self._before, budget * BYTES_PER_TOKEN - fixed)
            if not begin:
                break
        messages = (system, *self._wires[begin:])
        return ModelRequest(messages=messages, tools=tools.specs, model=self._agent.model)
