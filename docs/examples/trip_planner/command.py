"""`rungent demo`: put the parts together, then serve them or hold one conversation."""

from __future__ import annotations

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
from rungent.demo.service import TripService
from rungent.demo.settings import (
    DemoOptions,
    Provider,
    UsageError,
    choose_provider,
    database_path,
)
from rungent.demo.terminal import run_once
from rungent.demo.walkthrough import curl_conversation
from rungent.llm import OpenAICompatibleModel

__all__ = ["DemoOptions", "demo", "serve_demo"]

# Long enough to see an answer grow, short enough not to wait for it.
_PAUSE_SECONDS = 0.03
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
    try:
        code = trio.run(_demo, options, provider, pause_seconds)
    except* OSError as group:
        # The port is taken, or the file cannot be written: no fault of the program.
        for cause in _leaves(group):
            print(f"rungent demo: {cause}", file=sys.stderr)
    except* KeyboardInterrupt:
        code = 130
    return code


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
        open_database(path) as (store, trips),
        _open_model(provider, pause_seconds) as model,
    ):
        runtime = build_runtime(store, model, trips)
        if options.once is None:
            await serve_demo(runtime, trips, host=options.host, port=options.port)
            return 0
        print()
        async with runtime:
            return await run_once(runtime, trips, options.once, console=Console())


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
        offline = await nursery.start(partial(serve_offline_model, pause_seconds=pause_seconds))
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
    trips: TripService,
    *,
    host: str,
    port: int,
    task_status: trio.TaskStatus[str] = trio.TASK_STATUS_IGNORED,
) -> None:
    """Serve the app until the server stops; port 0 takes a free one.

    Prints the address and a conversation to paste, and reports the address as started.
    """
    # Imported here, so that the terminal conversation needs no web adapter.
    from rungent.asgi import serve

    if host not in _LOOPBACK:
        print("Warning: the demo has no authentication. Whoever reaches it may use it.")
    app = build_app(runtime, trips)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(partial(serve, app, runtime=runtime, host=host, port=port))
        print(f"Serving on {url} until Ctrl-C. To try it, paste into another terminal:\n")
        print(curl_conversation(url), flush=True)
        task_status.started(url)
