"""Durable runs in SQLite and PostgreSQL. Source: docs/persistence.md."""

from rungent.persistence.store import SQLAlchemyStore as SQLAlchemyStore
from rungent.persistence.tables import RungentBase as RungentBase

__all__ = ["RungentBase", "SQLAlchemyStore"]
