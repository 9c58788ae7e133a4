"""The store over SQLAlchemy, under its short name; everything else is in `rungent.persistence`."""

from rungent.persistence import RungentBase, SQLAlchemyStore

__all__ = ["RungentBase", "SQLAlchemyStore"]
