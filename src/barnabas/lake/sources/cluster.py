"""The data source `kafka_cluster`: a live cluster, barnabas or Apache Kafka, as tables.

    spark.read.format("kafka_cluster").option("bootstrap.servers", "localhost:9092").option("table", "topics").load()

Its one rule: each row names its observation. A past state of a live cluster cannot be read again, so a stream delivers each
observation at least once, with an id derived from the stream's offset. A batch makes one observation per action.
`reading.cluster_rows` makes the rows, with `barnabas.client.Admin`.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadLimit, SupportsTriggerAvailableNow

from barnabas.lake.declared_column import ddl
from barnabas.lake.reading.cluster_tables import ERROR, TABLES, ClusterOptions, Observation

if TYPE_CHECKING:
    from pyarrow import RecordBatch
    from pyspark.sql.types import StructType


class KafkaCluster(DataSource):
    """A live cluster as tables."""

    @classmethod
    def name(cls) -> str:
        return "kafka_cluster"

    def schema(self) -> str:
        return ddl(TABLES[ClusterOptions.of(self.options).table])

    def reader(self, schema: StructType) -> DataSourceReader:
        return ClusterReader(ClusterOptions.of(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802
        return ClusterStreamReader(ClusterOptions.of(self.options), schema)


class ClusterReader(DataSourceReader):
    """Makes one observation in one task."""

    def __init__(self, options: ClusterOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        _check_columns(options.table, schema)

    def partitions(self) -> list[InputPartition]:
        from secrets import token_hex

        return [InputPartition(Observation(f"{_now_ms()}-{token_hex(4)}"))]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return _read(self._options, self._schema, partition)


class ClusterStreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """Makes an observation whenever `interval` has passed; with available-now, one in each run.

    An offset consists of the number of the last observation and the time at which it was planned.
    """

    NONE_YET: ClassVar[dict[str, Any]] = {"observation": 0, "at_ms": None}

    def __init__(self, options: ClusterOptions, schema: StructType) -> None:
        self._options = options
        self._schema = schema
        self._is_available_now = False
        self._last: dict[str, Any] | None = None
        _check_columns(options.table, schema)

    def initialOffset(self) -> dict[str, Any]:  # noqa: N802
        return self.NONE_YET

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._is_available_now = True

    def latestOffset(self, start: dict[str, Any], limit: ReadLimit) -> dict[str, Any]:  # noqa: N802
        if self._is_available_now:
            if self._last is None:
                self._last = following(start, _now_ms())
            return self._last
        now_ms, at_ms = _now_ms(), start["at_ms"]
        # A clock that was set back must not stop the stream until it has caught up.
        is_due = at_ms is None or not 0 <= now_ms - at_ms < self._options.interval_ms
        return following(start, now_ms) if is_due else start

    def partitions(self, start: dict[str, Any], end: dict[str, Any]) -> list[InputPartition]:
        return [InputPartition(Observation(observation_id(end) or "", observation_id(start), start["at_ms"]))]

    def read(self, partition: InputPartition) -> Iterator[RecordBatch]:
        return _read(self._options, self._schema, partition)


def following(start: Mapping[str, Any], now_ms: int) -> dict[str, Any]:
    """Return the offset after one more observation."""
    return {"observation": start["observation"] + 1, "at_ms": now_ms}


def observation_id(offset: Mapping[str, Any]) -> str | None:
    """
    >>> observation_id({"observation": 3, "at_ms": 1700000000000})
    '3-1700000000000'
    """
    return f"{offset['observation']}-{offset['at_ms']}" if offset["observation"] else None


def _read(options: ClusterOptions, schema: StructType, partition: InputPartition) -> Iterator[RecordBatch]:
    from pyspark.sql.pandas.types import to_arrow_schema

    from barnabas.lake.reading.cluster_rows import read

    assert isinstance(partition.value, Observation)
    return read(options, to_arrow_schema(schema, timezone="UTC"), partition.value)


def _check_columns(table: str, schema: StructType) -> None:
    known = [column.name for column in (*TABLES[table], ERROR)]
    unknown = [name for name in schema.fieldNames() if name not in known]
    if unknown:
        raise ValueError(
            f"table {table} of kafka_cluster has no column {', '.join(unknown)}; it has {', '.join(known)}"
        )


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
