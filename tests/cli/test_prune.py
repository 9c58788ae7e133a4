"""`rungent db prune` as a person meets it, and what is left of a pruned run."""

from __future__ import annotations

import re
from datetime import timedelta
from pathlib import Path

import pytest
import trio
from sqlalchemy import event
from trio.testing import MockClock

from rungent import ToolCall, ToolContext, tool
from rungent.cli import main
from rungent.llm.port import ModelFailure
from rungent.persistence.command import parse_duration
from rungent.persistence.connecting import opened_executor, parse_url
from rungent.persistence.prune import Pruned, prune
from tests.helpers import OWNER, START, Stage, asking, stage, types
from tests.persistence.stores import opened, sql_store
from tests.verify.databases import Database, recording

LATER = START + timedelta(days=365)
RAN = [ToolCall("save", {"n": 1})]


@tool(effect="write", approval="never")
async def save(ctx: ToolContext, n: int) -> int:
    """Save."""
    return n


@tool(effect="read", approval="never")
async def hang(ctx: ToolContext) -> None:
    """Take for ever."""
    await trio.sleep_forever()


async def record(folder: Path) -> None:
    """Two old runs of 10 and 6 events, and one that goes on."""
    script = [asking(*RAN), "Saved.", "Two.", asking(ToolCall("hang"))]
    async with recording(folder, script, tools=[save, hang]) as (on, _):
        await on.play()
        await on.play()
        await on.until(await on.start(), "tool.started")


@pytest.fixture
def database(tmp_path: Path) -> Database:
    trio.run(record, tmp_path, clock=MockClock(autojump_threshold=0))
    return Database(tmp_path / "runs.db")


def count(database: Database, table: str) -> int:
    (row,) = database.rows(f"SELECT count(*) AS rows FROM rungent_{table}")
    return int(row["rows"])


def lengths(database: Database) -> list[int]:
    found = database.rows("SELECT count(*) AS n FROM rungent_events GROUP BY run_id ORDER BY n")
    return [row["n"] for row in found]


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
@pytest.mark.parametrize("batch", ["1", "7", "1000"])
def test_old_logs_go_and_everything_else_stays(
    driver: str, batch: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    kept = {table: count(database, table) for table in ("sessions", "messages", "runs")}
    ended = sum(lengths(database)) - 4
    url = database.url.replace("sqlite:", f"{driver}:")
    # The virtual clock of the recording stands in the past.
    assert main(["db", "prune", "--url", url, "--older-than", "0s", "--batch", batch]) == 0
    printed = capsys.readouterr().out
    assert re.fullmatch(
        rf"Deleted {ended} events, 1 tool calls, 0 interactions and 0 tasks of 2 runs that ended "
        r"before \d{4}-\d\d-\d\dT[\d:.]+Z\.\n",
        printed,
    )
    assert lengths(database) == [4]
    assert {table: count(database, table) for table in kept} == kept
    assert count(database, "tool_calls") == 1
    assert database.violations() == [None] * 3
    assert main(["db", "prune", "--url", url, "--older-than", "0s"]) == 0
    assert capsys.readouterr().out.startswith("Deleted 0 events")


def test_a_dry_run_counts_the_same_and_deletes_nothing(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    before = lengths(database)
    assert main(["db", "prune", "--url", database.url, "--older-than", "0s", "--dry-run"]) == 0
    printed = capsys.readouterr().out
    assert printed.startswith(f"Would delete {sum(before) - 4} events, 1 tool calls")
    assert " of 2 runs " in printed
    assert lengths(database) == before


def test_what_is_younger_stays(database: Database, capsys: pytest.CaptureFixture[str]) -> None:
    before = lengths(database)
    assert main(["db", "prune", "--url", database.url, "--older-than", "9999w"]) == 0
    assert "Deleted 0 events" in capsys.readouterr().out
    assert lengths(database) == before


async def test_no_transaction_deletes_more_events_than_a_batch(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with recording(tmp_path, ["r"] * 7) as (on, database):
        for _ in range(7):
            await on.play()
        sizes: list[int] = []

        def note(connection: object, cursor: object, statement: str, *_: object) -> None:
            if statement.startswith("DELETE FROM rungent_events"):
                sizes.append(getattr(cursor, "rowcount"))  # noqa: B009 - the driver's own

        async with opened_executor(parse_url(database.url)) as executor:
            await executor.run(lambda engine: event.listen(engine, "after_cursor_execute", note))
            done = await prune(executor, LATER, batch=14, pause_seconds=0)
        assert done == Pruned(runs=7, events=42)
        assert sizes == [12, 12, 12, 6]


async def test_an_interrupted_prune_is_named_and_can_be_repeated(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    async with recording(tmp_path, ["r"]) as (on, database):
        await on.play()
        database.change("DELETE FROM rungent_events WHERE seq <= 3")
        (found,) = database.violations()
        assert found is not None
        assert "interrupted? run it again" in found
        async with opened_executor(parse_url(database.url)) as executor:
            done = await prune(executor, LATER, batch=10, pause_seconds=0)
        assert done == Pruned(runs=1, events=3)
        assert database.violations() == [None]


async def test_a_pruned_run_keeps_its_state_and_its_stream_ends(
    tmp_path: Path, autojump_clock: MockClock
) -> None:
    failing = [ModelFailure("server_error")] * 4
    async with recording(tmp_path, [*failing, "Then."]) as (on, database):
        run_id = await on.start(idempotency_key="k")
        await on.log(run_id)
        before = await on.run(run_id)
        async with opened_executor(parse_url(database.url)) as executor:
            await prune(executor, LATER, batch=10, pause_seconds=0)
        assert await on.run(run_id) == before
        for after in (0, 3, before.event_seq):
            assert await followed(on, run_id, after) == []
        assert await on.start(idempotency_key="k") == run_id
        assert types(await on.play("next"))[-1] == "run.completed"


async def followed(on: Stage, run_id: str, after: int) -> list[object]:
    with trio.fail_after(300):
        stream = on.runtime.stream_events(run_id, identity=OWNER, after_seq=after)
        return [event async for event in stream]


@pytest.mark.parametrize("kind", ["psycopg", "asyncpg"])
async def test_a_server_is_pruned_while_runs_go_on(
    kind: str, tmp_path: Path, empty_postgres: str
) -> None:
    store = sql_store(kind, tmp_path, empty_postgres)
    url = parse_url(f"postgresql+{kind}{empty_postgres}")
    async with opened(store), stage(["r"] * 20, store=store) as on:
        done: list[Pruned] = []
        async with opened_executor(url) as executor:

            async def prune_older(run_id: str) -> None:
                """Everything up to this run, which has ended."""
                before = (await on.run(run_id)).updated_at + timedelta(microseconds=1)
                done.append(await prune(executor, before, batch=5, pause_seconds=0))

            last = (await on.play())[0].run_id
            for _ in range(5):
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(prune_older, last)
                    last = (await on.play())[0].run_id
            await prune_older(last)
        assert sum(done, Pruned()) == Pruned(runs=6, events=36)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [("5s", 5), ("2m", 120), ("3h", 10800), ("30d", 2592000), ("1w", 604800), ("0s", 0)],
)
def test_times_have_a_unit(given: str, seconds: int) -> None:
    assert parse_duration(given).total_seconds() == seconds


@pytest.mark.parametrize("given", ["", "30", "d", "-1d", "1.5h", "1 d", "30D", "1y", "³d"])
def test_other_times_are_wrong_usage(given: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["db", "prune", "--url", "sqlite:///x.db", f"--older-than={given}"]) == 2
    assert "for example 30d" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["999999999w", "999999d"])
def test_times_before_all_time_are_wrong_usage(
    given: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "prune", "--url", "sqlite:///x.db", "--older-than", given]) == 2
    assert "longer than time goes back" in capsys.readouterr().err


@pytest.mark.parametrize("given", ["0", "-1", "many"])
def test_a_batch_is_a_positive_number(given: str) -> None:
    with pytest.raises(SystemExit) as ended:
        main(["db", "prune", "--url", "x", "--older-than", "1d", f"--batch={given}"])
    assert ended.value.code == 2
