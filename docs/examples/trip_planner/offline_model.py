"""The offline model: the planner behind a real chat completions endpoint on the loopback.

The runtime reaches it through the same adapter, over the same wire format, as any provider. It
is no language model and says so wherever it names itself.
"""

from __future__ import annotations

import json
import logging
import secrets
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeGuard, cast

import trio
from hypercorn.config import Config
from hypercorn.trio import serve  # pyright: ignore[reportUnknownVariableType]
from quart import Response, request
from quart_trio import QuartTrio

from rungent.demo.chunks import Envelope, chunks, completion, sse_frame
from rungent.demo.planner import Reply, plan

__all__ = ["OFFLINE_MODEL", "OfflineModel", "create_offline_app", "serve_offline_model"]

OFFLINE_MODEL = "offline-planner"

Pause = Callable[[], Awaitable[object]]

_serve = cast("Callable[..., Awaitable[None]]", serve)  # hypercorn types it only in part
_logger = logging.getLogger("rungent.demo.offline_model")


@dataclass(frozen=True, slots=True)
class OfflineModel:
    """Where a started offline model listens, and the key that it wants."""

    base_url: str
    api_key: str = field(repr=False)
    model: str = OFFLINE_MODEL


async def serve_offline_model(
    *,
    pause: Pause = trio.lowlevel.checkpoint,
    task_status: trio.TaskStatus[OfflineModel] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve until cancelled, on a free loopback port and under a new random key.

    `await nursery.start(serve_offline_model)` returns the `OfflineModel` once it listens.
    `pause` is awaited between chunks, so that a person can watch an answer grow.
    """
    api_key = secrets.token_urlsafe(24)
    config = Config()
    config.bind = ["127.0.0.1:0"]
    # A logger of our own: hypercorn's would print every start on standard error.
    config.errorlog = _logger
    async with trio.open_nursery() as nursery:
        bound: list[str] = await nursery.start(
            _serve, create_offline_app(api_key, pause=pause), config
        )
        task_status.started(OfflineModel(f"{bound[0]}/v1", api_key))


def create_offline_app(api_key: str, *, pause: Pause = trio.lowlevel.checkpoint) -> QuartTrio:
    """The endpoint as an application: `GET /v1/models` and `POST /v1/chat/completions`."""
    app = QuartTrio("rungent.demo.offline_model")

    async def check_key() -> Response | None:
        given = request.headers.get("Authorization", "")
        if secrets.compare_digest(given.encode(), f"Bearer {api_key}".encode()):
            return None
        # The body is read first: hypercorn leaves a connection dead when a reply overtakes it.
        await request.get_data()
        return _refusal(401, "invalid_api_key", "The API key is not the one of this start.")

    async def models() -> Response:  # noqa: ASYNC124 - a plain function would get a thread
        listed = {"id": OFFLINE_MODEL, "object": "model", "created": 0, "owned_by": "rungent-demo"}
        return _json({"object": "list", "data": [listed]})

    async def chat_completions() -> Response:
        try:
            body: object = json.loads(await request.get_data())
        except ValueError:
            body = None
        if not _is_object(body) or not isinstance(body.get("messages"), list):
            return _refusal(400, "invalid_request", "The body is not a chat completion request.")
        if body.get("model") != OFFLINE_MODEL:
            return _refusal(404, "model_not_found", f"The only model here is {OFFLINE_MODEL}.")
        reply = plan([m for m in body["messages"] if _is_object(m)], _offered(body))
        envelope = Envelope(
            id=f"chatcmpl-{secrets.token_hex(12)}",
            model=OFFLINE_MODEL,
            created=int(time.time()),
            prompt_tokens=len(json.dumps(body["messages"]).split()),
        )
        if body.get("stream") is not True:
            return _json(completion(reply, envelope, _new_call_id))
        return _stream(_frames(reply, envelope, pause, include_usage=_wants_usage(body)))

    app.before_request(check_key)
    app.add_url_rule("/v1/models", view_func=models)
    app.add_url_rule("/v1/chat/completions", view_func=chat_completions, methods=["POST"])
    return app


async def _frames(
    reply: Reply, envelope: Envelope, pause: Pause, *, include_usage: bool
) -> AsyncIterator[bytes]:
    for chunk in chunks(reply, envelope, _new_call_id, include_usage=include_usage):
        yield sse_frame(chunk)
        # A checkpoint at the least: sending on a closed connection is none by itself.
        await pause()
    yield sse_frame("[DONE]")


def _stream(frames: AsyncIterator[bytes]) -> Response:
    response = Response(frames, content_type="text/event-stream; charset=utf-8")
    # Quart would otherwise cut the answer after a minute.
    response.timeout = None
    return response


def _offered(body: Mapping[str, Any]) -> list[str]:
    tools: object = body.get("tools")
    names: list[str] = []
    for tool in tools if _is_list(tools) else ():
        function: object = tool.get("function") if _is_object(tool) else None
        if _is_object(function):
            names.append(str(function.get("name")))
    return names


def _wants_usage(body: Mapping[str, Any]) -> bool:
    options: object = body.get("stream_options")
    return _is_object(options) and options.get("include_usage") is True


def _new_call_id() -> str:
    return f"call_{secrets.token_hex(12)}"


def _json(value: Mapping[str, Any], status: int = 200) -> Response:
    return Response(json.dumps(value), status=status, content_type="application/json")


def _refusal(status: int, code: str, message: str) -> Response:
    error = {"message": message, "type": "invalid_request_error", "param": None, "code": code}
    return _json({"error": error}, status)


def _is_object(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _is_list(value: object) -> TypeGuard[list[object]]:
    return isinstance(value, list)
