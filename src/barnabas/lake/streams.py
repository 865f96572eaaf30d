"""What feeds what: a data source, the table of its records, the fold that makes facts of them, and the tables of those facts.

Its one rule: a stream is a declaration, as a table is. The runner runs whichever it is given; `STREAMS` are those of a lake.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from barnabas.lake.column import Column
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
    """The topic whose logs it reads."""
    records: Table
    facts: tuple[Column, ...]
    """The columns of a fact: at least kind, valid_from_offset and valid_to_offset."""
    fold: Fold
    tables: tuple[Table, ...]
    """Each of the facts whose kind is its name."""


@dataclass(frozen=True, slots=True)
class Feed:
    """A stream of one cluster, and how its source is to be read."""

    cluster_id: str
    stream: Stream
    options: Mapping[str, str]

    @property
    def name(self) -> str:
        return f"{self.cluster_id}/{self.stream.source}"

    @property
    def paths(self) -> tuple[str, ...]:
        """The directories that it reads, if it reads directories."""
        return tuple(json.loads(self.options.get("paths", "[]")))
