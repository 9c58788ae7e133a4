"""`rungent serve`: load an application and serve it until it is told to stop.

Source: docs/cli.md.
"""

from __future__ import annotations

import logging
import os
import socket
import sys
from dataclasses import dataclass, fields
from functools import partial
from typing import cast

import trio

from rungent.asgi.dispatch import AsgiApp
from rungent.asgi.host import Pace
from rungent.asgi.serve import load_app, serve, url_of
from rungent.asgi.sockets import open_listener
from rungent.asgi.tls import Tls
from rungent.asgi.workers import WorkersFailed, serve_workers
from rungent.logs import JsonFormatter
from rungent.runtime import Runtime

__all__ = ["ServeOptions", "run_app"]

PASSWORD_VARIABLE = "RUNGENT_KEYFILE_PASSWORD"
TEXT_FORMAT = "%(asctime)s %(levelname)s %(name)s %(message)s"


@dataclass(frozen=True, slots=True, kw_only=True)
class ServeOptions:
    """The command's options; None keeps what the application or its logging says.

    `fd` is the listening socket that a worker process inherits.
    """

    host: str = "127.0.0.1"
    port: int = 8000
    graceful_timeout: float = 5
    write_timeout: float = 20
    workers: int = 1
    certfile: str | None = None
    keyfile: str | None = None
    client_ca: str | None = None
    keepalive: float | None = None
    padding: int | None = None
    log_format: str | None = None
    log_level: str = "info"
    fd: int | None = None

    @property
    def tls(self) -> Tls | None:
        """The certificate. Raises ValueError for files that belong to none."""
        if self.certfile is None:
            if self.keyfile is not None or self.client_ca is not None:
                raise ValueError("--keyfile and --client-ca need --certfile")
            return None
        return Tls(
            certfile=self.certfile,
            keyfile=self.keyfile,
            password=os.environ.get(PASSWORD_VARIABLE),
            client_ca=self.client_ca,
        )

    def for_worker(self, listener: socket.socket) -> list[str]:
        """The arguments of a worker process that serves this socket."""
        given = {field.name: getattr(self, field.name) for field in fields(self)}
        given |= {"port": listener.getsockname()[1], "fd": listener.fileno(), "workers": 1}
        arguments: list[str] = []
        for name, value in given.items():
            if value is not None:
                arguments += [f"--{name.replace('_', '-')}", str(value)]
        return arguments


def run_app(target: str, options: ServeOptions) -> int:
    """Serve the application `module:attribute` and return the exit code.

    With more than one worker, processes of the same command do the work. 2 when the target is
    no application made with `create_app` or options contradict each other, 1 when the address
    cannot be bound, a certificate cannot be used or workers cannot start; each says why on
    stderr. A crash of the runtime passes with its traceback.
    """
    try:
        app, tls = load_app(target), options.tls
        runtime = _prepared(app, options)
    except ValueError as error:
        return _refused(str(error), 2)
    if runtime is None:
        return _refused(f"{target} was not made with rungent.asgi.create_app", 2)
    _log(options)
    if tls is not None:
        try:
            tls.context()
        except OSError as error:
            return _refused(f"cannot use the certificate: {error}", 1)
    failures: list[BaseException] = []
    try:
        if options.workers > 1:
            trio.run(_serve_many, target, options, tls)
        else:
            trio.run(_serve, cast("AsgiApp", app), runtime, options, tls)
    except* (OSError, WorkersFailed) as group:
        failures.append(group)
    if not failures:
        return 0
    address = f"{options.host}:{options.port}"
    return _refused(f"cannot serve on {address}: {_first(failures[0])}", 1)


def _prepared(app: object, options: ServeOptions) -> Runtime | None:
    """The application's runtime, or None; the application keeps the pace of the options."""
    extensions = getattr(app, "extensions", None)
    if not isinstance(extensions, dict):
        return None
    known = cast("dict[str, object]", extensions)
    runtime = known.get("rungent")
    if not isinstance(runtime, Runtime):
        return None
    pace = known["rungent_pace"]
    assert isinstance(pace, Pace)
    known["rungent_pace"] = Pace(
        keepalive_seconds=pace.keepalive_seconds
        if options.keepalive is None
        else options.keepalive,
        padding_bytes=pace.padding_bytes if options.padding is None else options.padding,
    )
    return runtime


def _log(options: ServeOptions) -> None:
    """Log to stderr, unless the application has set logging up and no format is asked for."""
    formatter = logging.Formatter(TEXT_FORMAT)
    if options.log_format == "json":
        formatter = JsonFormatter()
    handler = logging.StreamHandler()
    handler.setFormatter(formatter)
    logging.basicConfig(
        level=options.log_level.upper(), handlers=[handler], force=options.log_format is not None
    )


def _first(error: BaseException) -> BaseException:
    """The error inside groups of one."""
    while isinstance(error, BaseExceptionGroup):
        error = cast("BaseExceptionGroup[BaseException]", error).exceptions[0]
    return error


async def _serve_many(target: str, options: ServeOptions, tls: Tls | None) -> None:
    opened = open_listener(options.host, options.port, write_timeout=options.write_timeout)
    with await opened as listener:
        # Listening from now on: the kernel keeps early connections until a worker takes them.
        listener.listen()
        url = url_of(options.host, listener.getsockname()[1], secure=tls is not None)
        print(f"Serving on {url} with {options.workers} workers until Ctrl-C.", flush=True)
        command = [sys.executable, "-m", "rungent", "serve", target]
        command += options.for_worker(listener)
        await serve_workers(
            command, options.workers, listener, grace_seconds=options.graceful_timeout
        )


async def _serve(app: AsgiApp, runtime: Runtime, options: ServeOptions, tls: Tls | None) -> None:
    listener = None if options.fd is None else socket.socket(fileno=options.fd)
    async with trio.open_nursery() as nursery:
        url = await nursery.start(
            partial(
                serve,
                app,
                runtime=runtime,
                host=options.host,
                port=options.port,
                graceful_timeout=options.graceful_timeout,
                write_timeout=options.write_timeout,
                tls=tls,
                listener=listener,
            )
        )
        if listener is None:
            print(f"Serving on {url} until Ctrl-C.", flush=True)


def _refused(message: str, code: int) -> int:
    print(f"rungent serve: {message}", file=sys.stderr)
    return code
