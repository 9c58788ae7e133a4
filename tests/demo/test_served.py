"""The served demo: what it prints works when it is pasted into a shell."""

from __future__ import annotations

import json
import os
from functools import partial
from pathlib import Path

import pytest
import trio

from rungent.demo.app import build_runtime
from rungent.demo.command import serve_demo
from rungent.demo.database import open_database
from rungent.demo.worker import RouteWorker
from tests.demo.offline import offline_model


async def pasted(
    path: Path, capsys: pytest.CaptureFixture[str], number: int
) -> tuple[str, str, str]:
    """Serve on a free port, run one of the printed conversations, stop.

    What the shell lines wrote, on standard output and on standard error, and the trip.
    """
    with trio.fail_after(300):
        async with open_database(path) as (store, services), offline_model() as model:
            runtime = build_runtime(store, model, services)
            worker = RouteWorker(runtime, services.trips, services.jobs)
            serve = partial(serve_demo, runtime, services, worker, host="127.0.0.1", port=0)
            async with trio.open_nursery() as nursery:
                await nursery.start(serve)
                paragraphs = capsys.readouterr().out.split("\n\n")
                done = await trio.run_process(
                    ["bash", "-euc", paragraphs[1 + 2 * number]],
                    capture_stdout=True,
                    capture_stderr=True,
                    env={**os.environ, "no_proxy": "127.0.0.1"},
                )
                await runtime.stop(0)
                nursery.cancel_scope.cancel()
            trip = await services.trips.snapshot("tokyo")
    return done.stdout.decode(), done.stderr.decode(), trip


async def test_the_printed_conversation_works_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, _, _ = await pasted(tmp_path / "demo.sqlite3", capsys, 0)
    stream, _, trip = output.partition('"type":"run.completed"')
    assert '"message":"Moved Asakusa Temple to day 2."' in stream
    shown = json.loads(trip[trip.index("\n\n") :])
    assert shown["revision"] == 2
    assert [place["name"] for place in shown["days"][1]["places"]] == [
        "Shibuya Crossing",
        "Ghibli Museum",
        "Asakusa Temple",
    ]


async def test_the_printed_approval_works_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output, before, trip = await pasted(tmp_path / "demo.sqlite3", capsys, 1)
    assert "Delete day 3? 2 places become unplanned: Ueno Park, Tsukiji Market." in before
    assert '"status":"running"' in output
    assert '"outcome":"approved"' in output
    assert '"type":"run.completed"' in output
    assert "Day 3" not in trip
