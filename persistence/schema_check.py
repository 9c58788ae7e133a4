"""Is the database what the metadata says? A comparison that needs no migration tool.

It names what is missing and what differs; tables, columns and indexes of the host are its own.
Names of constraints do not matter, what they demand does. Source: docs/migrations.md#check.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from sqlalchemy import (
    JSON,
    Boolean,
    Column,
    DateTime,
    Engine,
    Index,
    Inspector,
    Integer,
    LargeBinary,
    Numeric,
    String,
    Table,
    TypeDecorator,
    UniqueConstraint,
    inspect,
)
from sqlalchemy.types import TypeEngine

from rungent.persistence.tables import RungentBase

__all__ = ["schema_differences"]

_FAMILIES: tuple[tuple[type[TypeEngine[Any]], str], ...] = (
    (JSON, "JSON"),
    (Boolean, "boolean"),
    (Integer, "integer"),
    (DateTime, "time"),
    (String, "text"),
    (Numeric, "number"),
    (LargeBinary, "bytes"),
)


def schema_differences(engine: Engine) -> list[str]:
    """One line for each thing that is missing or differs; empty when all is there."""
    with engine.connect() as connection:
        inspector = inspect(connection)
        present = set(inspector.get_table_names())
        found: list[str] = []
        for table in RungentBase.metadata.sorted_tables:
            if table.name not in present:
                found.append(f"{table.name}: the table is missing")
                continue
            found += [f"{table.name}: {line}" for line in _table_differences(inspector, table)]
    return found


def _table_differences(inspector: Inspector, table: Table) -> Iterator[str]:
    yield from _columns(inspector, table)
    yield from _primary_key(inspector, table)
    yield from _uniques(inspector, table)
    yield from _indexes(inspector, table)
    yield from _foreign_keys(inspector, table)


# --- columns -------------------------------------------------------------------------------------


def _columns(inspector: Inspector, table: Table) -> Iterator[str]:
    zones = inspector.dialect.name == "postgresql"
    stored = {column["name"]: column for column in inspector.get_columns(table.name)}
    for column in table.columns:
        if column.name not in stored:
            yield f"column {column.name} is missing"
            continue
        found = stored[column.name]
        yield from (
            f"column {column.name} {line}"
            for line in _type_differences(column, found["type"], zones)
        )
        if bool(found["nullable"]) != bool(column.nullable):
            yield f"column {column.name} must {'' if column.nullable else 'not '}accept NULL"
    for name in sorted(stored.keys() - set(table.columns.keys())):
        if not stored[name]["nullable"] and stored[name].get("default") is None:
            yield f"column {name} is unknown and must be filled, so no row can be added"


def _type_differences(column: Column[Any], found: TypeEngine[Any], zones: bool) -> Iterator[str]:
    wanted = _plain(column.type)
    family, other = _family(wanted), _family(found)
    if family != other:
        yield f"holds {other}, not {family}"
        return
    if not zones:
        # SQLite keeps neither zones nor lengths.
        return
    if isinstance(wanted, DateTime) and not getattr(found, "timezone", False):
        yield "holds times without a zone"
    limit: int | None = getattr(found, "length", None)
    needed: int | None = getattr(wanted, "length", None)
    if isinstance(wanted, String) and limit is not None and (needed is None or limit < needed):
        yield f"holds {limit} characters, not {'any number' if needed is None else needed}"


def _plain(kind: TypeEngine[Any]) -> TypeEngine[Any]:
    return kind.impl_instance if isinstance(kind, TypeDecorator) else kind


def _family(kind: TypeEngine[Any]) -> str:
    for base, name in _FAMILIES:
        if isinstance(kind, base):
            return name
    return str(kind)


# --- keys and indexes ----------------------------------------------------------------------------


def _primary_key(inspector: Inspector, table: Table) -> Iterator[str]:
    wanted = [column.name for column in table.primary_key.columns]
    found = inspector.get_pk_constraint(table.name)["constrained_columns"]
    if found != wanted:
        shown = f"({', '.join(found)})" if found else "missing"
        yield f"primary key is {shown}, not ({', '.join(wanted)})"


def _uniques(inspector: Inspector, table: Table) -> Iterator[str]:
    """Uniqueness of whole columns: a constraint and a unique index are equally good."""
    found = {frozenset(u["column_names"]) for u in inspector.get_unique_constraints(table.name)}
    for index in inspector.get_indexes(table.name):
        if index["unique"] and _where(index.get("dialect_options", {})) is None:
            found.add(frozenset(str(name) for name in index["column_names"]))
    for constraint in table.constraints:
        if isinstance(constraint, UniqueConstraint):
            names = [column.name for column in constraint.columns]
            if frozenset(names) not in found:
                yield f"unique ({', '.join(names)}) is missing ({constraint.name})"


def _indexes(inspector: Inspector, table: Table) -> Iterator[str]:
    found = [
        (list(i["column_names"]), bool(i["unique"]), _where(i.get("dialect_options", {})))
        for i in inspector.get_indexes(table.name)
    ]
    for index in sorted(table.indexes, key=lambda index: str(index.name)):
        names = [column.name for column in index.columns]
        where = _wanted_where(index)
        if index.unique and (names, True, where) not in found:
            only = f" where {index.dialect_options['sqlite']['where']}" if where else ""
            yield f"unique index on ({', '.join(names)}){only} is missing ({index.name})"
        if not index.unique and not _served(names, found):
            yield f"index on ({', '.join(names)}) is missing ({index.name})"


def _served(names: Sequence[str], found: Sequence[tuple[list[str | None], bool, Any]]) -> bool:
    """Whether an index for all rows begins with these columns."""
    return any(columns[: len(names)] == names and where is None for columns, _, where in found)


def _wanted_where(index: Index) -> object:
    where = index.dialect_options["sqlite"]["where"]
    return None if where is None else _predicate(str(where))


def _where(options: Mapping[str, Any]) -> object:
    """The condition of a partial index as it was read from either database."""
    where = options.get("postgresql_where", options.get("sqlite_where"))
    return None if where is None else _predicate(str(where))


def _predicate(condition: str) -> object:
    """`status IN ('a', 'b')` in every spelling as the column and its values; else the text.

    PostgreSQL gives it back as `((status)::text = ANY (ARRAY['a'::text, …]))`.
    """
    bare = re.sub(r"::[a-z]+( varying)?(\(\d+\))?(\[\])?", "", condition)
    bare = re.sub(r'[()\[\]"\s]+', " ", bare).strip()
    form = re.fullmatch(
        r"(?:\w+\.)?(\w+) (?:IN|= ANY ARRAY|=) ((?:'[^']*'[ ,]*)+)", bare, re.IGNORECASE
    )
    return bare if form is None else (form[1], frozenset(re.findall(r"'([^']*)'", form[2])))


# --- foreign keys --------------------------------------------------------------------------------


def _foreign_keys(inspector: Inspector, table: Table) -> Iterator[str]:
    found = {
        (
            tuple(key["constrained_columns"]),
            key["referred_table"],
            tuple(key["referred_columns"]),
        ): _action(key.get("options", {}).get("ondelete"))
        for key in inspector.get_foreign_keys(table.name)
    }
    for column in table.columns:
        for key in column.foreign_keys:
            there = key.column
            named = f"foreign key ({column.name}) to {there.table.name}"
            identity = ((column.name,), there.table.name, (there.name,))
            if identity not in found:
                yield f"{named} is missing"
            elif found[identity] != _action(key.ondelete):
                yield f"{named} does {found[identity]} on delete, not {_action(key.ondelete)}"


def _action(ondelete: str | None) -> str:
    return (ondelete or "NO ACTION").upper()
