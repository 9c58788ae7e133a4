"""A worker process that can be killed: a served runtime, spoken to in lines of JSON.

`python -m tests.kills.worker KIND FOLDER POSTGRES EFFECTS` says `{"ready": true}` and then answers each
request, which has an `id` and an `op`, by `{"id", "result"}` or `{"id", "error"}`; a `follow` sends
`{"id", "event"}` before. SIGTERM stops it in order; it ends by itself when its input does.
"""

from __future__ import annotations

import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import trio
from sqlalchemy.exc import SQLAlchemyError

from rungent import RungentError, Runtime, ToolResult
from tests.helpers import OWNER
from tests.kills.effects import Effects, plain_engine
from tests.persistence.stores import sql_store
from tests.recovery.agent import AGENT, Reader

GRACE_SECONDS = 0.3
PAUSE_SECONDS = 0.1


class Desk:
    """Answers the requests of the clients of one runtime."""

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime

    async def answer(self, request: dict[str, Any]) -> None:
        try:
            tell(id=request["id"], result=await self._perform(request))
        except (RungentError, OSError, SQLAlchemyError) as error:
            if isinstance(error, SQLAlchemyError):
                # The database is away; whoever asked asks again.
                await trio.sleep(PAUSE_SECONDS)
            tell(id=request["id"], error=type(error).__name__)

    async def _perform(self, request: dict[str, Any]) -> Any:
        runtime = self._runtime
        match request["op"]:
            case "create":
                receipt = await runtime.create_run(
                    request["session"], "go", identity=OWNER, idempotency_key="once"
                )
                return receipt.run_id
            case "follow":
                return await self._follow(request)
            case "status":
                return (await runtime.get_run(request["run"], identity=OWNER)).status
            case "approve":
                await runtime.submit_response(
                    request["run"], request["interaction"], "approve", identity=OWNER
                )
            case "complete":
                await runtime.resume_deferred(
                    request["run"], "job", ToolResult(data="ok"), identity=OWNER
                )
            case _:
                raise ValueError(request["op"])

    async def _follow(self, request: dict[str, Any]) -> None:
        stream = self._runtime.stream_events(
            request["run"], identity=OWNER, after_seq=request["after"]
        )
        async for event in stream:
            tell(id=request["id"], event=event.model_dump(mode="json"))


def tell(**message: Any) -> None:
    """Send a line. A request that is answered before is not answered again."""
    print(json.dumps(message), flush=True)


async def lines() -> AsyncIterator[bytes]:
    """The lines of the input."""
    rest = b""
    async with trio.lowlevel.FdStream(os.dup(sys.stdin.fileno())) as stream:
        async for chunk in stream:
            *whole, rest = (rest + chunk).split(b"\n")
            for line in whole:
                yield line


async def main(kind: str, folder: Path, postgres: str, effects_postgres: str) -> None:
    effects = Effects(plain_engine(folder, effects_postgres))
    runtime = Runtime(
        agents=[AGENT],
        model=Reader(PAUSE_SECONDS),
        store=sql_store(kind, folder, postgres),
        dependency_provider=lambda session, run: {"world": effects},
        lease_seconds=1.5,
        lease_renew_seconds=0.5,
        recovery_interval_seconds=0.3,
        follow_poll_seconds=0.2,
        # A worker that needs two seconds to start is killed every second.
        max_recoveries=30,
    )
    desk = Desk(runtime)
    with trio.open_signal_receiver(signal.SIGTERM) as signals:
        async with trio.open_nursery() as nursery:
            await nursery.start(runtime.serve)
            nursery.start_soon(_stop_on_signal, signals, runtime, nursery.cancel_scope)
            tell(ready=True)
            async for line in lines():
                nursery.start_soon(desk.answer, json.loads(line))
            # Whoever started this process is gone.
            nursery.cancel_scope.cancel()


async def _stop_on_signal(
    signals: AsyncIterator[int], runtime: Runtime, scope: trio.CancelScope
) -> None:
    async for _ in signals:
        await runtime.stop(GRACE_SECONDS)
        scope.cancel()
        return


if __name__ == "__main__":
    trio.run(main, sys.argv[1], Path(sys.argv[2]), sys.argv[3], sys.argv[4])
