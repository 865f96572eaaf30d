"""A declared column of a data source or a table: name, type and description. The reference is generated from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple


class Column(NamedTuple):
    name: str
    type: str
    doc: str


def ddl(columns: Iterable[Column]) -> str:
    """Return the columns as a schema in Spark's DDL."""
    return schema_of({column.name: column.type for column in columns})


def schema_of(types: Mapping[str, str]) -> str:
    """Return a schema in Spark's DDL, given the type of each column by name."""
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())
