"""The structure of the page: chapters, and their sections.

Its one rule: a section has everything that belongs to one question: the table and the order of its rows, the queries for chart
and key figures, the chart, and the key figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.lake.declared_column import Column
from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure
from barnabas.lake.report.queries import Query

ALIKE = Column("alike", "bigint", "Number of rows that say the same of other things, this one among them.")
LIMIT = 100
"""The number of rows on the page, unless a section sets another."""

Chart: TypeAlias = Callable[[ClusterContent, str], str]
"""Makes SVG from a cluster and the id of the plot; empty if there is nothing to show."""
Finding: TypeAlias = Callable[[ClusterContent], KeyFigure | None]
"""Makes a key figure from a cluster; None if its tables are missing."""


@dataclass(frozen=True, slots=True)
class Section:
    """A question on the page, answered by a chart and the top rows of a table."""

    table: str
    question: str
    order: str
    """The order of rows, as in ORDER BY: the most interesting first."""
    empty: str
    """What it means if there are no rows."""
    columns: tuple[str, ...] = ()
    """The columns on the page, in order; empty: all. The file always has all."""
    limit: int = LIMIT
    alike: tuple[str, ...] = ()
    """Expressions in which rows are alike: of such rows the first is shown, with their number as `alike`."""
    source: str = ""
    """A table that must have rows; otherwise the rows of this one mean nothing."""
    queries: tuple[Query, ...] = ()
    """Queries that chart and key figures need besides the rows."""
    chart: Chart | None = None
    figures: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    sections: tuple[Section, ...]


def top_sql(section: Section) -> str:
    """Select the top rows of a table, for each cluster."""
    ranked = f"row_number() over (partition by cluster_id order by {section.order})"
    rows = f"`{section.table}`"
    if section.alike:
        of = f"over (partition by cluster_id, {', '.join(section.alike)}"
        numbered = f"select *, count(*) {of}) as `{ALIKE.name}`, row_number() {of} order by {section.order}) as `_n`"
        rows = f"(select * except (`_n`) from ({numbered} from {rows}) where `_n` = 1)"
    return (
        f"select * except (`_rank`) from (select *, {ranked} as `_rank` from {rows})"
        f" where `_rank` <= {section.limit} order by cluster_id, `_rank`"
    )
