"""The declaration of a table: a question, columns, the function that computes it, and rules for its rows.

Its one rule: a declaration does nothing by itself. `build` takes DataFrames and returns one, for any caller: a test, the runner
or Spark's declarative pipelines. `mode` says how rows get into the lake; the runner does it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.lake.declared_column import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Mode(Enum):
    """How the rows of another batch get into the table."""

    APPEND = "append"
    """They are added."""
    HISTORY = "history"
    """Ended rows (valid_to_offset is not null) are added for good; open ones replace all open rows."""
    FULL = "full"
    """They replace all rows."""


class Uses(NamedTuple):
    """What a gold table uses of a table that changes more often than it: the distinct values of these columns, by cluster."""

    columns: tuple[str, ...]
    ended: bool = False
    """Of a history: whether rows that have ended count as well, each with whether it has."""


class Reference(NamedTuple):
    """Values of these columns, unless null, must exist in columns of another table."""

    columns: tuple[str, ...]
    table: str
    its_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    layer: str
    """bronze, silver or gold."""
    question: str
    """The question that it answers."""
    columns: tuple[Column, ...]
    inputs: tuple[str, ...]
    """The names of the DataFrames that `build` takes, in order."""
    build: Callable[..., DataFrame]
    mode: Mode
    keys: tuple[str, ...]
    """No two rows have the same values of these columns."""
    not_null: tuple[str, ...] = ()
    references: tuple[Reference, ...] = field(default=())
    since: str = ""
    """In a gold table: the column with the time from which on a row is final. Its state as of a moment is its rows up to then,
    so its inputs need not have states."""
    is_kept: bool = False
    """Whether `lake run` keeps this gold table up to date, so that it can be read without Spark."""
    grows_by: str = ""
    """In a kept table: its rows have this offset, and later records only add rows with later ones."""
    whole: tuple[str, ...] = ()
    """In a table that grows: inputs of which earlier rows are needed as well."""
    uses: Mapping[str, Uses] = field(default_factory=dict)
    """In a kept table: tables on disk of which it does not use everything. What leaves that as it is leaves the rows too."""
    needs: str = ""
    """In a kept table: it has no rows without this table on disk."""
    reopen: Callable[[DataFrame], DataFrame] | None = None
    """In a table of facts: returns its rows as facts again."""

    @property
    def path(self) -> str:
        return f"{self.layer}/{self.name}"
