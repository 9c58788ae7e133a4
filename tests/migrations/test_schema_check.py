"""`rungent db check` finds what a schema lacks, on both databases and through every driver."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine, text

from rungent.cli import main
from rungent.persistence import RungentBase
from rungent.persistence.schema_check import schema_differences

POSTGRES_DRIVERS = ["postgresql", "postgresql+psycopg", "postgresql+asyncpg"]

# What is done to a complete schema of PostgreSQL, and the one line that names it.
CHANGES = [
    ("DROP TABLE rungent_external_tasks", "rungent_external_tasks: the table is missing"),
    (
        "ALTER TABLE rungent_runs DROP COLUMN failure_code",
        "rungent_runs: column failure_code is missing",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN event_seq TYPE TEXT",
        "rungent_runs: column event_seq holds text, not integer",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN status TYPE VARCHAR(8)",
        "rungent_runs: column status holds 8 characters, not 32",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN input TYPE VARCHAR(8)",
        "rungent_runs: column input holds 8 characters, not any number",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN updated_at TYPE TIMESTAMP WITHOUT TIME ZONE",
        "rungent_runs: column updated_at holds times without a zone",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN version DROP NOT NULL",
        "rungent_runs: column version must not accept NULL",
    ),
    (
        "ALTER TABLE rungent_runs ALTER COLUMN lease_owner SET NOT NULL",
        "rungent_runs: column lease_owner must accept NULL",
    ),
    (
        "ALTER TABLE rungent_runs ADD COLUMN colour TEXT NOT NULL",
        "rungent_runs: column colour is unknown and must be filled, so no row can be added",
    ),
    (
        "ALTER TABLE rungent_events DROP CONSTRAINT pk_rungent_events",
        "rungent_events: primary key is missing, not (run_id, seq)",
    ),
    (
        "ALTER TABLE rungent_events DROP CONSTRAINT uq_rungent_events_id",
        "rungent_events: unique (id) is missing (uq_rungent_events_id)",
    ),
    (
        "DROP INDEX ix_rungent_runs_lease",
        "rungent_runs: index on (status, lease_expires_at) is missing (ix_rungent_runs_lease)",
    ),
    (
        "DROP INDEX uq_rungent_interactions_pending",
        (
            "rungent_interactions: unique index on (run_id) where status = 'pending' is missing "
            "(uq_rungent_interactions_pending)"
        ),
    ),
    (
        (
            "DROP INDEX uq_rungent_interactions_pending; CREATE UNIQUE INDEX pending ON "
            "rungent_interactions (run_id) WHERE status = 'resolved'"
        ),
        (
            "rungent_interactions: unique index on (run_id) where status = 'pending' is missing "
            "(uq_rungent_interactions_pending)"
        ),
    ),
    (
        "ALTER TABLE rungent_messages DROP CONSTRAINT fk_rungent_messages_run_id",
        "rungent_messages: foreign key (run_id) to rungent_runs is missing",
    ),
    (
        (
            "ALTER TABLE rungent_events DROP CONSTRAINT fk_rungent_events_run_id; ALTER TABLE "
            "rungent_events ADD FOREIGN KEY (run_id) REFERENCES rungent_runs (id)"
        ),
        (
            "rungent_events: foreign key (run_id) to rungent_runs does NO ACTION on delete, "
            "not CASCADE"
        ),
    ),
]
# Other spellings of the same rules, and what belongs to the host.
HARMLESS = [
    "ALTER TABLE rungent_runs ADD COLUMN colour TEXT",
    "ALTER TABLE rungent_runs ADD COLUMN colour TEXT NOT NULL DEFAULT 'red'",
    "CREATE INDEX mine ON rungent_runs (agent_name)",
    "ALTER TABLE rungent_runs ALTER COLUMN event_seq TYPE BIGINT",
    "ALTER TABLE rungent_runs ALTER COLUMN status TYPE TEXT",
    "ALTER TABLE rungent_events ALTER COLUMN data TYPE JSON",
    (
        "ALTER TABLE rungent_events DROP CONSTRAINT uq_rungent_events_id; "
        "CREATE UNIQUE INDEX other_name ON rungent_events (id)"
    ),
    (
        "DROP INDEX ix_rungent_runs_lease; "
        "CREATE INDEX longer ON rungent_runs (status, lease_expires_at, id)"
    ),
]


@pytest.fixture
def postgres(empty_postgres: str) -> Iterator[Engine]:
    """A complete schema in a namespace of its own, which goes afterwards."""
    admin = create_engine(f"postgresql+psycopg{empty_postgres}")
    with admin.begin() as connection:
        connection.execute(text("CREATE SCHEMA checked"))
    engine = create_engine(
        f"postgresql+psycopg{empty_postgres}",
        connect_args={"options": "-c search_path=checked"},
    )
    RungentBase.metadata.create_all(engine)
    yield engine
    engine.dispose()
    with admin.begin() as connection:
        connection.execute(text("DROP SCHEMA checked CASCADE"))
    admin.dispose()


def change(engine: Engine, statements: str) -> None:
    with engine.begin() as connection:
        for statement in statements.split("; "):
            connection.execute(text(statement))


@pytest.mark.parametrize(("statements", "line"), CHANGES)
def test_each_difference_is_named_in_one_line(statements: str, line: str, postgres: Engine) -> None:
    change(postgres, statements)
    assert schema_differences(postgres) == [line]


@pytest.mark.parametrize("statements", HARMLESS)
def test_what_demands_the_same_or_is_the_hosts_is_no_difference(
    statements: str, postgres: Engine
) -> None:
    change(postgres, statements)
    assert schema_differences(postgres) == []


def create(folder: Path, *statements: str) -> str:
    """The path of a SQLite file with a complete schema, changed."""
    path = folder / "runs.db"
    engine = create_engine(f"sqlite:///{path}")
    RungentBase.metadata.create_all(engine)
    for statement in statements:
        change(engine, statement)
    engine.dispose()
    return str(path)


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_a_complete_file_is_fine(
    driver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "check", "--url", f"{driver}:///{create(tmp_path)}"]) == 0
    assert capsys.readouterr().out == "The schema is complete: 8 tables.\n"


@pytest.mark.parametrize("driver", POSTGRES_DRIVERS)
def test_a_complete_server_is_fine(
    driver: str, empty_postgres: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["db", "check", "--url", f"{driver}{empty_postgres}"]) == 0
    assert capsys.readouterr().out == "The schema is complete: 8 tables.\n"


@pytest.mark.parametrize("driver", ["sqlite", "sqlite+aiosqlite"])
def test_a_file_that_differs_is_described_line_by_line(
    driver: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = create(
        tmp_path,
        "DROP INDEX uq_rungent_runs_active",
        "DROP TABLE rungent_events",
        "CREATE TABLE rungent_events (run_id VARCHAR NOT NULL PRIMARY KEY, seq TEXT, "
        "id VARCHAR NOT NULL, type VARCHAR NOT NULL, data JSON NOT NULL)",
    )
    assert main(["db", "check", "--url", f"{driver}:///{path}"]) == 1
    assert capsys.readouterr().out.splitlines() == [
        (
            "rungent_runs: unique index on (session_id) where status IN ('queued', 'running', "
            "'waiting_input', 'waiting_external') is missing (uq_rungent_runs_active)"
        ),
        "rungent_events: column seq holds text, not integer",
        "rungent_events: column seq must not accept NULL",
        "rungent_events: column created_at is missing",
        "rungent_events: primary key is (run_id), not (run_id, seq)",
        "rungent_events: unique (id) is missing (uq_rungent_events_id)",
        "rungent_events: foreign key (run_id) to rungent_runs is missing",
    ]


def test_an_empty_database_lacks_every_table(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "empty.db"
    path.touch()
    assert main(["db", "check", "--url", f"sqlite:///{path}"]) == 1
    lines = capsys.readouterr().out.splitlines()
    missing = {f"{name}: the table is missing" for name in RungentBase.metadata.tables}
    assert set(lines) == missing


UNUSABLE: Sequence[tuple[str, str]] = [
    ("no url at all", "not valid"),
    ("sqlite://", "in memory"),
    ("sqlite:///nothing.db?timeout=soon", "the URL has an option that cannot be used"),
    ("sqlite:///nowhere/nothing.db", "there is no file nowhere/nothing.db"),
    ("mysql://me:s3cret@127.0.0.1/app", "mysql is not supported"),
    ("postgresql+nodriver://me:s3cret@127.0.0.1/app", "is not a driver"),
    ("postgresql+psycopg://me:s3cret@127.0.0.1:1/app", "cannot connect"),
    ("postgresql+asyncpg://me:s3cret@127.0.0.1:1/app", "cannot connect"),
    ("postgresql+psycopg://me:s3cret@127.0.0.1:1/s3cret?options=s3cret", "cannot connect"),
]


@pytest.mark.parametrize("command", [["db", "check"], ["verify"]])
@pytest.mark.parametrize(("url", "reason"), UNUSABLE)
def test_an_unusable_database_is_one_line_without_a_password(
    command: list[str], url: str, reason: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main([*command, "--url", url]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert re.fullmatch(r"rungent [a-z ]+: .+\n", shown.err)
    assert reason in shown.err
    assert "s3cret" not in shown.err


def test_a_url_that_is_no_text_is_not_valid(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNGENT_DATABASE_URL", "sqlite:///nowhere/\udcff.db")
    assert main(["verify"]) == 2
    assert "the URL is not valid" in capsys.readouterr().err


def test_a_file_that_is_no_database_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("This is not a database, but it is long enough to look like none." * 20)
    assert main(["db", "check", "--url", f"sqlite:///{path}"]) == 2
    assert "not a database" in capsys.readouterr().err


def test_the_url_may_come_from_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("RUNGENT_DATABASE_URL", f"sqlite:///{create(tmp_path)}")
    assert main(["db", "check"]) == 0
    assert "complete" in capsys.readouterr().out
