"""From a URL on the command line to an executor, without ever repeating its password.

Source: docs/cli.md#databases.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from sqlalchemy import URL, Engine, create_engine, make_url, text
from sqlalchemy.exc import ArgumentError
from sqlalchemy.ext.asyncio import create_async_engine

from rungent.persistence.executors import Executor, choose_executor
from rungent.persistence.sqlite import in_memory

__all__ = ["DatabaseRefused", "opened_executor", "parse_url", "plain_reason"]

CONNECT_SECONDS = 10
_TIMEOUTS = {"psycopg": "connect_timeout", "asyncpg": "timeout"}
# The driver of our extra, whatever SQLAlchemy's own default is.
_DRIVERS = {"postgresql": "postgresql+psycopg"}


class DatabaseRefused(Exception):
    """The database cannot be used; the text is one line and holds no password."""


def parse_url(url: str) -> URL:
    """The URL of a SQLite file or a PostgreSQL database. DatabaseRefused for anything else."""
    try:
        url.encode()
        parsed = make_url(url)
    except (ArgumentError, ValueError):
        raise DatabaseRefused("the URL is not valid; sqlite:///PATH is an example") from None
    if parsed.get_backend_name() not in {"sqlite", "postgresql"}:
        raise DatabaseRefused(f"{parsed.get_backend_name()} is not supported")
    return parsed.set(drivername=_DRIVERS.get(parsed.drivername, parsed.drivername))


@asynccontextmanager
async def opened_executor(url: URL) -> AsyncGenerator[Executor, None]:
    """An executor whose database answers. DatabaseRefused, with the reason, for any other."""
    executor = _executor_for(url)
    executor.start()
    try:
        try:
            await executor.run(_probe)
        except Exception as error:  # noqa: BLE001 - whatever it raises, nobody answers
            raise DatabaseRefused(f"cannot connect: {plain_reason(error, url)}") from None
        yield executor
    finally:
        with trio.CancelScope(shield=True):
            await executor.run(Engine.dispose)
            await executor.stop()


def _executor_for(url: URL) -> Executor:
    try:
        asynchronous = url.get_dialect().is_async
    except ArgumentError:
        raise DatabaseRefused(f"{url.drivername} is not a driver") from None
    create = create_async_engine if asynchronous else create_engine
    try:
        engine = create(url, connect_args=_timeout(url))
    except (ArgumentError, TypeError, ValueError):
        raise DatabaseRefused("the URL has an option that cannot be used") from None
    plain = engine if isinstance(engine, Engine) else engine.sync_engine
    if in_memory(plain):
        raise DatabaseRefused("a database in memory holds nothing to look at")
    if plain.dialect.name == "sqlite" and not _is_file(url):
        # SQLite would create it.
        raise DatabaseRefused(f"there is no file {url.database}")
    return choose_executor(engine, inline=False)


def _timeout(url: URL) -> dict[str, int]:
    option = _TIMEOUTS.get(url.get_driver_name())
    return {} if option is None or option in url.query else {option: CONNECT_SECONDS}


def _is_file(url: URL) -> bool:
    path = url.database or ""
    return path.startswith("file:") or Path(path).is_file()


def _probe(engine: Engine) -> None:
    with engine.connect() as connection:
        connection.execute(text("SELECT 1"))


def plain_reason(error: BaseException, url: URL) -> str:
    """The first line of what the driver says, unless it holds the password."""
    shown = str(getattr(error, "orig", None) or error).strip()
    line = shown.splitlines()[0] if shown else type(error).__name__
    secret = url.password
    return type(error).__name__ if secret and str(secret) in shown else line
