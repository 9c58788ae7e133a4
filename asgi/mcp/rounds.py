"""Several rounds of one call: the question goes out with a state, the answer comes back with it.

Source: docs/mcp.md#questions.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from rungent.asgi.mcp.calls import Asked
from rungent.asgi.mcp.elicitation import Declined, answer_in, elicitation
from rungent.asgi.mcp.messages import Code, JsonObject, Refusal
from rungent.asgi.mcp.states import InvalidState, RequestStates
from rungent.errors import InvalidResponse
from rungent.identity import Identity
from rungent.ids import new_id
from rungent.interactions import (
    InteractionSpec,
    TrustedInteractionResponse,
    to_public,
    validate_answer,
)
from rungent.tools import fingerprint

__all__ = ["Answered", "Origin", "Rounds", "Unaccepted"]

logger = logging.getLogger("rungent")

APPROVAL_KEY = "approval"


@dataclass(frozen=True, slots=True, kw_only=True)
class Origin:
    """The call that all rounds belong to: who made it, with what, and under which ids."""

    identity: Identity
    tool: str
    arguments: Mapping[str, Any]
    session_id: str
    run_id: str
    call_id: str


@dataclass(frozen=True, slots=True)
class Unaccepted:
    """The answer did not count; the client is asked again with the same state."""

    result: JsonObject


@dataclass(frozen=True, slots=True)
class Answered:
    """The question is settled and its state used up. `decision` is None for a declined one."""

    origin: Origin
    asked: Asked
    answer: TrustedInteractionResponse | None
    accepted: bool

    @property
    def approved(self) -> bool:
        """Whether this was the consent to the frozen call."""
        return self.asked.spec.kind == "approval"


@dataclass(frozen=True, slots=True)
class Rounds:
    """Asks, and takes answers, for one endpoint."""

    states: RequestStates

    def ask(self, origin: Origin, asked: Asked) -> JsonObject:
        """The result that makes a client ask its user and call again."""
        interaction_id = new_id("int_")
        state = self.states.seal(
            {
                "subject": origin.identity.subject_id,
                "tenant": origin.identity.tenant_id,
                "tool": origin.tool,
                "arguments": fingerprint(origin.arguments),
                "session": origin.session_id,
                "run": origin.run_id,
                "call": origin.call_id,
                "interaction": interaction_id,
                "next": {"tool": asked.tool, "arguments": asked.arguments},
                "spec": to_public(asked.spec),
                "answer": None if asked.answer is None else asked.answer.model_dump(mode="json"),
            }
        )
        return _input_required(asked, state)

    async def take(
        self, identity: Identity, tool: str, arguments: Mapping[str, Any], params: Mapping[str, Any]
    ) -> Answered | Unaccepted:
        """The answer in the parameters of a repeated call. Raises Refusal for a bad state.

        The state is used up by an answer that counts, before anything is executed.
        """
        state, note = self._read(params.get("requestState"))
        content: dict[str, Any] = note["content"]
        owner = Identity(content["subject"], content["tenant"])
        digest = fingerprint(arguments)
        if owner != identity or content["tool"] != tool or content["arguments"] != digest:
            raise _refused("binding")
        asked = Asked(
            content["next"]["tool"],
            content["next"]["arguments"],
            InteractionSpec.model_validate(content["spec"]),
            _trusted(content["answer"]),
        )
        responses: object = params.get("inputResponses")
        if responses is not None and not isinstance(responses, dict):
            raise Refusal(Code.INVALID_PARAMS, "inputResponses must be an object.")
        given = cast("JsonObject", responses or {})
        if _key(asked) not in given:
            return Unaccepted(_input_required(asked, state))
        origin = Origin(
            identity=identity,
            tool=tool,
            arguments=arguments,
            session_id=content["session"],
            run_id=content["run"],
            call_id=content["call"],
        )
        return await self._settle(origin, asked, given[_key(asked)], state, note)

    async def _settle(
        self, origin: Origin, asked: Asked, response: object, state: str, note: dict[str, Any]
    ) -> Answered | Unaccepted:
        interaction_id: str = note["content"]["interaction"]
        answered = Answered(origin, asked, asked.answer, accepted=False)
        try:
            value = validate_answer(asked.spec, answer_in(asked.spec, response))
        except InvalidResponse as invalid:
            return Unaccepted(_input_required(asked, state, invalid.message))
        except Declined:
            pass
        else:
            answered = _settled(origin, asked, value, interaction_id)
        try:
            await self.states.use(note)
        except InvalidState as error:
            raise _refused(str(error)) from None
        return answered

    def _read(self, state: object) -> tuple[str, dict[str, Any]]:
        if not isinstance(state, str):
            raise _refused("type")
        try:
            return state, self.states.read(state)
        except InvalidState as error:
            raise _refused(str(error)) from None


def _settled(origin: Origin, asked: Asked, value: JsonValue, interaction_id: str) -> Answered:
    spec = asked.spec
    if spec.kind == "approval":
        return Answered(origin, asked, asked.answer, accepted=value == "approve")
    assert spec.kind != "data", "tools that ask are not exported"
    trusted = TrustedInteractionResponse(interaction_id, spec.kind, spec.prompt, value)
    return Answered(origin, asked, trusted, accepted=True)


def _input_required(asked: Asked, state: str, remark: str | None = None) -> JsonObject:
    return {
        "resultType": "input_required",
        "inputRequests": {_key(asked): elicitation(asked.spec, remark)},
        "requestState": state,
    }


def _key(asked: Asked) -> str:
    """What the answer is for: the approval, or the tool that gets it."""
    return APPROVAL_KEY if asked.spec.kind == "approval" else asked.tool


def _trusted(stored: dict[str, Any] | None) -> TrustedInteractionResponse | None:
    return None if stored is None else TrustedInteractionResponse(**stored)


def _refused(reason: str) -> Refusal:
    logger.info("an MCP request state was refused: %s", reason)
    return Refusal(Code.INVALID_PARAMS, "The request state is not valid, or no longer.")
