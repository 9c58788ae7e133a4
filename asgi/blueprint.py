"""The routes as a Quart blueprint, for hosts that serve the runtime themselves.

Source: docs/http.md#blueprint.
"""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Collection, Mapping
from dataclasses import dataclass

from quart import Blueprint, Request, Response
from quart.globals import request_ctx
from typing_extensions import override
from werkzeug.exceptions import HTTPException

from rungent.asgi import runs, sessions
from rungent.asgi.event_stream import stream_events
from rungent.asgi.host import ContextFactory, Host, IdentityResolver, Pace
from rungent.asgi.openapi import DESCRIPTION_PATH, description_for
from rungent.asgi.problems import MethodNotAllowed, internal_error, problem
from rungent.asgi.requests import Call, read_body
from rungent.asgi.schemas import reply
from rungent.errors import NotFound
from rungent.runtime import Runtime
from rungent.text import storable

__all__ = [
    "ACTIONS",
    "METHODS",
    "ROUTES",
    "Routes",
    "blueprint_for",
    "create_blueprint",
    "methods_of",
]

logger = logging.getLogger("rungent")

View = Callable[..., Awaitable[Response]]
Routes = Mapping[str, tuple[str, Mapping[str, View]]]

ROUTES: Routes = {
    "sessions": (
        "/sessions",
        {"GET": sessions.list_sessions, "POST": sessions.create_session},
    ),
    "session": (
        "/sessions/<session_id>",
        {"GET": sessions.get_session, "PATCH": sessions.rename_session},
    ),
    "session_runs": (
        "/sessions/<session_id>/runs",
        {"GET": runs.list_runs, "POST": runs.create_run},
    ),
    "run_events": ("/runs/<run_id>/events", {"GET": runs.list_events}),
    "run_event_stream": ("/runs/<run_id>/events/stream", {"GET": stream_events}),
    "run_responses": ("/runs/<run_id>/responses", {"POST": runs.answer_run}),
    "run_retry": ("/runs/<run_id>/retry", {"POST": runs.retry_run}),
    "run_cancel": ("/runs/<run_id>/cancel", {"POST": runs.cancel_run}),
}
"""Endpoint name: its path and its views by method."""

ACTIONS: Routes = {
    "action": ("/actions/<token>", {"POST": runs.click_action}),
}
"""The same for what is there only when the host wants it."""

DESCRIPTION = "openapi"

# A rule takes every method, so that the refusal of a method is ours in any host.
METHODS = ("CONNECT", "DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT", "TRACE")


def create_blueprint(
    runtime: Runtime,
    *,
    identity_resolver: IdentityResolver,
    context_factory: ContextFactory | None = None,
    keepalive_seconds: float = 15,
    padding_bytes: int = 0,
    max_body_bytes: int = 1_048_576,
    openapi: bool = True,
    actions: bool = False,
    name: str = "rungent",
) -> Blueprint:
    """The routes of `runtime` for a Quart-Trio application, which must run `runtime.serve`.

    `identity_resolver(request)` says who asks; `context_factory(request, session, run or None)`
    gives the dependencies of a drive, which outlive the request. Both may be sync or async. None,
    Unauthenticated and PermissionError from the resolver are answered with 401; exceptions of
    the web framework pass through. Event streams send a comment after `keepalive_seconds`
    without a frame; `padding_bytes` of comment follow it, and a stream's beginning. With
    `openapi` the routes are described at `/openapi.json`, for everybody. With `actions` the
    tokens of buttons are taken at `/actions/{token}`, from whom `identity_resolver` names.
    The application's `MAX_CONTENT_LENGTH` must not lie below `max_body_bytes`.

    Raises ValueError for bounds out of range. Source: docs/http.md.
    """
    host = Host(
        runtime=runtime,
        identity_resolver=identity_resolver,
        context_factory=context_factory,
        pace=Pace(keepalive_seconds=keepalive_seconds, padding_bytes=padding_bytes),
        max_body_bytes=max_body_bytes,
        openapi=openapi,
        actions=actions,
    )
    return blueprint_for(host, name)


def blueprint_for(host: Host, name: str) -> Blueprint:
    """The routes around what the host provides."""
    routes = _routes(host)
    rules = {endpoint: (path, Endpoint(host, views)) for endpoint, (path, views) in routes.items()}
    if host.openapi:
        rules[DESCRIPTION] = (DESCRIPTION_PATH, DescriptionEndpoint(host, {"GET": _description}))
    blueprint = Blueprint(name, "rungent.asgi")
    for endpoint, (path, answering) in rules.items():
        blueprint.add_url_rule(
            path,
            endpoint=endpoint,
            view_func=answering.answer,
            methods=METHODS,
            provide_automatic_options=False,
            strict_slashes=True,
            merge_slashes=False,
        )
    return blueprint


def methods_of(endpoint: str) -> Collection[str]:
    """The methods of a route of ours, or nothing."""
    if endpoint == DESCRIPTION:
        return ("GET",)
    known = {**ROUTES, **ACTIONS}
    return known[endpoint][1] if endpoint in known else ()


def _routes(host: Host) -> Mapping[str, tuple[str, Mapping[str, View]]]:
    return {**ROUTES, **ACTIONS} if host.actions else ROUTES


async def _description(host: Host, request: Request) -> Response:  # noqa: ASYNC124 - a view
    return reply(description_for(request, _routes(host), host.runtime.options.max_input_chars))


@dataclass(frozen=True, slots=True)
class Endpoint:
    """One path: its views by method, and the checks that come before each of them."""

    host: Host
    views: Mapping[str, View]

    async def answer(self, **ids: str) -> Response:
        """Answer the current request: the only place that turns errors into statuses."""
        # The request itself, not the framework's proxy: the host may keep it.
        request = request_ctx.request
        try:
            return await self._checked(request, ids)
        except HTTPException:
            raise
        except Exception as error:
            response = problem(error)
            if response is None:
                logger.exception("%s %s failed", request.method, request.url_rule)
                response = internal_error()
            return response

    async def _checked(self, request: Request, ids: Mapping[str, str]) -> Response:
        view, body = await self._accepted(request)
        identity = await self.host.identify(request)
        if any(storable(given) != given for given in ids.values()):
            # No database has such an id, and some refuse to look for it.
            raise NotFound()
        return await view(Call(self.host, request, identity, body), **ids)

    async def _accepted(self, request: Request) -> tuple[View, bytes | None]:
        """The view and the body, after the checks that come before the identity."""
        body = await read_body(request, self.host.max_body_bytes)
        if request.scope["path"].removeprefix(request.root_path).startswith("//"):
            # The router takes this for another spelling of a path.
            raise NotFound()
        view = self.views.get(request.method)
        if view is None:
            raise MethodNotAllowed(self.views)
        self.host.require_alive()
        return view, body


class DescriptionEndpoint(Endpoint):
    """A path for everybody: its view gets the host and the request."""

    @override
    async def _checked(self, request: Request, ids: Mapping[str, str]) -> Response:
        view, _ = await self._accepted(request)
        return await view(self.host, request)
