"""What the host of the routes provides: its runtime, its identities, its dependencies.

Source: docs/http.md#identity.
"""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, TypeAlias, TypeVar, cast

from quart import Request

from rungent.errors import ShuttingDown, Unauthenticated
from rungent.identity import Identity
from rungent.records import Run, Session
from rungent.runtime import Runtime

__all__ = ["ContextFactory", "Host", "IdentityResolver", "Pace", "called"]

P = ParamSpec("P")
T = TypeVar("T")

IdentityResolver: TypeAlias = Callable[[Request], Identity | Awaitable[Identity | None] | None]
ContextFactory: TypeAlias = Callable[
    [Request, Session, Run | None], Mapping[str, Any] | Awaitable[Mapping[str, Any]]
]


MAX_PADDING_BYTES = 1_048_576


def _never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """How often an idle event stream says something, and with how many bytes of comment.

    The padding follows the beginning of a stream and every keep-alive, for proxies that pass
    nothing on before they have so much. Raises ValueError for values out of range.
    """

    keepalive_seconds: float = 15
    padding_bytes: int = 0

    def __post_init__(self) -> None:
        if not self.keepalive_seconds > 0:
            raise ValueError("keepalive_seconds must be above 0")
        if not 0 <= self.padding_bytes <= MAX_PADDING_BYTES:
            raise ValueError(f"padding_bytes must be 0 to {MAX_PADDING_BYTES}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Host:
    """The runtime behind the routes and the host's callbacks, sync or async.

    `openapi` says whether one more route describes the others, `actions` whether one takes the
    tokens of buttons, `crashed` whether the runtime died
    under an application that served it.
    Raises ValueError for bounds that are not above 0.
    """

    runtime: Runtime
    identity_resolver: IdentityResolver
    context_factory: ContextFactory | None = None
    pace: Pace = Pace()
    max_body_bytes: int = 1_048_576
    openapi: bool = True
    actions: bool = False
    crashed: Callable[[], bool] = _never

    def __post_init__(self) -> None:
        if not self.max_body_bytes > 0:
            raise ValueError("max_body_bytes must be above 0")

    def require_alive(self) -> None:
        """Raise ShuttingDown after the runtime crashed."""
        if self.crashed():
            raise ShuttingDown()

    async def identify(self, request: Request) -> Identity:
        """Who sends the request. Raises Unauthenticated when the host knows nobody.

        A PermissionError counts as a refusal; whatever else the host raises passes.
        """
        try:
            identity = await called(self.identity_resolver, request)
        except PermissionError as error:
            raise Unauthenticated() from error
        if identity is None:
            raise Unauthenticated()
        if not isinstance(cast("object", identity), Identity):
            raise TypeError("the identity resolver must return an Identity or None")
        return identity

    async def deps(
        self, request: Request, session: Session, run: Run | None
    ) -> Mapping[str, Any] | None:
        """The dependencies for a drive, or None without a factory. The host's errors pass."""
        if self.context_factory is None:
            return None
        deps = await called(self.context_factory, request, session, run)
        if not isinstance(cast("object", deps), Mapping):
            raise TypeError("the context factory must return a mapping")
        return deps


async def called(function: Callable[P, T | Awaitable[T]], *args: P.args, **kwargs: P.kwargs) -> T:
    """The result of a function that may be sync or async."""
    result = cast("object", function(*args, **kwargs))
    return cast("T", await result if inspect.isawaitable(result) else result)
