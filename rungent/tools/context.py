"""What a tool may know about the call that it serves.

Source: docs/tools.md.
"""

from __future__ import annotations

import copy
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

from pydantic import JsonValue

from rungent.identity import Identity
from rungent.interactions import TrustedInteractionResponse
from rungent.text import to_json_value
from rungent.tools.messages import public_text

__all__ = ["ReportProgress", "ToolContext"]

ReportProgress = Callable[[str, JsonValue], Awaitable[None]]
"""Stores a progress event. Raises RuntimeError once the call has settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ToolContext:
    """The surroundings of one call, or of a host callback outside any call.

    `current_input` is the trimmed input of the run, `resource` the session's (a private,
    read-only copy), `deps` what the host gave to this drive. `interaction_response` is the
    user's answer that led here, if there is one. `call_id` is None outside a call.
    """

    identity: Identity
    session_id: str
    run_id: str
    call_id: str | None = None
    current_input: str = ""
    resource: Mapping[str, JsonValue] = field(default_factory=dict[str, JsonValue])
    deps: Mapping[str, Any] = field(default_factory=dict[str, Any])
    interaction_response: TrustedInteractionResponse | None = None
    _report: ReportProgress | None = field(default=None, repr=False, compare=False)

    def __post_init__(self) -> None:
        # Copied whole: a tool that changes a nested value must not change the session.
        private = copy.deepcopy(dict(self.resource))
        object.__setattr__(self, "resource", MappingProxyType(private))

    @classmethod
    def create(
        cls,
        *,
        identity: Identity,
        session_id: str,
        run_id: str,
        call_id: str | None = None,
        current_input: str = "",
        resource: Mapping[str, JsonValue] | None = None,
        deps: Mapping[str, Any] | None = None,
        interaction_response: TrustedInteractionResponse | None = None,
        report: ReportProgress | None = None,
    ) -> ToolContext:
        """A context whose progress reports go to `report`."""
        return cls(
            identity=identity,
            session_id=session_id,
            run_id=run_id,
            call_id=call_id,
            current_input=current_input,
            resource=resource or {},
            deps={} if deps is None else deps,
            interaction_response=interaction_response,
            _report=report,
        )

    @property
    def idempotency_key(self) -> str | None:
        """Stable across re-executions of the call; None outside a call."""
        return None if self.call_id is None else f"{self.run_id}:{self.call_id}"

    async def report_progress(self, message: str, *, public: object = None) -> None:
        """Show the user what is going on; returns once the event is committed.

        Raises ValueError unless `message` has 1–280 characters after trimming, and
        RuntimeError outside a call or after it settled.
        """
        text = public_text(message)
        if self._report is None or self.call_id is None:
            raise RuntimeError("progress can only be reported inside a call")
        await self._report(text, to_json_value(public))
