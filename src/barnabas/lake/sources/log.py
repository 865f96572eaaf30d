"""The data source `kafka_log`: the records of topics in log directories, with the columns of Spark's own Kafka source first.

Its one rule: it only plans and delegates. `reading.log_planning` decides what is read, `reading.log_reading` reads it, and
`reading.log_rows` makes rows of it. They are imported when needed: Spark imports this module only to know the name.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import (
    DataSource,
    DataSourceReader,
    DataSourceStreamReader,
    EqualNullSafe,
    EqualTo,
    Filter,
    GreaterThan,
    GreaterThanOrEqual,
    In,
    InputPartition,
    LessThan,
    LessThanOrEqual,
    StringStartsWith,
)

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.reading.options import LogOptions, OptionError, parse_log_options, to_ms
from barnabas.lake.sources.filters import PushFilters

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql.types import StructType

    from barnabas.lake.reading.log_planning import Bounds

COLUMNS = (
    Column("key", "binary", "the key; null if there is none"),
    Column("value", "binary", "the value; null in a tombstone"),
    Column("topic", "string", "the name of the topic"),
    Column("partition", "int", "the number of the partition"),
    Column("offset", "bigint", "the offset in the partition"),
    Column("timestamp", "timestamp", "when the record was created or appended"),
    Column("timestampType", "int", "0: the timestamp was set by the producer; 1: by the broker, on append"),
    Column("headers", "array<struct<key:string,value:binary>>", "the headers; null if there are none"),
    Column("topic_id", "string", "the id of the topic, as Kafka writes it"),
    Column("leader_epoch", "int", "the epoch of the leader that appended the batch"),
    Column("producer_id", "bigint", "the id of an idempotent producer; -1 for others"),
    Column("producer_epoch", "smallint", "the epoch of that producer; -1 for others"),
    Column("sequence", "int", "the producer's sequence number of the record; -1 for others"),
    Column("is_transactional", "boolean", "whether the batch is part of a transaction"),
    Column("is_control", "boolean", "whether the record is a marker that ends a transaction"),
    Column("compression", "string", "the codec of the batch: none, gzip, snappy, lz4, zstd"),
    Column("segment", "string", "the file"),
    Column("position", "bigint", "the position of the batch in the file"),
    Column("size", "bigint", "the size of key and value in bytes"),
    Column("cluster_id", "string", "the cluster, from meta.properties or the option clusterId"),
    Column("node_id", "int", "the node that the copy belongs to, from meta.properties or the option nodeId"),
)
ERROR_COLUMN = Column(
    "error", "string", "why a batch could not be read, or what was removed after planning; only if the schema names it"
)


class KafkaLog(DataSource):
    """`spark.read.format("kafka_log").load(log_dir)`, and the same with readStream."""

    @classmethod
    def name(cls) -> str:
        return "kafka_log"

    def schema(self) -> str:
        return ddl(COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        check_schema(self.name(), schema, (*COLUMNS, ERROR_COLUMN))
        return LogReader(schema, parse_log_options(self.name(), self.options))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        from barnabas.lake.sources.log_stream import LogStreamReader

        check_schema(self.name(), schema, (*COLUMNS, ERROR_COLUMN))
        options = parse_log_options(self.name(), self.options)
        return LogStreamReader(options, partial(read_shares, schema=schema, options=options))


class LogReader(DataSourceReader):
    """Reads, in batch, what options and filters leave of the logs."""

    def __init__(self, schema: StructType, options: LogOptions) -> None:
        self._schema = schema
        self._options = options
        self._filters: list[Filter] = []
        # Spark caches the plan of the last filters with the DataFrame, and uses it for its other queries too.
        take = self._filters.extend if options.push_filters else _ignore
        self.pushFilters = PushFilters(take)  # type: ignore[method-assign]

    def partitions(self) -> list[InputPartition]:
        from barnabas.lake.reading.batch_arrays import warm
        from barnabas.lake.reading.log_planning import plan

        tasks = plan(self._options, to_bounds(self._filters))
        warm(max((sum(share.size for share in task) for task in tasks), default=0))
        return [InputPartition(task) for task in tasks]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        bounds = to_bounds(self._filters)
        yield from read_shares(partition.value, schema=self._schema, options=self._options, bounds=bounds)


def _ignore(filters: list[Filter]) -> None:
    """Leave all filters to Spark."""


def read_shares(
    shares: Any, *, schema: StructType, options: LogOptions, bounds: Bounds | None = None
) -> Iterator[pa.RecordBatch]:
    """Yield the rows of a task's shares, which may be empty."""
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.lake.reading.log_planning import EVERYTHING
    from barnabas.lake.reading.log_rows import read_rows

    yield from read_rows(
        shares or (),
        to_arrow_schema(schema, timezone="UTC"),
        isolation=options.isolation,
        fail_fast=options.fail_fast,
        bounds=bounds or EVERYTHING,
    )


def check_schema(source: str, schema: StructType, columns: tuple[Column, ...]) -> None:
    """Raise OptionError unless the schema has only these columns, with their types, in any order."""
    known = {column.name: column.type for column in columns}
    for field in schema.fields:
        if field.name not in known:
            raise OptionError(f"{source} has no column {field.name}; it has {', '.join(known)}")
        kind = field.dataType.simpleString()
        if kind != known[field.name]:
            raise OptionError(f"{source}: column {field.name} has type {known[field.name]}, not {kind}")


# Filters


def to_bounds(filters: list[Filter]) -> Bounds:
    """Return the bounds that filters on topic, partition, offset and timestamp set. Spark applies all filters again."""
    from barnabas.lake.reading.log_planning import EVERYTHING

    bounds = EVERYTHING
    for given in filters:
        match given:
            case EqualTo((name,), value) | EqualNullSafe((name,), value) if value is not None:
                bounds = _with_values(bounds, name, (value,))
            case In((name,), values):
                bounds = _with_values(bounds, name, tuple(value for value in values if value is not None))
            case StringStartsWith(("topic",), str(prefix)) if prefix.startswith(bounds.topic_prefix):
                bounds = replace(bounds, topic_prefix=prefix)
            case GreaterThan((name,), value) | GreaterThanOrEqual((name,), value) if value is not None:
                bounds = _from(bounds, name, value, isinstance(given, GreaterThan))
            case LessThan((name,), value) | LessThanOrEqual((name,), value) if value is not None:
                bounds = _until(bounds, name, value, isinstance(given, LessThanOrEqual))
    return bounds


def _with_values(bounds: Bounds, name: str, values: tuple[Any, ...]) -> Bounds:
    if name == "topic":
        topics = frozenset(values)
        return replace(bounds, topics=topics if bounds.topics is None else topics & bounds.topics)
    if name == "partition":
        numbers = frozenset(values)
        return replace(bounds, partitions=numbers if bounds.partitions is None else numbers & bounds.partitions)
    if name in ("offset", "timestamp") and values:
        return _until(_from(bounds, name, min(values), False), name, max(values), True)
    return bounds


def _from(bounds: Bounds, name: str, value: Any, excluded: bool) -> Bounds:
    if name == "offset" and isinstance(value, int):
        return replace(bounds, start_offset=max(bounds.start_offset or 0, value + excluded))
    if name == "timestamp" and isinstance(value, datetime):
        start = to_ms(value)
        return replace(bounds, start_timestamp=_latest(bounds.start_timestamp, start))
    return bounds


def _until(bounds: Bounds, name: str, value: Any, included: bool) -> Bounds:
    if name == "offset" and isinstance(value, int):
        end = value + included
        return replace(bounds, end_offset=end if bounds.end_offset is None else min(end, bounds.end_offset))
    if name == "timestamp" and isinstance(value, datetime):
        end = to_ms(value) + 1  # Spark filters by microseconds
        return replace(bounds, end_timestamp=end if bounds.end_timestamp is None else min(end, bounds.end_timestamp))
    return bounds


def _latest(known: int | None, value: int) -> int:
    return value if known is None else max(known, value)
