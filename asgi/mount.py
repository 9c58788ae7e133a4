"""The routes as an application of their own, which serves the runtime and dispatches mounts.

Source: docs/http.md#application.
"""

from __future__ import annotations

import logging
import math
from collections.abc import Collection, Mapping

import trio
from quart import Response, has_request_context
from quart.globals import request_ctx
from quart_trio import QuartTrio
from werkzeug.exceptions import HTTPException, MethodNotAllowed
from werkzeug.routing.exceptions import RoutingException

from rungent.asgi.blueprint import blueprint_for, methods_of
from rungent.asgi.dispatch import AsgiApp, Dispatcher, checked_mounts
from rungent.asgi.exchange import Orderly
from rungent.asgi.host import ContextFactory, Host, IdentityResolver, Pace
from rungent.asgi.problems import MethodNotAllowed as MethodProblem
from rungent.asgi.problems import problem
from rungent.asgi.requests import DISCARD_BYTES, read_body
from rungent.errors import NotFound, RungentError
from rungent.runtime import Runtime

__all__ = ["create_app"]

logger = logging.getLogger("rungent")

NAME = "rungent"


def create_app(
    runtime: Runtime,
    *,
    identity_resolver: IdentityResolver,
    context_factory: ContextFactory | None = None,
    url_prefix: str = "",
    mounts: Mapping[str, AsgiApp] | None = None,
    keepalive_seconds: float = 15,
    padding_bytes: int = 0,
    max_body_bytes: int = 1_048_576,
    openapi: bool = True,
    actions: bool = False,
) -> QuartTrio:
    """A Quart-Trio application with the routes under `url_prefix`; see `create_blueprint`.

    Its lifespan serves `runtime`, unless somebody serves it already. When the runtime then
    crashes, the crash is logged and every route of ours answers 503 from then on: restart the
    process. `mounts` maps path prefixes to ASGI applications, which get the rest of the path as
    if they were served at the root; the longest prefix wins, and their own lifespans do not run.

    Cancelling the lifespan stops the runtime without grace. Raises ValueError for bounds out of
    range and for a mount that is no path below the root. Source: docs/http.md.
    """
    keeper = _Keeper(runtime)
    host = Host(
        runtime=runtime,
        identity_resolver=identity_resolver,
        context_factory=context_factory,
        pace=Pace(keepalive_seconds=keepalive_seconds, padding_bytes=padding_bytes),
        max_body_bytes=max_body_bytes,
        openapi=openapi,
        actions=actions,
        crashed=lambda: keeper.crashed,
    )
    app = QuartTrio("rungent.asgi", static_folder=None)
    # `stop()` has its own bound; the framework's five seconds would cut it short.
    app.config["BACKGROUND_TASK_SHUTDOWN_TIMEOUT"] = math.inf
    app.config["MAX_CONTENT_LENGTH"] = max(DISCARD_BYTES, max_body_bytes)
    app.register_blueprint(blueprint_for(host, NAME), url_prefix=url_prefix or None)
    _answer_unrouted(app, max_body_bytes)

    async def begin() -> None:
        if not runtime.serving:
            await app.nursery.start(keeper.keep)

    app.extensions["rungent"] = runtime
    app.extensions["rungent_pace"] = host.pace
    app.before_serving(begin)
    app.after_serving(keeper.end)
    inner: AsgiApp = app.asgi_app
    if mounts:
        inner = Dispatcher(checked_mounts(mounts), inner)
    # Replacing this method is how the framework wants to be wrapped.
    app.asgi_app = Orderly(inner)  # type: ignore[method-assign]
    return app


class _Keeper:
    """Serves a runtime in an application's nursery without letting its crash go unnoticed."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._begun = False
        self.crashed = False

    async def keep(self, *, task_status: trio.TaskStatus[None]) -> None:
        """Serve until `end()`. Raises what prevents the start; a later crash is only logged.

        A crash that left the application's nursery would end its lifespan and leave a server
        that accepts connections and can do nothing with them.
        """
        try:
            async with trio.open_nursery() as nursery:
                await nursery.start(self._runtime.serve)
                self._begun = True
                task_status.started()
        except Exception:
            if not self._begun:
                raise
            self.crashed = True
            logger.exception("the runtime crashed: every request is refused from now on")

    async def end(self) -> None:
        """Stop the runtime in order, if it is served here."""
        if self._begun and not self.crashed:
            self._begun = False
            await self._runtime.stop()


def _answer_unrouted(app: QuartTrio, max_body_bytes: int) -> None:
    """Refuse unknown paths and methods as the routes refuse.

    What host code raises with these statuses passes unchanged: only errors of the router count.
    """

    async def answer(error: HTTPException) -> Response | HTTPException:
        request = request_ctx.request if has_request_context() else None
        if request is None or error is not request.routing_exception:
            return error
        await read_body(request, max_body_bytes)
        known: RungentError = NotFound()
        if isinstance(error, MethodNotAllowed):
            known = MethodProblem(_methods_here() or error.valid_methods or ())
        return problem(known) or error

    app.register_error_handler(404, answer)
    app.register_error_handler(405, answer)


def _methods_here() -> Collection[str]:
    """The methods of our route at the current request's path, for methods that nobody knows."""
    adapter = request_ctx.url_adapter
    assert adapter is not None, "a request without a router has no routing error"
    try:
        endpoint, _ = adapter.match(method="GET")
    except (HTTPException, RoutingException):
        return ()
    blueprint, _, name = endpoint.rpartition(".")
    return methods_of(name) if blueprint == NAME else ()
