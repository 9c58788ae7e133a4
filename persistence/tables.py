"""The eight tables: columns, keys and the rules that the database itself keeps.

The metadata belongs to `RungentBase`. The host owns migrations; nothing is created at run time.
Works on SQLite and PostgreSQL. Source: docs/persistence.md#tables.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any, ClassVar, cast

from sqlalchemy import (
    JSON,
    DateTime,
    Dialect,
    ForeignKey,
    Index,
    MetaData,
    String,
    Table,
    Text,
    TypeDecorator,
    UniqueConstraint,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

__all__ = [
    "IS_ACTIVE",
    "RungentBase",
    "UtcDateTime",
    "actions",
    "events",
    "external_tasks",
    "interactions",
    "messages",
    "runs",
    "sessions",
    "time_text",
    "tool_calls",
]

ID_LENGTH = 64
IS_ACTIVE = text("status IN ('queued', 'running', 'waiting_input', 'waiting_external')")
_PENDING = text("status = 'pending'")


class UtcDateTime(TypeDecorator[datetime]):
    """An aware UTC time with microseconds; SQLite, which has no zones, stores it without one.

    Raises ValueError for a time without a zone: it could mean anything.
    """

    impl = DateTime(timezone=True)
    cache_ok = True

    def bind_processor(self, dialect: Dialect) -> Any:
        """What turns a time into what the driver stores."""
        if dialect.name == "sqlite":
            # Several times the speed of the dialect's own format, in which the result equals it.
            return _to_text
        return super().bind_processor(dialect)

    def result_processor(self, dialect: Dialect, coltype: Any) -> Any:
        """What turns the driver's value into a time, in UTC whatever zone the connection speaks."""
        if dialect.name == "sqlite":
            return _from_text
        return super().result_processor(dialect, coltype)

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time for a database that knows zones."""
        return None if value is None else _utc(value)

    def process_result_value(self, value: datetime | None, dialect: Dialect) -> datetime | None:
        """The time from a database that knows zones."""
        return None if value is None else value.astimezone(UTC)


def _utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError("a stored time needs a zone")
    return moment if moment.tzinfo is UTC else moment.astimezone(UTC)


def time_text(moment: datetime) -> str:
    """A time as SQLite stores it. Raises ValueError for one without a zone."""
    # Without the zone, which is always the same, and which takes longer than all the rest.
    return _utc(moment).replace(tzinfo=None).isoformat(" ", "microseconds")


def _to_text(moment: datetime | None) -> str | None:
    return None if moment is None else time_text(moment)


def _from_text(stored: str | None) -> datetime | None:
    return None if stored is None else datetime.fromisoformat(stored).replace(tzinfo=UTC)


Json = JSON(none_as_null=True).with_variant(JSONB(none_as_null=True), "postgresql")
Id = String(ID_LENGTH)


class RungentBase(DeclarativeBase):
    """Root of Rungent's tables; hand its `metadata` to your migrations."""

    metadata = MetaData(
        naming_convention={
            "fk": "fk_%(table_name)s_%(column_0_name)s",
            "pk": "pk_%(table_name)s",
        }
    )
    type_annotation_map: ClassVar[dict[Any, Any]] = {dict[str, Any]: Json, datetime: UtcDateTime()}


def _cascade(table: str) -> ForeignKey:
    return ForeignKey(f"{table}.id", ondelete="CASCADE")


class SessionRow(RungentBase):
    """A conversation."""

    __tablename__ = "rungent_sessions"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    agent_name: Mapped[str] = mapped_column(String(128))
    subject_id: Mapped[str] = mapped_column(String(256))
    tenant_id: Mapped[str | None] = mapped_column(String(256))
    title: Mapped[str | None] = mapped_column(String(200))
    resource: Mapped[dict[str, Any]]
    message_count: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        Index("ix_rungent_sessions_owner", "subject_id", "tenant_id", "updated_at", "id"),
    )


class RunRow(RungentBase):
    """A run. That a session has at most one active run is a unique index, not a convention."""

    __tablename__ = "rungent_runs"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id, _cascade("rungent_sessions"))
    agent_name: Mapped[str] = mapped_column(String(128))
    status: Mapped[str] = mapped_column(String(32))
    input: Mapped[str] = mapped_column(Text)
    input_message_id: Mapped[str] = mapped_column(Id)
    idempotency_key: Mapped[str | None] = mapped_column(String(200))
    request_digest: Mapped[str | None] = mapped_column(String(64))
    retried_from: Mapped[str | None] = mapped_column(Id)
    event_seq: Mapped[int]
    model_steps: Mapped[int]
    state: Mapped[dict[str, Any]]
    failure_code: Mapped[str | None] = mapped_column(String(64))
    failure_retryable: Mapped[bool | None]
    lease_owner: Mapped[str | None] = mapped_column(Id)
    lease_expires_at: Mapped[datetime | None]
    fencing_token: Mapped[int]
    version: Mapped[int]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("session_id", "idempotency_key", name="uq_rungent_runs_idempotency"),
        Index(
            "uq_rungent_runs_active",
            "session_id",
            unique=True,
            sqlite_where=IS_ACTIVE,
            postgresql_where=IS_ACTIVE,
        ),
        Index("ix_rungent_runs_lease", "status", "lease_expires_at"),
    )


class MessageRow(RungentBase):
    """One entry of a transcript. `payload` holds the calls, and whose result this is."""

    __tablename__ = "rungent_messages"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    session_id: Mapped[str] = mapped_column(Id, _cascade("rungent_sessions"))
    run_id: Mapped[str] = mapped_column(Id, ForeignKey("rungent_runs.id"))
    position: Mapped[int]
    role: Mapped[str] = mapped_column(String(16))
    content: Mapped[str] = mapped_column(Text)
    payload: Mapped[dict[str, Any]]
    public: Mapped[bool]
    created_at: Mapped[datetime]

    __table_args__ = (
        UniqueConstraint("session_id", "position", name="uq_rungent_messages_position"),
    )


class EventRow(RungentBase):
    """One event of a run's log."""

    __tablename__ = "rungent_events"

    run_id: Mapped[str] = mapped_column(Id, _cascade("rungent_runs"), primary_key=True)
    seq: Mapped[int] = mapped_column(primary_key=True)
    id: Mapped[str] = mapped_column(Id)
    type: Mapped[str] = mapped_column(String(64))
    data: Mapped[dict[str, Any]]
    created_at: Mapped[datetime]

    __table_args__ = (UniqueConstraint("id", name="uq_rungent_events_id"),)


class InteractionRow(RungentBase):
    """A question or approval; a run has at most one pending."""

    __tablename__ = "rungent_interactions"

    id: Mapped[str] = mapped_column(Id, primary_key=True)
    run_id: Mapped[str] = mapped_column(Id, _cascade("rungent_runs"))
    tool_call_id: Mapped[str]
    kind: Mapped[str] = mapped_column(String(16))
    request: Mapped[dict[str, Any]]
    frozen_call: Mapped[dict[str, Any] | None] = mapped_column(Json)
    status: Mapped[str] = mapped_column(String(16))
    outcome: Mapped[str | None] = mapped_column(String(32))
    response: Mapped[Any] = mapped_column(Json, nullable=True)
    created_at: Mapped[datetime]
    resolved_at: Mapped[datetime | None]
    expires_at: Mapped[datetime | None]
    state: Mapped[dict[str, Any] | None] = mapped_column(Json)
    responders: Mapped[Any] = mapped_column(Json, nullable=True)
    max_answers: Mapped[int | None]
    answered_by: Mapped[Any] = mapped_column(Json, nullable=True)
    closing: Mapped[str | None] = mapped_column(String(16))

    __table_args__ = (
        Index("ix_rungent_interactions_expiry", "status", "expires_at"),
        Index("ix_rungent_interactions_closing", "closing"),
        Index(
            "uq_rungent_interactions_pending",
            "run_id",
            unique=True,
            sqlite_where=_PENDING,
            postgresql_where=_PENDING,
        ),
    )


class ActionRow(RungentBase):
    """A button of a posted message. Who has read this table has no token."""

    __tablename__ = "rungent_actions"

    token_hash: Mapped[str] = mapped_column(String(64), primary_key=True)
    run_id: Mapped[str] = mapped_column(Id, _cascade("rungent_runs"))
    interaction_id: Mapped[str] = mapped_column(Id)
    params: Mapped[dict[str, Any]]

    __table_args__ = (Index("ix_rungent_actions_run", "run_id"),)


class ToolCallRow(RungentBase):
    """The claim ledger: one row a call that was opened for execution."""

    __tablename__ = "rungent_tool_calls"

    run_id: Mapped[str] = mapped_column(Id, _cascade("rungent_runs"), primary_key=True)
    call_id: Mapped[str] = mapped_column(primary_key=True)
    tool_name: Mapped[str]
    effect: Mapped[str] = mapped_column(String(16))
    arguments: Mapped[dict[str, Any]]
    arguments_digest: Mapped[str] = mapped_column(String(64))
    state: Mapped[str] = mapped_column(String(16))
    code: Mapped[str | None] = mapped_column(String(64))
    idempotency_key: Mapped[str]
    attempts: Mapped[int]
    fencing_token: Mapped[int]
    started_at: Mapped[datetime | None]
    settled_at: Mapped[datetime | None]

    __table_args__ = (
        Index("ix_rungent_tool_calls_arguments", "run_id", "tool_name", "arguments_digest"),
    )


class ExternalTaskRow(RungentBase):
    """Host work that a run waits or waited for."""

    __tablename__ = "rungent_external_tasks"

    run_id: Mapped[str] = mapped_column(Id, _cascade("rungent_runs"), primary_key=True)
    task_id: Mapped[str] = mapped_column(String(200), primary_key=True)
    call_id: Mapped[str]
    state: Mapped[str] = mapped_column(String(16))
    message: Mapped[str] = mapped_column(Text)
    public: Mapped[Any] = mapped_column(Json, nullable=True)
    created_at: Mapped[datetime]
    settled_at: Mapped[datetime | None]


def _table(row: type[RungentBase]) -> Table:
    return cast("Table", row.__table__)


sessions = _table(SessionRow)
runs = _table(RunRow)
messages = _table(MessageRow)
events = _table(EventRow)
interactions = _table(InteractionRow)
actions = _table(ActionRow)
tool_calls = _table(ToolCallRow)
external_tasks = _table(ExternalTaskRow)
