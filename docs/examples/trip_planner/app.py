"""The host application: a runtime for the trip assistant, and a web app with a page around it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from quart import Response

from rungent import DeferredRequest, Identity, Run, Runtime, Session
from rungent.demo.agent import trip_agent
from rungent.demo.llms import add_documentation
from rungent.demo.seed import DEMO_TRIP_ID
from rungent.demo.services import Services
from rungent.demo.trip import trip_data
from rungent.llm import Model
from rungent.store import Store

if TYPE_CHECKING:
    from quart_trio import QuartTrio

__all__ = ["API_PREFIX", "LOCAL_IDENTITY", "TRIP_PATH", "build_app", "build_runtime"]

API_PREFIX = "/api/assistant"
TRIP_PATH = "/trip"

LOCAL_IDENTITY = Identity("demo")
"""Whoever reaches the demo is this one user. That is no authentication: a host resolves the
identity from its own session or token, and refuses requests that have none."""


def build_runtime(store: Store, model: Model, services: Services) -> Runtime:
    """A runtime with the trip assistant. The caller serves it, and runs a route worker."""

    def dependencies(session: Session, run: Run) -> Mapping[str, Any]:
        # Also for runs that another process left behind: there is no request to take them from.
        del session, run
        return {"services": services}

    async def cancel_job(session: Session, run: Run, task: DeferredRequest) -> None:
        # Marked, not killed: the worker sees it before it changes anything.
        del session, run
        await services.jobs.cancel(task.task_id)

    return Runtime(
        agents=[trip_agent],
        model=model,
        store=store,
        dependency_provider=dependencies,
        external_task_canceller=cancel_job,
    )


def build_app(runtime: Runtime, services: Services) -> QuartTrio:
    """The page at `/`, the assistant's routes under `/api/assistant`, and `GET /trip`."""
    # Imported here, so that the terminal conversation needs no web adapter.
    from rungent.asgi import create_app
    from rungent.demo.page import page_blueprint

    def local_identity(request: object) -> Identity:
        del request
        return LOCAL_IDENTITY

    def context(request: object, session: Session, run: Run | None) -> Mapping[str, Any]:
        del request, session, run
        return {"services": services}

    async def show_trip() -> Response:
        trip = await services.trips.get(DEMO_TRIP_ID)
        body = json.dumps(trip_data(trip), ensure_ascii=False, indent=2)
        return Response(f"{body}\n", content_type="application/json")

    app = create_app(
        runtime,
        identity_resolver=local_identity,
        context_factory=context,
        url_prefix=API_PREFIX,
    )
    app.add_url_rule(TRIP_PATH, view_func=show_trip)
    app.register_blueprint(page_blueprint())
    add_documentation(app)
    return app
