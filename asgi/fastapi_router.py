"""The routes as a FastAPI router, which forwards each request to the one application.

FastAPI routes the request and resolves the identity with its dependencies; everything after that
happens in the application. Source: docs/hosts.md#fastapi.
"""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from dataclasses import dataclass
from typing import Any

import trio
from fastapi import APIRouter, Depends, Request
from fastapi.routing import APIRoute
from starlette.exceptions import HTTPException
from starlette.responses import Response
from starlette.types import Message, Receive, Scope, Send
from typing_extensions import override

from rungent.asgi.blueprint import ACTIONS, METHODS, ROUTES
from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.embed import Embedded
from rungent.asgi.handover import Handover, Tape, handed_context, handed_identity
from rungent.asgi.host import ContextFactory, called
from rungent.asgi.inlining import inlined_operations
from rungent.asgi.mount import create_app
from rungent.asgi.openapi import DESCRIPTION_PATH
from rungent.errors import Unauthenticated
from rungent.runtime import Runtime

__all__ = ["ForwardingRouter", "context_in_host", "create_router"]


def create_router(
    runtime: Runtime | Embedded,
    *,
    identity_resolver: Callable[..., Any],
    context_factory: ContextFactory | Callable[..., Any] | None = None,
    keepalive_seconds: float = 15,
    padding_bytes: int = 0,
    max_body_bytes: int = 1_048_576,
    openapi: bool = True,
    actions: bool = False,
) -> APIRouter:
    """The routes of `runtime` for `app.include_router(…, prefix="/api/assistant")`.

    A host that runs on trio passes the runtime and serves it, most often by `async with runtime`
    in its lifespan. A host that runs on asyncio passes an `Embedded` and enters that.

    `identity_resolver` is a FastAPI dependency, sync or async, with dependencies of its own; it
    returns an `Identity`. None, Unauthenticated and PermissionError are answered with 401; an
    HTTPException passes to the host. What it yields is closed before the answer begins.
    `context_factory(request, session, run or None)` gets FastAPI's request and gives the
    dependencies of a drive, which outlive the request. The rest is as in `create_app`.

    Raises ValueError for bounds that are not above 0. Source: docs/hosts.md#fastapi.
    """
    embedded = runtime if isinstance(runtime, Embedded) else None
    served = runtime.runtime if isinstance(runtime, Embedded) else runtime
    app = create_app(
        served,
        identity_resolver=handed_identity,
        context_factory=context_in_host(context_factory, embedded),
        keepalive_seconds=keepalive_seconds,
        padding_bytes=padding_bytes,
        max_body_bytes=max_body_bytes,
        openapi=openapi,
        actions=actions,
    )
    router = ForwardingRouter(app, identity_resolver=identity_resolver, embedded=embedded)
    routes = {**ROUTES, **ACTIONS} if actions else ROUTES
    described = inlined_operations(routes, served.options.max_input_chars)
    for name, (rule, views) in routes.items():
        path = re.sub(r"<(\w+)>", r"{\1}", rule)
        for method in views:
            router.forward(path, method, **described[name, method])
        router.forward_rest(path)
    if openapi:
        router.forward_rest(DESCRIPTION_PATH)
    return router


def context_in_host(
    factory: Callable[..., Any] | None, embedded: Embedded | None
) -> Callable[..., Awaitable[Mapping[str, Any]]] | None:
    """A context factory for the application that calls the host's own where the host runs."""
    if factory is None:
        return None
    call = called if embedded is None else embedded.host
    return handed_context(factory, call=call, passing=(HTTPException,))


class ForwardingRouter(APIRouter):
    """A router whose routes belong to an ASGI application, which sees itself mounted.

    `app` finds the identity by `rungent.asgi.handover.handed_identity`. With `embedded` the host
    runs on asyncio and the application on trio.
    """

    def __init__(
        self,
        app: AsgiApp,
        *,
        identity_resolver: Callable[..., Any],
        embedded: Embedded | None = None,
    ) -> None:
        hosted = _on_trio(app) if embedded is None else embedded.app(app)
        super().__init__()
        self._app = hosted
        self._identity = Depends(identity_resolver, scope="function")

    def forward(self, path: str, method: str, **documented: Any) -> None:
        """Forward one method of a path, with the identity. `documented` is for OpenAPI."""
        app, depth = self._app, _depth(path)

        # A plain function would be called in a thread.
        async def endpoint(  # noqa: ASYNC124
            request: Request, identity: Any = self._identity
        ) -> Response:
            return _Forwarded(app, Handover(request, identity), depth)

        self.add_api_route(
            path,
            endpoint,
            methods=[method],
            route_class_override=_route_class(app, depth),
            response_class=Response,
            response_model=None,
            **documented,
        )

    def forward_rest(self, path: str) -> None:
        """Forward all other methods of a path, without an identity: for refusals, mostly."""
        bare = _Bare(self._app, _depth(path))
        if path:
            # Without a list of methods a route takes also those that nobody knows.
            self.add_route(path, bare, include_in_schema=False)  # type: ignore[arg-type]
        else:
            self.add_api_route(
                path,
                bare.forwarded,
                methods=[*METHODS],
                route_class_override=_route_class(self._app, 0),
                include_in_schema=False,
            )


@dataclass(frozen=True, slots=True)
class _Bare:
    """A route that asks nobody."""

    app: AsgiApp
    depth: int

    async def forwarded(self, request: Request) -> Response:
        return _Forwarded(self.app, Handover(request), self.depth)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        answer = await self.forwarded(Request(scope, Tape(receive)))
        await answer(scope, receive, send)


class _Forwarded(Response):
    """The application's answer to a request, message by message."""

    def __init__(self, app: AsgiApp, handover: Handover, depth: int) -> None:
        super().__init__()
        self._app = app
        self._handover = handover
        self._depth = depth

    @override
    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        handover = self._handover

        async def answer(message: Message) -> None:
            if handover.passing is None:
                await send(message)

        tape = handover.request.receive
        assert isinstance(tape, Tape), "the route gave the request its tape"
        await self._app(handover.scope(self._depth), tape.replay, answer)
        if handover.passing is not None:
            # Nothing was sent: it is the host's framework that answers to its own exception.
            raise handover.passing


def _route_class(app: AsgiApp, depth: int) -> type[APIRoute]:
    class ForwardingRoute(APIRoute):
        """Dependencies may read the body and refuse as an identity resolver of ours does."""

        @override
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def handler(request: Request) -> Response:
                taped = Request(request.scope, Tape(request.receive))
                try:
                    return await handle(taped)
                except (Unauthenticated, PermissionError) as error:
                    return _Forwarded(app, Handover(taped, error), depth)

            return handler

    return ForwardingRoute


def _depth(path: str) -> int:
    return path.count("/")


def _on_trio(app: AsgiApp) -> AsgiApp:
    async def checked(scope: Any, receive: Any, send: Any) -> None:
        if not trio.lowlevel.in_trio_run():
            raise RuntimeError("this host runs on asyncio: give the router an Embedded runtime")
        await app(scope, receive, send)

    return checked
