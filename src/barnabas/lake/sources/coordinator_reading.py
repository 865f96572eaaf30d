"""Readers of the data sources over coordinators' logs: they plan and follow logs as `kafka_log` does, with rows of their own.

Its one rule: every record of the log is read, also control records: a fold needs the markers that end transactions. The column
`topic` is that of a committed offset, so filters on it prune nothing.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSourceReader, DataSourceStreamReader, Filter, InputPartition

from barnabas.lake.reading.options import LOG_OPTIONS, LogOptions, Options, log_options
from barnabas.lake.sources.filters import PushFilters
from barnabas.lake.sources.log import check_schema, to_bounds

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from barnabas.lake.declared_column import Column
_OPTIONS = tuple(name for name in LOG_OPTIONS if name not in ("topics", "topicsPattern", "isolation"))


def parse_options(source: str, topic: str, given: Mapping[str, str]) -> LogOptions:
    """Parse the options of a source. Raises OptionError, which names the known options."""
    return replace(log_options(Options(source, given, _OPTIONS)), topics=frozenset({topic}))


class CoordinatorReader(DataSourceReader):
    """Reads, in batch, the offsets of the log's partitions that options and filters leave."""

    def __init__(
        self, source: str, topic: str, given: Mapping[str, str], schema: StructType, columns: tuple[Column, ...]
    ) -> None:
        check_schema(source, schema, columns)
        self._topic = topic
        self._options = parse_options(source, topic, given)
        self._schema = schema
        self._filters: list[Filter] = []
        self.pushFilters = PushFilters(self._take)  # type: ignore[method-assign]

    def _take(self, filters: list[Filter]) -> None:
        if self._options.push_filters:
            self._filters += [given for given in filters if getattr(given, "attribute", None) != ("topic",)]

    def partitions(self) -> list[InputPartition]:
        from barnabas.lake.reading.batch_arrays import warm
        from barnabas.lake.reading.log_planning import plan

        tasks = plan(self._options, to_bounds(self._filters))
        warm(max((sum(share.size for share in task) for task in tasks), default=0))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        yield from read_shares(partition.value, topic=self._topic, schema=self._schema, options=self._options)


def stream_reader(
    source: str, topic: str, given: Mapping[str, str], schema: StructType, columns: tuple[Column, ...]
) -> DataSourceStreamReader:
    """Return the reader that follows the log as a stream."""
    from barnabas.lake.sources.log_stream import LogStreamReader

    check_schema(source, schema, columns)
    options = parse_options(source, topic, given)
    return LogStreamReader(options, partial(read_shares, topic=topic, schema=schema, options=options))


def read_shares(shares: Any, *, topic: str, schema: StructType, options: LogOptions) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's shares, which may be empty."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.lake.reading.coordinator_rows import LOGS, read_rows

    arrow_schema = to_arrow_schema(schema, timezone="UTC")
    yield from read_rows(shares or (), arrow_schema, LOGS[topic], fail_fast=options.fail_fast)
