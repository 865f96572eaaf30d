"""What all views share: rows and answers of a cluster, how much of them is shown, and bars of what is counted by name."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.plots import Bar, Figure, horizontal_bars
from barnabas.lake.report.text import count, short

BARS = 8
LANES = 8

View = Callable[[ClusterContent, str], str]
"""Of a cluster, a plot with this name; empty: there is nothing to see."""


def rows_of(cluster: ClusterContent, table: str) -> Sequence[Row]:
    return cluster.tables[table].rows if table in cluster.tables else ()


def answer_of(cluster: ClusterContent, name: str) -> Sequence[Row]:
    return cluster.answers.get(name, ())


def counted_bars(
    cluster: ClusterContent, name: str, answer: str, finding: Callable[[Row, int], str], described: str, axis: str
) -> str:
    """Bars of an answer that counts something by name."""
    rows = sorted(answer_of(cluster, answer), key=lambda row: (-row["count"], str(row["name"])))[:BARS]
    if not rows:
        return ""
    figure = Figure(name, finding(rows[0], sum(row["count"] for row in rows)), described, axis)
    return horizontal_bars(figure, [Bar(str(row["name"]), (row["count"],), count(row["count"])) for row in rows], short)
