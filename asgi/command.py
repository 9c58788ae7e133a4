"""`rungent serve`: load an application and serve it until it is told to stop.

Source: docs/cli.md.
"""

from __future__ import annotations

import logging
import socket
import sys
from functools import partial
from typing import cast

import trio

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.serve import load_app, serve
from rungent.asgi.sockets import open_listener
from rungent.asgi.workers import WorkersFailed, serve_workers
from rungent.runtime import Runtime

__all__ = ["run_app"]


def run_app(
    target: str,
    *,
    host: str,
    port: int,
    graceful_timeout: float,
    workers: int = 1,
    fd: int | None = None,
) -> int:
    """Serve the application `module:attribute` and return the exit code.

    With more than one of `workers`, processes of the same command do the work; `fd` is the
    listening socket that such a process inherits. 2 when the target is no application made with
    `create_app`, 1 when the address cannot be bound or workers cannot start; each says why on
    stderr. A crash of the runtime passes with its traceback.
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
        if workers > 1:
            trio.run(_serve_many, target, host, port, graceful_timeout, workers)
        else:
            trio.run(_serve, cast("AsgiApp", app), runtime, host, port, graceful_timeout, fd)
    except* (OSError, WorkersFailed) as group:
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


async def _serve_many(
    target: str, host: str, port: int, graceful_timeout: float, workers: int
) -> None:
    with await open_listener(host, port) as listener:
        # Listening from now on: the kernel keeps early connections until a worker takes them.
        listener.listen()
        port = int(listener.getsockname()[1])
        print(f"Serving on http://{host}:{port} with {workers} workers until Ctrl-C.", flush=True)
        command = [sys.executable, "-m", "rungent", "serve", target, "--host", host]
        command += ["--port", str(port), "--graceful-timeout", str(graceful_timeout)]
        command += ["--fd", str(listener.fileno())]
        await serve_workers(command, workers, listener, grace_seconds=graceful_timeout)


async def _serve(
    app: AsgiApp,
    runtime: Runtime,
    host: str,
    port: int,
    graceful_timeout: float,
    fd: int | None,
) -> None:
    listener = None if fd is None else socket.socket(fileno=fd)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(
            partial(
                serve,
                app,
                runtime=runtime,
                host=host,
                port=port,
                graceful_timeout=graceful_timeout,
                listener=listener,
            )
        )
        if listener is None:
            print(f"Serving on {url} until Ctrl-C.", flush=True)


def _refused(message: str, code: int) -> int:
    print(f"rungent serve: {message}", file=sys.stderr)
    return code
