"""The application behind the page, in a thread of its own beside the browser's driver."""

from __future__ import annotations

import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import httpx
import trio

from rungent import Runtime
from rungent.asgi import serve
from rungent.demo.app import build_app, build_runtime
from rungent.demo.database import open_database
from rungent.demo.offline_model import serve_offline_model
from rungent.demo.services import Services
from rungent.demo.worker import RouteWorker
from rungent.llm import Model, OpenAICompatibleModel
from rungent.store import Store

__all__ = ["MakeRuntime", "OpenModel", "Site", "Valve", "offline", "served"]

OpenModel = Callable[["Valve"], AbstractAsyncContextManager[Model]]
MakeRuntime = Callable[[Store, Model, Services], Runtime]
API = "/api/assistant"


class Valve:
    """Lets those pass who `pass_through`, or so many of them as a test says."""

    def __init__(self) -> None:
        self._open = trio.Event()
        self._open.set()
        self._left = 0

    def hold(self, after: int) -> None:
        """Let `after` more pass, then nobody."""
        self._open, self._left = trio.Event(), after

    def release(self) -> None:
        """Let everybody pass."""
        self._open.set()

    async def pass_through(self) -> None:
        """Return once one may."""
        if self._left > 0:
            self._left -= 1
            await trio.lowlevel.checkpoint()
        else:
            await self._open.wait()


class Site:
    """A served application, as a test in another thread reaches it."""

    def __init__(self, url: str, words: Valve, jobs: Valve, token: trio.lowlevel.TrioToken):
        self.url = url
        self._words, self._jobs, self._token = words, jobs, token

    def hold_words(self, after: int) -> None:
        """The offline model says nothing more `after` so many pieces, until `release_words`."""
        trio.from_thread.run_sync(self._words.hold, after, trio_token=self._token)

    def release_words(self) -> None:
        """The offline model speaks on."""
        trio.from_thread.run_sync(self._words.release, trio_token=self._token)

    def hold_jobs(self) -> None:
        """Background jobs wait before a day, until `release_jobs`."""
        trio.from_thread.run_sync(self._jobs.hold, 0, trio_token=self._token)

    def release_jobs(self) -> None:
        """Background jobs go on."""
        trio.from_thread.run_sync(self._jobs.release, trio_token=self._token)

    def stop(self, shutdown: trio.Event) -> None:
        """End the serving."""
        trio.from_thread.run_sync(shutdown.set, trio_token=self._token)

    def trip(self) -> dict[str, Any]:
        """The trip as the application knows it."""
        trip: dict[str, Any] = self._get("/trip")
        return trip

    def day_of(self, place: str) -> int | None:
        """The day on which a place is planned."""
        for day in self.trip()["days"]:
            if any(shown["name"] == place for shown in day["places"]):
                return int(day["number"])
        return None

    def runs(self) -> list[dict[str, Any]]:
        """The runs of all conversations."""
        sessions = self._get(f"{API}/sessions")
        return [run for one in sessions for run in self._get(f"{API}/sessions/{one['id']}/runs")]

    def wait_completed(self) -> None:
        """Return once the only run is completed."""
        (run,) = self.runs()
        path = f"{API}/runs/{run['id']}/events/stream"
        with httpx.Client(base_url=self.url, trust_env=False, timeout=60) as client:
            assert "run.completed" in client.get(path).text

    def events(self, run_id: str) -> list[str]:
        """The types of a run's stored events."""
        return [event["type"] for event in self._get(f"{API}/runs/{run_id}/events?limit=500")]

    def _get(self, path: str) -> Any:
        with httpx.Client(base_url=self.url, trust_env=False) as client:
            return client.get(path).raise_for_status().json()


@asynccontextmanager
async def offline(words: Valve) -> AsyncIterator[Model]:
    """The offline model, each piece of whose answers passes the valve."""
    async with trio.open_nursery() as nursery:
        model = await nursery.start(partial(serve_offline_model, pause=words.pass_through))
        async with httpx.AsyncClient(trust_env=False) as client:
            yield OpenAICompatibleModel(
                api_key=model.api_key, base_url=model.base_url, model=model.model, client=client
            )
        nursery.cancel_scope.cancel()


@contextmanager
def served(
    open_model: OpenModel = offline,
    make_runtime: MakeRuntime = build_runtime,
    *,
    database: Path | None = None,
    port: int = 0,
) -> Iterator[Site]:
    """The whole application for the length of the block; in memory without a `database`."""
    ready: SimpleQueue[Site | None] = SimpleQueue()
    shutdown = trio.Event()
    failures: list[BaseException] = []

    def run() -> None:
        try:
            trio.run(_serve, open_model, make_runtime, database, port, shutdown, ready.put)
        except BaseException as failure:  # noqa: BLE001 - handed to the thread of the test
            failures.append(failure)
        finally:
            ready.put(None)

    thread = threading.Thread(target=run, name="served application")
    thread.start()
    site = ready.get()
    try:
        if site is not None:
            yield site
    finally:
        if site is not None:
            site.stop(shutdown)
        thread.join()
        if failures:
            raise failures[0]


async def _serve(
    open_model: OpenModel,
    make_runtime: MakeRuntime,
    database: Path | None,
    port: int,
    shutdown: trio.Event,
    tell: Callable[[Site], None],
) -> None:
    words, jobs = Valve(), Valve()
    async with open_database(database) as (store, services), open_model(words) as model:
        runtime = make_runtime(store, model, services)
        worker = RouteWorker(runtime, services.trips, services.jobs, pause=jobs.pass_through)
        app = build_app(runtime, services)
        async with trio.open_nursery() as nursery:
            url = await nursery.start(
                partial(serve, app, runtime=runtime, port=port, shutdown=shutdown)
            )
            nursery.start_soon(worker.run)
            tell(Site(url, words, jobs, trio.lowlevel.current_trio_token()))
            await shutdown.wait()
            nursery.cancel_scope.cancel()
