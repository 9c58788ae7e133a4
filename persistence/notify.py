"""Word of other processes' commits, as PostgreSQL spreads it with LISTEN and NOTIFY.

What arrives is a hint and may get lost with its connection, so whoever listens is told "any run"
whenever listening begins anew, and now and then besides. The connection is the listener's own: it
counts neither in the pool nor among the executor's. Source: docs/persistence.md#following.
"""

from __future__ import annotations

import logging
from collections.abc import Callable
from contextlib import suppress
from typing import Any, Protocol, TypeVar

import trio
from sqlalchemy import Engine

from rungent.persistence.outage import Outage
from rungent.persistence.postgres import CHANNEL, origin, told_runs

__all__ = ["can_listen", "listen"]

logger = logging.getLogger("rungent")
T = TypeVar("T")
Wake = Callable[[str | None], None]
Hear = Callable[[str], None]
LONGEST_PAUSE = 5.0
POLLS_BETWEEN = 10


class Run(Protocol):
    """Runs a job where the engine's connections live."""

    async def __call__(self, job: Callable[[Engine], T], /) -> T:
        """The job's result."""
        ...


def can_listen(engine: Engine) -> bool:
    """Whether the engine's driver is one of those that can be listened with."""
    return engine.dialect.name == "postgresql" and engine.dialect.driver in _EARS


async def listen(run: Run, wake: Wake, poll_seconds: float) -> None:
    """Wake for what other engines commit, until cancelled; listens again after every failure."""
    outage = Outage(min(LONGEST_PAUSE, poll_seconds))
    while True:
        try:
            await _listen_once(run, wake, poll_seconds, outage)
        except Exception as error:  # noqa: BLE001 - drivers differ in what they raise
            if not outage.lasts:
                logger.warning("listening broke off: %s", type(error).__name__)
        outage.failed()
        await outage.wait()
        # As long as nobody tells, this is polling.
        wake(None)


async def _listen_once(run: Run, wake: Wake, poll_seconds: float, outage: Outage) -> None:
    """Listen until the connection ends."""
    listener: list[str] = []

    def hear(payload: str) -> None:
        for run_id in told_runs(payload, listener[0]):
            wake(run_id)

    def begin(engine: Engine) -> _Ear:
        listener.append(origin(engine))
        return _EARS[engine.dialect.driver](engine, hear, token)

    token = trio.lowlevel.current_trio_token()
    ear = await run(begin)
    try:
        outage.ended()
        # Nobody was told of what was committed before.
        wake(None)
        while True:
            with trio.move_on_after(poll_seconds * POLLS_BETWEEN):
                await ear.wait_end()
                return
            wake(None)
    finally:
        with trio.CancelScope(shield=True):
            await run(ear.close)


class _Ear(Protocol):
    """A connection that listens. Made and closed where the engine's connections live."""

    async def wait_end(self) -> None:
        """Hear what comes until the connection ends; then return, or raise the driver's error."""
        ...

    def close(self, engine: Engine) -> None:
        """Let go of the connection."""
        ...


class _AsyncpgEar:
    """The driver reads the socket on the store's own loop, and calls from there."""

    def __init__(self, engine: Engine, hear: Hear, token: trio.lowlevel.TrioToken) -> None:
        self._ended = trio.Event()
        self._token = token
        self._hear = hear
        adapted, self._driver = _own_connection(engine)
        self._driver.add_termination_listener(self._on_end)
        adapted.run_async(self._begin)

    async def wait_end(self) -> None:
        await self._ended.wait()

    def close(self, engine: Engine) -> None:
        self._driver.terminate()

    async def _begin(self, driver: Any) -> None:
        await driver.add_listener(CHANNEL, self._on_notification)

    def _on_end(self, connection: Any) -> None:
        self._soon(self._ended.set)

    def _on_notification(self, connection: Any, pid: int, channel: str, payload: str) -> None:
        self._soon(self._hear, payload)

    def _soon(self, call: Callable[..., None], *arguments: str) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(call, *arguments)


class _PsycopgEar:
    """Nobody uses the connection but this, so its socket can be waited for on trio's own thread."""

    def __init__(self, engine: Engine, hear: Hear, token: trio.lowlevel.TrioToken) -> None:
        self._hear = hear
        self._connection, driver = _own_connection(engine)
        self._libpq = driver.pgconn
        self._connection.autocommit = True
        cursor = self._connection.cursor()
        cursor.execute(f"LISTEN {CHANNEL}")
        cursor.close()

    async def wait_end(self) -> None:
        while True:
            await trio.lowlevel.wait_readable(self._libpq.socket)
            self._libpq.consume_input()
            while (notification := self._libpq.notifies()) is not None:
                self._hear(notification.extra.decode())

    def close(self, engine: Engine) -> None:
        self._connection.close()


_EARS: dict[str, Callable[[Engine, Hear, trio.lowlevel.TrioToken], _Ear]] = {
    "asyncpg": _AsyncpgEar,
    "psycopg": _PsycopgEar,
}


def _own_connection(engine: Engine) -> tuple[Any, Any]:
    """A connection that the pool has forgotten: as the dialect and as the driver know it."""
    pooled = engine.raw_connection()
    connection, driver = pooled.dbapi_connection, pooled.driver_connection
    pooled.detach()
    return connection, driver
