"""Filters that Spark hands to a reader (`pushFilters`), in a session that has them on as in one that has not.

Spark refuses a reader that defines `pushFilters` while `spark.sql.python.filterPushdown.enabled` is false, even for a count.
It recognises such a reader by the function behind the method; `PushFilters` answers with that of the base class, and is
called by Spark only where push-down is on. All filters are given back: what is read is less, what is kept is Spark's to say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql.datasource import DataSourceReader, Filter


class PushFilters:
    """A reader sets it as its attribute `pushFilters`; `take` is told the filters."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Callable[[list[Filter]], None]) -> None:
        self._take = take

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        given = list(filters)
        self._take(given)
        return given
