"""What feeds what: a data source, the table of its records, and the tables that are made of them.

Its one rule: a stream is a declaration, as a table is. The runner runs whichever it is given; `tables.all` has those of a lake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

Fold = Callable[..., "DataFrame"]
"""fold(records, open_facts, *, shards) -> the facts that ended, and all that are open."""

ERROR = Column("error", "string", "Why the bytes at this place could not be read.")


@dataclass(frozen=True, slots=True)
class Stream:
    source: str
    """The name of the data source."""
    topic: str
    """The topic whose logs it reads; empty: more than one, or none."""
    records: Table
    facts: tuple[Column, ...] = ()
    """The columns of a fact: at least kind, valid_from_offset and valid_to_offset."""
    fold: Fold | None = None
    """None: there are no facts, and tables are made of the records themselves, and appended."""
    tables: tuple[Table, ...] = ()
    """Each of the facts whose kind is its name, or of the records."""
    part: str = ""
    """Which of several streams of the same source it is."""
    keeps_records: bool = True
    """Whether the records stay in the lake, or only what is made of them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Of the source, unless the user says otherwise."""

    @property
    def name(self) -> str:
        return f"{self.source}/{self.part}" if self.part else self.source
