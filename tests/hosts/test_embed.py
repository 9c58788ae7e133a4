"""A runtime embedded in an asyncio application: calls over the border, crashes, the end."""

from __future__ import annotations

import asyncio
import contextvars
import logging
import signal
import threading
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest
import trio
from fastapi import FastAPI

from rungent import Agent, Identity, Runtime, ShuttingDown, ToolContext, ToolResult, tool
from rungent.asgi import create_app
from rungent.asgi.embed import Embedded
from rungent.fastapi import create_router
from rungent.llm import ModelCompleted, ToolCall
from rungent.store import MemoryStore
from rungent.testing import ScriptedModel
from rungent.testing.scripted import Response
from tests.asgi.apps import GatedModel, identify, runtime_with
from tests.asgi.test_application import CrashingStore
from tests.hosts.endless import PIECE, Endless

PATIENCE = 20
ADA = Identity("ada")
MODES = pytest.mark.parametrize("guest", [False, True], ids=["thread", "guest"])
pytestmark = MODES


def asynchronously(main: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(PATIENCE):
            await main()

    asyncio.run(bounded())


def embedded(guest: bool, runtime: Runtime | None = None, **options: Any) -> Embedded:
    options.setdefault("signals", False)
    return Embedded(runtime or runtime_with(ScriptedModel(["Rome."])), guest=guest, **options)


def test_methods_of_the_runtime_are_called_from_the_loop(guest: bool) -> None:
    async def main() -> None:
        async with embedded(guest) as there:
            runtime = there.runtime
            session = await there.call(runtime.create_session, identity=ADA)
            stream = there.iterate(runtime.stream_run, session.id, "Hi", identity=ADA)
            kinds = [event.type async for event in stream]
            assert (kinds[0], kinds[-1]) == ("run.started", "run.completed")
            with pytest.raises(LookupError):
                await there.call(runtime.get_session, "ses_x", identity=ADA)
            assert await there.call(trio.current_time) > 0
        with pytest.raises(ShuttingDown):
            await there.call(runtime.list_sessions, identity=ADA)

    asynchronously(main)


def test_it_can_be_entered_again_after_it_was_left(guest: bool) -> None:
    there = embedded(guest)

    async def main() -> None:
        for _ in range(2):
            async with there:
                assert there.runtime.serving
                with pytest.raises(RuntimeError, match="embedded already"):
                    await there.__aenter__()
            assert not there.runtime.serving

    asynchronously(main)
    asynchronously(main)


def test_cancelling_a_caller_cancels_its_call_and_waits_for_its_end(guest: bool) -> None:
    async def main() -> None:
        events: list[str] = []
        begun = asyncio.Event()

        async def work() -> None:
            try:
                await there.host(begun.set)
                await trio.sleep_forever()
            finally:
                with trio.CancelScope(shield=True):
                    await trio.lowlevel.checkpoint()
                events.append("cleaned")

        async with embedded(guest) as there:
            task = asyncio.create_task(there.call(work))
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            assert events == ["cleaned"]
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0):
                    await there.call(trio.sleep_forever)

    asynchronously(main)


def test_code_on_trio_awaits_the_host_and_is_cancelled_with_it(guest: bool) -> None:
    async def main() -> None:
        events: list[str] = []
        loop = asyncio.get_running_loop()

        async def service(number: int) -> int:
            assert asyncio.get_running_loop() is loop
            await asyncio.sleep(0)
            return number + 1

        async def slow() -> None:
            events.append("begun")
            try:
                await asyncio.Event().wait()
            finally:
                await asyncio.sleep(0)
                events.append("cancelled")

        async def fails() -> None:
            raise OSError("no such service")

        async def work() -> int:
            with pytest.raises(OSError, match="no such service"):
                await there.host(fails)
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(there.host, slow)
                    while "begun" not in events:
                        await there.host(asyncio.sleep, 0)
                    scope.cancel()
            assert scope.cancelled_caught
            assert events == ["begun", "cancelled"]
            return await there.host(service, 1)

        async with embedded(guest) as there:
            assert await there.call(work) == 2

    asynchronously(main)


def test_a_host_task_that_cancels_itself_is_an_error_and_no_cancellation(guest: bool) -> None:
    async def main() -> None:
        async def gives_up() -> None:
            raise asyncio.CancelledError

        async def work() -> None:
            with pytest.raises(RuntimeError, match="cannot be reached"):
                await there.host(gives_up)

        async with embedded(guest) as there:
            await there.call(work)

    asynchronously(main)


def test_context_variables_follow_a_call_both_ways_but_not_into_runs(guest: bool) -> None:
    variable = contextvars.ContextVar("variable", default="of nobody")
    seen: list[str] = []

    @tool(effect="read", approval="never")
    async def look(ctx: ToolContext) -> ToolResult:
        """Look."""
        seen.append(variable.get())
        return ToolResult()

    script: list[Response] = [ModelCompleted(tool_calls=(ToolCall("look", {}),)), "Done."]
    agent = Agent(name="planner", instructions="-", tools=[look])
    runtime = runtime_with(ScriptedModel(script), agents=[agent])

    async def main() -> None:
        variable.set("of the lifespan")
        async with embedded(guest, runtime) as there:

            async def work() -> str:
                assert await there.host(variable.get) == "of the request"
                return variable.get()

            variable.set("of the request")
            assert await there.call(work) == "of the request"
            session = await there.call(runtime.create_session, identity=ADA)
            async for _ in there.iterate(runtime.stream_run, session.id, "Hi", identity=ADA):
                pass

    asynchronously(main)
    assert seen == ["of nobody"]


class Closed(MemoryStore):
    ready = False

    @asynccontextmanager
    async def open(self) -> AsyncGenerator[MemoryStore]:
        await trio.lowlevel.checkpoint()
        if not self.ready:
            raise OSError("no database")
        yield self


def test_what_prevents_the_start_is_raised_by_entering(guest: bool) -> None:
    async def main() -> None:
        there = embedded(guest, runtime_with(ScriptedModel([]), store=Closed()))
        for _ in range(2):
            with pytest.raises(OSError, match="no database"):
                await there.__aenter__()

    asynchronously(main)


def test_a_start_that_is_cancelled_leaves_nothing_behind(guest: bool) -> None:
    class Slow(MemoryStore):
        closed = False

        @asynccontextmanager
        async def open(self) -> AsyncGenerator[MemoryStore]:
            try:
                await trio.Event().wait()
                yield self
            finally:
                self.closed = True

    store = Slow()

    async def main() -> None:
        there = embedded(guest, runtime_with(ScriptedModel([]), store=store))
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.05):
                await there.__aenter__()
        assert store.closed

    asynchronously(main)


def test_a_crash_is_told_refuses_requests_and_is_raised_at_the_end(
    guest: bool, caplog: pytest.LogCaptureFixture
) -> None:
    told: list[Exception] = []
    store = CrashingStore()
    runtime = runtime_with(ScriptedModel([]), store=store)

    async def main() -> None:
        crashed = asyncio.Event()

        def note(error: Exception) -> None:
            told.append(error)
            crashed.set()

        async with embedded(guest, runtime, on_crash=note) as there:
            waiting = asyncio.create_task(there.call(trio.sleep_forever))
            await there.call(store.crash.set)
            with pytest.raises(ShuttingDown) as refused:
                await waiting
            assert refused.value.__cause__ is there.crash
            await crashed.wait()
            app = there.app(create_app(runtime, identity_resolver=identify))
            start, body = await exchange(app)
            assert start["status"] == 503
            assert dict(start["headers"])[b"retry-after"] == b"1"
            assert b'"shutting_down"' in body["body"]

    with (
        caplog.at_level(logging.ERROR, logger="rungent"),
        pytest.raises(OSError, match="the disk is gone"),
    ):
        asynchronously(main)
    assert [str(error) for error in told] == ["the disk is gone"]
    assert [record.message for record in caplog.records] == ["the embedded runtime crashed"]


async def exchange(app: Any) -> list[Any]:
    """What an application sends for a request without a body."""
    sent: list[Any] = []

    async def receive() -> Any:
        if sent:
            await asyncio.Event().wait()
        return {"type": "http.request", "body": b"", "more_body": False}

    async def send(message: Any) -> None:
        sent.append(message)

    await app(http_scope(), receive, send)
    return sent


def http_scope() -> dict[str, Any]:
    return {
        "type": "http",
        "method": "GET",
        "path": "/sessions",
        "query_string": b"",
        "headers": [(b"x-user", b"ada")],
        "scheme": "http",
        "http_version": "1.1",
    }


def test_leaving_ends_streams_and_gives_runs_back(guest: bool) -> None:
    model = GatedModel()
    runtime = runtime_with(model, shutdown_grace_seconds=0.05)
    runs: list[str] = []

    async def main() -> None:
        async with embedded(guest, runtime) as there:
            session = await there.call(runtime.create_session, identity=ADA)
            other = await there.call(runtime.create_session, identity=ADA)
            receipt = await there.call(runtime.create_run, session.id, "Hi", identity=ADA)
            runs.append(receipt.run_id)
            await there.call(model.asked.wait)
            stream = there.iterate(runtime.stream_events, receipt.run_id, identity=ADA)
            assert (await anext(stream)).type == "run.started"
            there.drain()
            assert "run.completed" not in [event.type async for event in stream]
            with pytest.raises(ShuttingDown):
                await there.call(runtime.create_run, other.id, "Hi", identity=ADA)

    asynchronously(main)
    run = trio.run(partial(runtime.get_run, runs[0], identity=ADA))
    assert (run.status, run.lease) == ("running", None)


def test_a_cancelled_host_stops_without_grace(guest: bool) -> None:
    model = GatedModel()
    runtime = runtime_with(model, shutdown_grace_seconds=1000)

    async def main() -> None:
        async def lifespan() -> None:
            async with embedded(guest, runtime) as there:
                session = await there.call(runtime.create_session, identity=ADA)
                await there.call(runtime.create_run, session.id, "Hi", identity=ADA)
                await there.call(model.asked.wait)
                begun.set()
                await asyncio.Event().wait()

        begun = asyncio.Event()
        task = asyncio.create_task(lifespan())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not runtime.serving

    asynchronously(main)
    assert not [thread for thread in threading.enumerate() if thread.name == "rungent"]


def test_the_bodys_own_error_is_what_is_raised(guest: bool) -> None:
    async def main() -> None:
        with pytest.raises(KeyError):
            async with embedded(guest):
                raise KeyError("mine")

    asynchronously(main)


def test_a_slow_reader_is_felt_on_the_other_side_and_so_is_its_end(guest: bool) -> None:
    endless = Endless()

    async def main() -> None:
        taken: list[int] = []
        full, left = asyncio.Event(), asyncio.Event()

        async def receive() -> Any:
            await left.wait()
            return {"type": "http.disconnect"}

        async def send(message: Any) -> None:
            taken.append(len(message.get("body", b"")))
            if len(taken) == 4:
                full.set()
                await asyncio.Event().wait()

        async with embedded(guest) as there:
            request = asyncio.ensure_future(there.app(endless)(http_scope(), receive, send))
            await full.wait()
            for _ in range(100):
                await there.call(trio.lowlevel.checkpoint)
            assert taken == [0, *[len(PIECE)] * 3]
            assert endless.sent == 2
            left.set()
            await request
            assert endless.left

    asynchronously(main)


def test_cancelling_a_request_ends_the_application_behind_it(guest: bool) -> None:
    endless = Endless()

    async def main() -> None:
        begun = asyncio.Event()

        async def receive() -> Any:
            await asyncio.Event().wait()

        async def send(message: Any) -> None:
            begun.set()
            await asyncio.sleep(0)

        async with embedded(guest) as there:
            request = asyncio.ensure_future(there.app(endless)(http_scope(), receive, send))
            await begun.wait()
            request.cancel()
            with pytest.raises(asyncio.CancelledError):
                await request
            assert endless.over
            assert not endless.left

    asynchronously(main)


def test_what_a_server_raises_while_sending_reaches_the_application(guest: bool) -> None:
    async def main() -> None:
        caught: list[str] = []

        async def app(scope: Any, receive: Any, send: Any) -> None:
            try:
                await send({"type": "http.response.start", "status": 200, "headers": []})
            except OSError as error:
                caught.append(str(error))
                raise

        async def send(message: Any) -> None:
            raise OSError("the client is gone")

        async with embedded(guest) as there:
            with pytest.raises(OSError, match="the client is gone"):
                await there.app(app)(http_scope(), asyncio.Event().wait, send)
        assert caught == ["the client is gone"]

    asynchronously(main)


def test_served_at_the_root_the_lifespan_serves_the_runtime(guest: bool) -> None:
    there = embedded(guest)
    app = there.app(create_app(there.runtime, identity_resolver=identify))
    sent: list[str] = []

    async def main() -> None:
        ending = asyncio.Event()
        received: list[str] = []

        async def receive() -> dict[str, str]:
            if received:
                await ending.wait()
            received.append("")
            return {"type": "lifespan.startup" if len(received) == 1 else "lifespan.shutdown"}

        async def send(message: Any) -> None:
            sent.append(message["type"])
            if message["type"] == "lifespan.startup.complete":
                assert (await exchange(app))[0]["status"] == 200
                ending.set()

        await app({"type": "lifespan"}, receive, send)

    asynchronously(main)
    assert sent == ["lifespan.startup.complete", "lifespan.shutdown.complete"]
    assert not there.runtime.serving


def test_served_at_the_root_a_failed_start_is_told_to_the_server(guest: bool) -> None:
    there = embedded(guest, runtime_with(ScriptedModel([]), store=Closed()))
    app = there.app(create_app(there.runtime, identity_resolver=identify))
    told: list[Any] = []

    async def main() -> None:
        async def receive() -> dict[str, str]:
            return {"type": "lifespan.startup"}

        async def send(message: Any) -> None:
            told.append(message)

        with pytest.raises(OSError, match="no database"):
            await app({"type": "lifespan"}, receive, send)

    asynchronously(main)
    assert [message["type"] for message in told] == ["lifespan.startup.failed"]
    assert "no database" in told[0]["message"]


def test_a_host_that_fails_to_react_to_a_crash_can_still_be_left(guest: bool) -> None:
    store = CrashingStore()
    problems: list[Any] = []

    def fail(error: Exception) -> None:
        raise KeyError("mine")

    async def main() -> None:
        asyncio.get_running_loop().set_exception_handler(
            lambda loop, context: problems.append(context["exception"])
        )
        runtime = runtime_with(ScriptedModel([]), store=store)
        async with embedded(guest, runtime, on_crash=fail) as there:
            await there.call(store.crash.set)
            with pytest.raises(ShuttingDown):
                await there.call(trio.sleep_forever)

    with pytest.raises(OSError, match="the disk is gone"):
        asynchronously(main)
    assert [type(problem) for problem in problems] == [KeyError]


def test_a_router_that_needs_an_embedded_runtime_says_so(guest: bool) -> None:
    del guest
    host = FastAPI()
    runtime = runtime_with(ScriptedModel([]))
    host.include_router(create_router(runtime, identity_resolver=lambda: ADA))

    async def main() -> None:
        with pytest.raises(RuntimeError, match="give the router an Embedded runtime"):
            await exchange(host)

    asynchronously(main)


def test_a_signal_drains_before_the_servers_handler_is_called(guest: bool) -> None:
    order: list[Any] = []

    def servers(number: int, frame: object) -> None:
        order.append(number)

    async def main() -> None:
        async with embedded(guest, signals=True) as there:
            signal.raise_signal(signal.SIGTERM)
            # The drain has begun, so this ends.
            await there.call(until_stopped, there.runtime)
        assert signal.getsignal(signal.SIGTERM) is servers

    before = signal.signal(signal.SIGTERM, servers)
    try:
        asynchronously(main)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert order == [signal.SIGTERM]


async def until_stopped(runtime: Runtime) -> None:
    while runtime.serving:
        await trio.lowlevel.checkpoint()


def test_it_belongs_to_the_loop_that_entered_it(guest: bool) -> None:
    async def main() -> None:
        async with embedded(guest) as there:

            async def elsewhere() -> None:
                with pytest.raises(RuntimeError, match="on the event loop that entered it"):
                    await there.call(trio.lowlevel.checkpoint)

            await asyncio.to_thread(asyncio.run, elsewhere())

    asynchronously(main)
