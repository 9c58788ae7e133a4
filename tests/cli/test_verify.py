"""`rungent verify` as a person meets it."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
import trio
from trio.testing import MockClock

from rungent.cli import main
from rungent.persistence import audit
from tests.helpers import OWNER, stage
from tests.persistence.stores import sql_store
from tests.verify.databases import Database, recording

DEADLINE_SECONDS = 300


@pytest.fixture
def database(tmp_path: Path) -> Database:
    """A file with three completed runs."""
    trio.run(record, tmp_path, clock=MockClock(autojump_threshold=0))
    return Database(tmp_path / "runs.db")


async def record(folder: Path) -> None:
    async with recording(folder, ["One.", "Two.", "Three."]) as (on, _):
        for text in ("a", "b", "c"):
            await on.play(text)


def run_ids(database: Database) -> list[str]:
    return [row["id"] for row in database.rows("SELECT id FROM rungent_runs ORDER BY id")]


def test_all_runs_are_checked_when_none_is_named(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--url", database.url]) == 0
    assert capsys.readouterr() == ("3 runs checked, 0 with violations.\n", "")


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_the_first_violation_of_each_run_is_one_line(
    driver: str, database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    first, second, third = run_ids(database)
    database.change("DELETE FROM rungent_events WHERE run_id = :id AND seq = 3", id=first)
    database.change("UPDATE rungent_runs SET status = 'cancelled' WHERE id = :id", id=third)
    url = database.url.replace("sqlite:", f"{driver}:")
    assert main(["verify", "--url", url]) == 1
    assert capsys.readouterr().out.splitlines() == [
        f"{first} seq 4: model.completed: expected seq 3",
        f"{third} row: status is cancelled, but completed in the log",
        "3 runs checked, 2 with violations.",
    ]
    assert main(["verify", "--url", url, second]) == 0
    assert main(["verify", "--url", url, second, first, first]) == 1
    assert capsys.readouterr().out.splitlines()[-1] == "2 runs checked, 1 with violations."


def test_pages_of_runs_and_events_are_followed_to_their_end(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("rungent.persistence.command.PAGE", 2)
    monkeypatch.setattr(audit, "PAGE", 2)
    *_, last = run_ids(database)
    database.change("UPDATE rungent_runs SET model_steps = 9 WHERE id = :id", id=last)
    assert main(["verify", "--url", database.url]) == 1
    assert "3 runs checked, 1 with violations." in capsys.readouterr().out


def test_an_unknown_run_is_wrong_usage(
    database: Database, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["verify", "--url", database.url, "run_x", *run_ids(database)]) == 2
    assert capsys.readouterr() == ("", "rungent verify: there is no run run_x\n")


def test_a_database_without_tables_is_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "empty.db").touch()
    assert main(["verify", "--url", f"sqlite:///{tmp_path / 'empty.db'}"]) == 2
    shown = capsys.readouterr().err
    assert shown == "rungent verify: the database failed: no such table: rungent_runs\n"


def test_progress_is_shown_on_a_terminal_only(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert main(["verify", "--url", database.url]) == 0
    shown = capsys.readouterr()
    assert "2 of 3 runs" in shown.err
    assert shown.out == "3 runs checked, 0 with violations.\n"


@pytest.mark.parametrize("kind", ["psycopg", "asyncpg"])
async def test_a_server_is_verified_while_it_is_written_to(
    kind: str, tmp_path: Path, empty_postgres: str
) -> None:
    store = sql_store(kind, tmp_path, empty_postgres)
    async with store.open(), stage(["One.", "Two."], store=store) as on:
        await on.play()
        other = await on.runtime.create_session(identity=OWNER)
        await on.runtime.create_run(other.id, "hi", identity=OWNER)
        url = f"postgresql+{kind}{empty_postgres}"
        command = [sys.executable, "-m", "rungent", "verify", "--url", url]
        with trio.fail_after(DEADLINE_SECONDS):
            done = await trio.run_process(command, capture_stdout=True, capture_stderr=True)
    assert (done.stdout, done.stderr) == (b"2 runs checked, 0 with violations.\n", b"")


def test_an_interruption_is_no_success(
    database: Database, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object, **__: object) -> str | None:
        raise KeyboardInterrupt

    monkeypatch.setattr(audit, "audit_run", interrupted)
    assert main(["verify", "--url", database.url]) == 130
