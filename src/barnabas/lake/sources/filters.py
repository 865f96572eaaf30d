"""Filter push-down (`pushFilters`) that also works in a session where it is off.

Spark refuses a reader that defines `pushFilters` while `spark.sql.python.filterPushdown.enabled` is false, even for a count.
It recognises such a reader by the function behind the method. `PushFilters` presents the function of the base class, and Spark
calls it only if push-down is on. It returns all filters: they reduce what is read, and Spark still applies them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from pyspark.sql.datasource import DataSourceReader, Filter


class PushFilters:
    """The value of a reader's attribute `pushFilters`. It calls `take` with the filters."""

    __func__ = staticmethod(DataSourceReader.pushFilters)

    def __init__(self, take: Callable[[list[Filter]], None]) -> None:
        self._take = take

    def __call__(self, filters: list[Filter]) -> Iterable[Filter]:
        given = list(filters)
        self._take(given)
        return given
