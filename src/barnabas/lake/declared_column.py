"""A column of a data source or a table: its name, its type in Spark's DDL, and what it says; the docs are made from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Column(NamedTuple):
    name: str
    type: str
    doc: str


def ddl(columns: Iterable[Column]) -> str:
    """The columns as a schema, as Spark reads it."""
    return schema_of({column.name: column.type for column in columns})


def schema_of(types: Mapping[str, str]) -> str:
    """The same, of names and types alone."""
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())
