"""Key figures: one number for each question, with a verdict and a sentence, for the page and for the terminal.

Its one rule: a verdict follows only from rows. If a table is missing, its figure is missing too, and does not count as good.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Any

from barnabas.lake.report.content import ClusterContent, Row
from barnabas.lake.report.queries import INVENTORY, Query
from barnabas.lake.report.text import count


class Verdict(Enum):
    ACT = "act"
    """Something is wrong now, or may have lost records."""
    AWARE = "be aware"
    """Something was wrong and is over, or may become wrong."""
    GOOD = "good"
    PLAIN = "for information"


@dataclass(frozen=True, slots=True)
class KeyFigure:
    name: str
    value: str
    verdict: Verdict
    sentence: str
    table: str = ""
    """The table with details: that of the section to which the figure belongs."""


def one(cluster: ClusterContent, query: Query, table: str = "") -> Row | None:
    """Return the row of an answer with one row; zeros if it is empty although its table is known, otherwise None."""
    if query.name in cluster.answers:
        rows = cluster.answers[query.name]
        if rows:
            return rows[0]
        if table in cluster.tables:
            return Zeros()
    return None


class Zeros(dict[str, int]):
    def __missing__(self, key: str) -> int:
        return 0


def counts(cluster: ClusterContent, query: Query) -> Mapping[str, int] | None:
    if query.name not in cluster.answers:
        return None
    return Zeros({str(row["name"]): row["count"] for row in cluster.answers[query.name]})


def total_of(cluster: ClusterContent, table: str) -> int | None:
    return cluster.tables[table].total if table in cluster.tables else None


def is_single(cluster: ClusterContent) -> bool:
    """Return whether the cluster has one broker: then much is true of all brokers, and worth no figure."""
    rows = cluster.answers.get(INVENTORY.name, ())
    return bool(rows) and rows[0]["brokers"] == 1


def judged(bad: Any, now: Any = False) -> Verdict:
    """Return the verdict on something that is or was bad; `now` is whether it calls for action."""
    if now:
        return Verdict.ACT
    return Verdict.AWARE if bad else Verdict.GOOD


def every_row(
    name: str, table: str, good: str, bad: str, source: str = "", *, act: bool = False
) -> Callable[[ClusterContent], KeyFigure | None]:
    """Return a figure for a table in which every row is a problem, one to act on if `act`. No rows mean nothing if its source
    has none either."""

    def make(cluster: ClusterContent) -> KeyFigure | None:
        total = total_of(cluster, table)
        if total is None or (source and not total_of(cluster, source)):
            return None
        return KeyFigure(name, count(total), judged(total, act and total), bad if total else good)

    return make
