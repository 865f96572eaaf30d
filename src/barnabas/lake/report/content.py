"""The content of a report: for each cluster the top rows of gold tables, their totals, and small answers.

Its one rule: it stays small. A section of a chapter defines which rows of a table come first, and how many are shown;
`section.top_sql` selects them for all clusters at once, and `queries.totals_sql` counts all. Times must have a time zone: use
`DataFrame.toArrow().to_pylist()`, since `collect()` returns times without one, which are rejected.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from barnabas.lake.declared_column import Column

Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Rows:
    """The top rows of a table, for one cluster."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    total: int
    """The number of all rows."""
    file: str = ""
    """The path of the file with all rows, relative to the page; empty: there is none."""
    question: str = ""
    """The question of the table; only used for tables without a section."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """The range of the metadata log that the lake has read; all None: nothing."""

    first_offset: int | None = None
    last_offset: int | None = None
    first_time: datetime | None = None
    last_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClusterContent:
    cluster_id: str
    log: LogRange
    tables: Mapping[str, Rows]
    answers: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """The answers of `chapters.QUERIES`, by name."""


@dataclass(frozen=True, slots=True)
class ReportContent:
    clusters: tuple[ClusterContent, ...]


def assemble(
    ranges: Iterable[Row],
    tables: Mapping[str, Rows],
    totals: Iterable[Row],
    answers: Mapping[str, Iterable[Row]],
) -> ReportContent:
    """Split the answers for all clusters by cluster.

    `ranges` is the answer of `RANGE_SQL`, `tables` has the rows of `top_sql` by table, `totals` is the answer of
    `totals_sql`, and `answers` has those of `QUERIES` by name.
    """
    clusters = []
    counts = {(row["cluster_id"], row["name"]): row["total"] for row in totals}
    for log in sorted(ranges, key=lambda row: str(row["cluster_id"])):
        mine = str(log["cluster_id"])
        clusters.append(
            ClusterContent(
                mine,
                LogRange(log["first_offset"], log["last_offset"], log["first_time"], log["last_time"]),
                {
                    name: Rows(
                        table.columns, _of(table.rows, mine), counts.get((mine, name), 0), table.file, table.question
                    )
                    for name, table in tables.items()
                },
                {name: _of(rows, mine) for name, rows in answers.items()},
            )
        )
    return ReportContent(tuple(clusters))


def _of(rows: Iterable[Row], cluster_id: str) -> list[Row]:
    return [row for row in rows if row["cluster_id"] == cluster_id]
