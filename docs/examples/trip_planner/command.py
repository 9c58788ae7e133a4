"""`rungent demo`: put the parts together, then serve them or hold one conversation."""

from __future__ import annotations

import logging
import os
import sys
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from functools import partial

import httpx
import trio
from rich.console import Console

from rungent import Runtime
from rungent.demo.app import build_app, build_runtime
from rungent.demo.database import open_database
from rungent.demo.offline_model import OFFLINE_MODEL, serve_offline_model
from rungent.demo.services import Services
from rungent.demo.settings import (
    DemoOptions,
    Provider,
    UsageError,
    choose_provider,
    database_path,
)
from rungent.demo.terminal import run_once
from rungent.demo.walkthrough import curl_approval, curl_conversation
from rungent.demo.worker import RouteWorker
from rungent.llm import OpenAICompatibleModel

__all__ = ["DemoOptions", "demo", "serve_demo"]

# Long enough to see an answer grow, short enough not to wait for it.
_PAUSE_SECONDS = 0.03
# Background work takes about half a second a day: real enough to be watched.
_PAUSES_PER_DAY = 20
_LOOPBACK = frozenset({"127.0.0.1", "::1", "localhost"})


def demo(
    options: DemoOptions,
    *,
    environ: Mapping[str, str] | None = None,
    pause_seconds: float = _PAUSE_SECONDS,
) -> int:
    """Run the demo and return its exit code: 0, 1 for a failure, 2 for wrong usage, 130 for Ctrl-C.

    With `options.once` it sends that text, shows what happens and ends; otherwise it serves
    until it is interrupted.
    """
    try:
        provider = choose_provider(options, os.environ if environ is None else environ)
    except UsageError as error:
        print(f"rungent demo: {error}", file=sys.stderr)
        return 2
    code = 1
    if options.once is not None:
        _log_in_one_line()
    try:
        code = trio.run(_demo, options, provider, pause_seconds)
    except* OSError as group:
        # The port is taken, or the file cannot be written: no fault of the program.
        for cause in _leaves(group):
            print(f"rungent demo: {cause}", file=sys.stderr)
    except* KeyboardInterrupt:
        code = 130
    return code


def _log_in_one_line() -> None:
    """Logs without tracebacks, beside a conversation. Does nothing where logging is set up."""
    handler = logging.StreamHandler()
    handler.setFormatter(_OneLine("%(levelname)s %(name)s: %(message)s"))
    logging.basicConfig(handlers=[handler], level=logging.WARNING)


class _OneLine(logging.Formatter):
    def formatException(self, ei: object) -> str:
        """Only what is shown instead of a traceback: nothing."""
        del ei
        return ""

    def format(self, record: logging.LogRecord) -> str:
        """The message on one line."""
        return super().format(record).rstrip()


def _leaves(group: BaseExceptionGroup[OSError]) -> Iterator[OSError]:
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            yield from _leaves(error)
        else:
            yield error


async def _demo(options: DemoOptions, provider: Provider | None, pause_seconds: float) -> int:
    path = database_path(options.db)
    print(f"Model: {_model_label(provider)}")
    print(f"Database: {path or 'in memory, gone when the demo ends'}")
    async with (
        open_database(path) as (store, services),
        _open_model(provider, pause_seconds) as model,
    ):
        runtime = build_runtime(store, model, services)
        pause = partial(trio.sleep, pause_seconds * _PAUSES_PER_DAY)
        worker = RouteWorker(runtime, services.trips, services.jobs, pause=pause)
        if options.once is None:
            await serve_demo(runtime, services, worker, host=options.host, port=options.port)
            return 0
        print()
        async with runtime, trio.open_nursery() as nursery:
            # The application's own nursery: cancelling a run never cancels its worker.
            nursery.start_soon(worker.run)
            code = await run_once(runtime, services, options.once, console=Console())
            nursery.cancel_scope.cancel()
        return code


def _model_label(provider: Provider | None) -> str:
    if provider is None:
        return f"{OFFLINE_MODEL} (offline: no language model, it understands a few phrases)"
    return f"{provider.model} at {provider.host}"


@asynccontextmanager
async def _open_model(
    provider: Provider | None, pause_seconds: float
) -> AsyncIterator[OpenAICompatibleModel]:
    if provider is not None:
        yield OpenAICompatibleModel(
            api_key=provider.api_key, base_url=provider.base_url, model=provider.model
        )
        return
    async with trio.open_nursery() as nursery:
        offline = await nursery.start(
            partial(serve_offline_model, pause=partial(trio.sleep, pause_seconds))
        )
        # A proxy from the environment has nothing to do with our own loopback.
        async with httpx.AsyncClient(trust_env=False) as client:
            yield OpenAICompatibleModel(
                api_key=offline.api_key,
                base_url=offline.base_url,
                model=offline.model,
                client=client,
            )
        nursery.cancel_scope.cancel()


async def serve_demo(
    runtime: Runtime,
    services: Services,
    worker: RouteWorker,
    *,
    host: str,
    port: int,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the app until the server stops; port 0 takes a free one.

    Prints the address and two conversations to paste, and reports the address as started. The
    worker runs beside the server, for as long as that does.
    """
    # Imported here, so that the terminal conversation needs no web adapter.
    from rungent.asgi import serve

    if host not in _LOOPBACK:
        print("Warning: the demo has no authentication. Whoever reaches it may use it.")
    app = build_app(runtime, services)
    async with trio.open_nursery() as background:
        async with trio.open_nursery() as nursery:
            url = await nursery.start(partial(serve, app, runtime=runtime, host=host, port=port))
            background.start_soon(worker.run)
            print(f"Open {url}/ in a browser; Ctrl-C ends the demo.")
            print("Without one, paste into another terminal:\n")
            print(curl_conversation(url))
            print("Or delete a day, which has to be approved:\n")
            print(curl_approval(url), flush=True)
            task_status.started(url)
        background.cancel_scope.cancel()
