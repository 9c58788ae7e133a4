"""Handing a host's requests over to an application: who asks, where it lies, what was read.

The host's framework has routed the request and found out who sends it. The application gets the
request as if it were mounted, and asks this module for what the host knows.
Source: docs/hosts.md#fastapi.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, cast

from quart import Request
from werkzeug.exceptions import InternalServerError

from rungent.asgi.host import called
from rungent.identity import Identity

__all__ = ["Handover", "Tape", "below", "handed_context", "handed_identity"]

KEY = "rungent.handover"

Call = Callable[..., Awaitable[Any]]


@dataclass(slots=True)
class Handover:
    """What a host hands over with one request.

    `identity` is what its resolver returned, or the exception that refuses the request. `passing`
    is an exception of the host's framework that was raised behind the handover.
    """

    request: Any
    identity: object = None
    passing: Exception | None = None

    def scope(self, depth: int) -> dict[str, Any]:
        """The request's scope, as the application gets it."""
        return {**below(self.request.scope, depth), KEY: self}


class Tape:
    """Receives a request's messages and keeps them, so that they can be received once more."""

    def __init__(self, receive: Callable[[], Awaitable[Any]]) -> None:
        self._receive = receive
        self._kept: list[Any] = []

    async def __call__(self) -> Any:
        """The next message, kept."""
        message = await self._receive()
        self._kept.append(message)
        return message

    async def replay(self) -> Any:
        """What was kept, each message once, then what comes."""
        return self._kept.pop(0) if self._kept else await self._receive()


def below(scope: Mapping[str, Any], depth: int) -> dict[str, Any]:
    """The scope as if the application were mounted `depth` segments above the path's end.

    A `root_path` that the path does not repeat, as of a proxy that removes it, is put before both.
    """
    path, root = str(scope["path"]), str(scope.get("root_path", ""))
    if not path.startswith(root):
        path = root + path
    mount = path.rsplit("/", depth)[0] if depth else path.rstrip("/")
    return {**scope, "root_path": mount, "path": path if depth else f"{mount}/"}


def handed_identity(request: Request) -> Identity | None:
    """An identity resolver: what the host's said. Raises what that raised."""
    found = _handover(request).identity
    if isinstance(found, Exception):
        raise found
    return cast("Identity | None", found)


def handed_context(
    factory: Callable[..., Any],
    *,
    call: Call = called,
    passing: tuple[type[Exception], ...] = (),
) -> Callable[..., Awaitable[Mapping[str, Any]]]:
    """A context factory that gives the host's factory the host's own request.

    `call` calls it where the host runs. Exceptions in `passing` are noted in the handover.
    """

    async def context(request: Request, *about: object) -> Mapping[str, Any]:
        handover = _handover(request)
        try:
            deps = await call(factory, handover.request, *about)
        except passing as error:
            handover.passing = error
            # Any answer does, for nobody gets it; this kind makes no noise.
            raise InternalServerError() from error
        return cast("Mapping[str, Any]", deps)

    return context


def _handover(request: Request) -> Handover:
    scope: Mapping[str, Any] = cast("Mapping[str, Any]", request.scope)
    handover: Handover = scope[KEY]
    return handover
