"""Functions that the charts of all chapters share: rows and answers, bars by name and over time, and spans of timelines.

A function of a chapter makes a chart from the content of a cluster. The caption is the finding, in words and with its number.
If there is nothing to show, there is no chart, and the page says what that means.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.plots import Bar, Count, Figure, Span, horizontal_bars, stacked_bars
from barnabas.lake.report.queries import Query
from barnabas.lake.report.text import clock, count, counted, duration, iso, short

BARS = 8
LANES = 8


def rows_of(cluster: ClusterContent, table: str) -> Sequence[Row]:
    return cluster.tables[table].rows if table in cluster.tables else ()


def answer_of(cluster: ClusterContent, query: Query) -> Sequence[Row]:
    return cluster.answers.get(query.name, ())


def counted_bars(
    cluster: ClusterContent, name: str, query: Query, finding: Callable[[Row, int], str], described: str, axis: str
) -> str:
    """Return bars of an answer that counts something by name."""
    rows = sorted(answer_of(cluster, query), key=lambda row: (-row["count"], str(row["name"])))[:BARS]
    if not rows:
        return ""
    figure = Figure(name, finding(rows[0], sum(row["count"] for row in rows)), described, axis)
    return horizontal_bars(figure, [Bar(str(row["name"]), (row["count"],), count(row["count"])) for row in rows], short)


def over_time_bars(cluster: ClusterContent, name: str, query: Query, noun: str, described: str) -> str:
    """Return stacked bars of an answer that counts something per interval, by series."""
    rows = answer_of(cluster, query)
    if not rows:
        return ""
    width = timedelta(seconds=rows[0]["seconds"])
    pieces: dict[datetime, int] = {}
    for row in rows:
        pieces[row["start"]] = pieces.get(row["start"], 0) + row["count"]
    busiest = max(pieces, key=lambda start: (pieces[start], start))
    total, each = sum(pieces.values()), duration(width.total_seconds() / 60)
    finding = f"{counted(total, noun)}; most at {clock(busiest)}: {count(pieces[busiest])} within {each}"
    first = min(pieces)
    last = max(pieces) + width
    return stacked_bars(
        Figure(
            name, finding, f"{described} from {iso(first)} to {iso(last)}.", f"{noun}s in each {each}, by time (UTC)"
        ),
        (Count(row["start"], row["series"], row["count"]) for row in rows),
        width,
        first,
        last,
    )


def index_of(names: Sequence[str], name: str) -> int:
    return names.index(name) if name in names else 6


def present(names: Sequence[str], rows: Sequence[Row], column: str) -> list[str]:
    """Return the names for a legend; empty for those that no row has."""
    found = {row[column] for row in rows}
    return [name if name in found else "" for name in names]


def span_of(row: Row, series: int, what: str, text: str = "") -> Span:
    hint = f"{what}: {iso(row['began'])} to {iso(row['until'])}, {duration(row['minutes'])}"
    return Span(row["began"], row["until"], series, hint, row.get("is_over", True), text)


def range_of(cluster: ClusterContent, rows: Sequence[Row]) -> tuple[datetime, datetime]:
    """Return the range of the log, extended to that of the rows."""
    starts, ends = [row["began"] for row in rows], [row["until"] for row in rows]
    if cluster.log.first_time is not None and cluster.log.last_time is not None:
        starts.append(cluster.log.first_time)
        ends.append(cluster.log.last_time)
    return min(starts), max(ends)
