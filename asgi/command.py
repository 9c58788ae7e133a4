"""`rungent serve`: load an application and serve it until it is told to stop.

Source: docs/cli.md.
"""

from __future__ import annotations

import logging
import sys
from functools import partial
from typing import cast

import trio

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.serve import load_app, serve
from rungent.runtime import Runtime

__all__ = ["run_app"]


def run_app(target: str, *, host: str, port: int, graceful_timeout: float) -> int:
    """Serve the application `module:attribute` and return the exit code.

    2 when the target is no application made with `create_app`, 1 when the address cannot be
    bound; both say why on stderr. A crash of the runtime passes with its traceback.
    """
    try:
        app = load_app(target)
    except ValueError as error:
        return _refused(str(error), 2)
    runtime = _runtime_of(app)
    if runtime is None:
        return _refused(f"{target} was not made with rungent.asgi.create_app", 2)
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
    failures: list[BaseException] = []
    try:
        trio.run(_serve, cast("AsgiApp", app), runtime, host, port, graceful_timeout)
    except* OSError as group:
        failures.append(group)
    if not failures:
        return 0
    return _refused(f"cannot serve on {host}:{port}: {_first(failures[0])}", 1)


def _first(error: BaseException) -> BaseException:
    """The error inside groups of one."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


def _runtime_of(app: object) -> Runtime | None:
    extensions = getattr(app, "extensions", None)
    if not isinstance(extensions, dict):
        return None
    found = cast("dict[str, object]", extensions).get("rungent")
    return found if isinstance(found, Runtime) else None


async def _serve(
    app: AsgiApp, runtime: Runtime, host: str, port: int, graceful_timeout: float
) -> None:
    async with trio.open_nursery() as nursery:
        url = await nursery.start(
            partial(
                serve,
                app,
                runtime=runtime,
                host=host,
                port=port,
                graceful_timeout=graceful_timeout,
            )
        )
        print(f"Serving on {url} until Ctrl-C.", flush=True)


def _refused(message: str, code: int) -> int:
    print(f"rungent serve: {message}", file=sys.stderr)
    return code
