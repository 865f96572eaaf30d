"""What the page is made of: chapters, and their sections.

Its one rule: a section has all that belongs to one question: the rows of a table and their order, the queries for chart and
key figures, the chart, and the key figures.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from barnabas.lake.report.content import ClusterContent
from barnabas.lake.report.figures import KeyFigure
from barnabas.lake.report.queries import Query

LIMIT = 100
"""Rows on the page of a table that sets no other limit."""

Chart: TypeAlias = Callable[[ClusterContent, str], str]
"""From a cluster and the id of the plot to SVG; empty: there is nothing to see."""
Finding: TypeAlias = Callable[[ClusterContent], KeyFigure | None]
"""From a cluster to a key figure; None: its tables do not say."""


@dataclass(frozen=True, slots=True)
class Section:
    """A question on the page, and its answer: a chart and the top rows of a table."""

    table: str
    question: str
    order: str
    """The rows that a reader wants first, as in ORDER BY."""
    empty: str
    """What it means that there are no rows."""
    columns: tuple[str, ...] = ()
    """Those on the page, in order; empty: all. Those of all rows are in the file."""
    limit: int = LIMIT
    source: str = ""
    """A table without which this one says nothing, though it may have rows."""
    queries: tuple[Query, ...] = ()
    """What chart and key figures need beside the rows."""
    chart: Chart | None = None
    figures: tuple[Finding, ...] = ()


@dataclass(frozen=True, slots=True)
class Chapter:
    title: str
    sections: tuple[Section, ...]


def top_sql(section: Section) -> str:
    """The top rows of a table, of each cluster."""
    ranked = f"row_number() over (partition by cluster_id order by {section.order})"
    return (
        f"select * except (`_rank`) from (select *, {ranked} as `_rank` from `{section.table}`)"
        f" where `_rank` <= {section.limit} order by cluster_id, `_rank`"
    )
