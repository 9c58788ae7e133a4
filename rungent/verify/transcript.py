"""The part of a transcript that a run wrote: every call is answered once, in order, before the next
message.

Source: docs/operating.md#verify.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from rungent.records import Message, Run, RunStatus

__all__ = ["TranscriptReader"]


@dataclass(slots=True)
class TranscriptReader:
    """Reads a run's messages in their order; `read` and `finish` return what is wrong, or None."""

    run: Run
    _position: int = 0
    _calls: set[str] = field(default_factory=set[str])
    _unanswered: deque[tuple[str, str]] = field(default_factory=deque[tuple[str, str]])
    _answer: str | None = None

    @property
    def calls(self) -> set[str]:
        """The ids of all calls that were asked for."""
        return self._calls

    def read(self, message: Message) -> str | None:
        """Take the next message."""
        wrong = self._placed(message) or self._said(message)
        self._position = message.position
        return None if wrong is None else f"message {message.position}: {wrong}"

    def _placed(self, message: Message) -> str | None:
        if message.session_id != self.run.session_id:
            return "is in another session than its run"
        if self._position and message.position != self._position + 1:
            return f"expected message {self._position + 1}; one is missing or another run's"
        if self._answer is not None:
            return "follows the final answer"
        return None

    def _said(self, message: Message) -> str | None:
        if message.role == "tool":
            return self._result(message)
        if self._unanswered:
            return f"call {self._unanswered[0][0]} has no tool message before it"
        if message.role == "user":
            return self._question(message)
        return self._reply(message)

    def _question(self, message: Message) -> str | None:
        if self._position or self.run.retried_from is not None:
            return "a second user message of the run"
        return None if message.id == self.run.input_message_id else "is not the run's input message"

    def _reply(self, message: Message) -> str | None:
        if not message.tool_calls:
            if not message.content:
                return "is an assistant message with neither text nor calls"
            self._answer = message.content
            return None if message.public else "is a final answer that is not public"
        for call in message.tool_calls:
            if call.id is None:
                return "has a call without an id"
            if call.id in self._calls:
                return f"call {call.id} is there twice"
            self._calls.add(call.id)
            self._unanswered.append((call.id, call.name))
        return None

    def _result(self, message: Message) -> str | None:
        if not self._unanswered:
            return f"answers call {message.tool_call_id}, which is not open"
        call_id, name = self._unanswered.popleft()
        if message.tool_call_id != call_id:
            return f"answers call {message.tool_call_id}, expected {call_id}"
        return None if message.name == name else f"answers {call_id} as a call of another tool"

    def finish(self, answer: str | None) -> str | None:
        """What is missing at the end. `answer` is the final text of the log, if there is one."""
        if not self._position and self.run.retried_from is None:
            return "transcript: the user message is missing"
        if self.run.active:
            return None
        if self._unanswered:
            return f"call {self._unanswered[0][0]}: has no tool message"
        if (self._answer is not None) != (self.run.status is RunStatus.COMPLETED):
            missing = self._answer is None
            return f"transcript: {'has no' if missing else 'has a'} final answer"
        if answer is not None and answer != self._answer:
            return "transcript: the final answer differs from message.completed"
        return None
