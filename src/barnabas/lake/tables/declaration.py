"""What a table is: a question, columns, the function that answers it, and what must hold of its rows.

Its one rule: a declaration does nothing. `build` takes DataFrames and gives one, whoever calls it: a test, the runner or
Spark's declarative pipelines. How its rows get into the lake is said by `mode` and done by the runner.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.lake.declared_column import Column

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


class Mode(Enum):
    """How the rows of one more batch get into the table."""

    APPEND = "append"
    """They are added."""
    HISTORY = "history"
    """Those that have ended (valid_to_offset is not null) are added for good; those still open replace all open ones."""
    FULL = "full"
    """They replace all rows."""


class Reference(NamedTuple):
    """Values of these columns, where not null, have to be in those columns of another table."""

    columns: tuple[str, ...]
    table: str
    its_columns: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Table:
    name: str
    layer: str
    """bronze, silver or gold."""
    question: str
    """What it answers, in a sentence."""
    columns: tuple[Column, ...]
    inputs: tuple[str, ...]
    """The names of the DataFrames that `build` takes, in order."""
    build: Callable[..., DataFrame]
    mode: Mode
    keys: tuple[str, ...]
    """No two rows have the same values of these."""
    not_null: tuple[str, ...] = ()
    references: tuple[Reference, ...] = field(default=())
    since: str = ""
    """Of a table of gold: the column with the time from which on a row holds for good. As of a moment it has the rows of until
    then, and need not be made of tables that can be asked as of one."""

    @property
    def path(self) -> str:
        return f"{self.layer}/{self.name}"
