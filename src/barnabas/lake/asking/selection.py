"""A selection: a table, conditions, order and columns; Spark answers it, and so does what needs no Spark. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Literal, NamedTuple, Protocol

from barnabas.metadata.as_of import EVERYTHING, AsOf

Operator = Literal["=", ">=", "<=", "in", "is null"]


class Condition(NamedTuple):
    column: str
    operator: Operator
    value: Any = None
    """A number, a string or a time; for `in`, several."""


class Selection(NamedTuple):
    table: str
    conditions: tuple[Condition, ...] = ()
    order: tuple[str, ...] = ()
    """Columns; `-` before one is descending."""
    columns: tuple[str, ...] = ()
    """Names, or `name as other`; empty: all columns."""


class Found(NamedTuple):
    """The rows of an answer. Their values are Python's; `rows.plain_value` converts them for output."""

    names: tuple[str, ...]
    rows: Iterable[tuple[Any, ...]]


class Answers(Protocol):
    """A lake that answers selections."""

    def cluster_id(self, wanted: str | None = None) -> str:
        """Return the id of the wanted cluster, or of the only one. Raises ValueError."""

    def places(self, moment: AsOf = EVERYTHING, cluster_id: str | None = None) -> list[tuple[str, str, int]]:
        """Return the moment's place in the metadata log of each cluster: cluster id, log and last offset that counts."""

    def select(
        self, selection: Selection, moment: AsOf | None = None, cluster_id: str | None = None, limit: int | None = None
    ) -> Found:
        """Return rows of a table: all that it has, or as of a moment; of all clusters, or of one."""


def named(columns: Iterable[str]) -> Iterator[tuple[str, str]]:
    """Yield each column with the name that it is to have.

    >>> list(named(["name", "valid_from_time as since"]))
    [('name', 'name'), ('valid_from_time', 'since')]
    """
    for column in columns:
        name, _, other = column.partition(" as ")
        yield name, other or name


def as_dicts(found: Found) -> list[dict[str, Any]]:
    return [dict(zip(found.names, row, strict=True)) for row in found.rows]
