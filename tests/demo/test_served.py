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
from tests.demo.offline import offline_model


async def pasted(path: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """Serve on a free port, run the printed shell lines, stop; what the lines wrote."""
    with trio.fail_after(20):
        async with open_database(path) as (store, trips), offline_model() as model:
            runtime = build_runtime(store, model, trips)
            async with trio.open_nursery() as nursery:
                await nursery.start(partial(serve_demo, runtime, trips, host="127.0.0.1", port=0))
                lines = capsys.readouterr().out.partition("\n\n")[2]
                done = await trio.run_process(
                    ["bash", "-euc", lines],
                    capture_stdout=True,
                    env={**os.environ, "no_proxy": "127.0.0.1"},
                )
                await runtime.stop(0)
                nursery.cancel_scope.cancel()
    return done.stdout.decode()


async def test_the_printed_conversation_works_as_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    output = await pasted(tmp_path / "demo.sqlite3", capsys)
    stream, _, trip = output.partition('"type":"run.completed"')
    assert '"message":"Moved Asakusa Temple to day 2."' in stream
    shown = json.loads(trip[trip.index("\n\n") :])
    assert shown["revision"] == 2
    assert [place["name"] for place in shown["days"][1]["places"]] == [
        "Shibuya Crossing",
        "Ghibli Museum",
        "Asakusa Temple",
    ]
