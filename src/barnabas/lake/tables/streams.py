"""Streams: a data source, the table of its records, and the tables made from them.

Its one rule: a stream is a declaration, like a table. The runner runs any streams; `tables.all` has those of a lake.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Table

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

    from barnabas.lake.facts.touched import Narrowing

Fold = Callable[..., "DataFrame"]
"""fold(records, open_facts, *, shards) -> the facts that ended, and all that are open."""

ERROR = Column("error", "string", "Why the bytes at this place could not be read.")


@dataclass(frozen=True, slots=True)
class Stream:
    source: str
    """The name of the data source."""
    topic: str
    """The topic whose logs it reads; empty: several, or none."""
    records: Table
    facts: tuple[Column, ...] = ()
    """The columns of a fact: at least kind, valid_from_offset and valid_to_offset."""
    fold: Fold | None = None
    """None: there are no facts; tables are made from the records, and appended to."""
    tables: tuple[Table, ...] = ()
    """Each is made from the facts whose kind is its name, or from the records."""
    part: str = ""
    """Distinguishes several streams of the same source."""
    keeps_records: bool = True
    """Whether the records stay in the lake, or only what is made from them."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Options of the source, which the user can override."""
    narrowing: Narrowing | None = None
    """How a few records are folded with the facts that they touch alone, without Spark; None: they are not."""

    @property
    def name(self) -> str:
        return f"{self.source}/{self.part}" if self.part else self.source
