"""Answers by Spark: selections of an open lake, for all tables and all moments."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from functools import reduce
from operator import and_
from typing import TYPE_CHECKING, Any

from barnabas.lake.asking.selection import Condition, Found, Selection, named
from barnabas.metadata.as_of import EVERYTHING, AsOf

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame

    from barnabas.lake.asking.opened import LakeAsOf, OpenLake


class FrameAnswers:
    """Implements `Answers`."""

    def __init__(self, tables: OpenLake) -> None:
        self.tables = tables
        self._states: dict[tuple[AsOf, str | None], LakeAsOf] = {}

    def cluster_id(self, wanted: str | None = None) -> str:
        return self.tables.cluster_id(wanted)

    def places(self, moment: AsOf = EVERYTHING, cluster_id: str | None = None) -> list[tuple[str, str, int]]:
        return sorted(self.state(moment, cluster_id).places())

    def state(self, moment: AsOf, cluster_id: str | None) -> LakeAsOf:
        """Return the tables as of a moment. They keep what they have found."""
        if (moment, cluster_id) not in self._states:
            self._states[moment, cluster_id] = self.tables.as_of(moment, cluster_id)
        return self._states[moment, cluster_id]

    def select(
        self, selection: Selection, moment: AsOf | None = None, cluster_id: str | None = None, limit: int | None = None
    ) -> Found:
        return found(self.frame(selection, moment, cluster_id, limit))

    def frame(
        self, selection: Selection, moment: AsOf | None = None, cluster_id: str | None = None, limit: int | None = None
    ) -> DataFrame:
        """Return the rows as a DataFrame."""
        name = selection.table
        if moment is None or (moment == EVERYTHING and name not in self.state(moment, cluster_id)):
            rows = self.tables[name]
        else:
            rows = self.state(moment, cluster_id)[name]
        conditions = selection.conditions
        if cluster_id is not None:
            conditions += (Condition("cluster_id", "=", cluster_id),)
        if conditions:
            rows = rows.where(reduce(and_, (_column(rows, each) for each in conditions)))
        if selection.order:
            rows = rows.orderBy(
                *(rows[name[1:]].desc() if name.startswith("-") else rows[name] for name in selection.order)
            )
        if limit is not None:
            rows = rows.limit(limit)
        if selection.columns:
            rows = rows.select(*(rows[name].alias(other) for name, other in named(selection.columns)))
        return rows


def _column(rows: DataFrame, condition: Condition) -> Column:
    from pyspark.sql import functions as f

    column, operator, value = rows[condition.column], condition.operator, condition.value
    if operator == "is null":
        return column.isNull()
    if operator == "in":
        return column.isin(*value)
    bound = f.lit(value)
    if isinstance(value, datetime):
        bound = f.timestamp_micros(f.lit(int(value.timestamp()) * 1_000_000 + value.microsecond))
    return {"=": column == bound, ">=": column >= bound, "<=": column <= bound}[operator]


def found(frame: DataFrame) -> Found:
    """Return the rows of a DataFrame as they arrive. Maps are ordered by key, as stored ones are: Spark returns any order."""

    def fetched() -> Iterator[tuple[Any, ...]]:
        for row in frame.toLocalIterator():
            yield tuple(dict(sorted(value.items())) if type(value) is dict else value for value in row)

    return Found(tuple(frame.columns), fetched())
