"""The common part of the data sources over coordinators' logs: columns around those of their records, and readers.

Its one rule: importing it is cheap. The code that reads is imported when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.declared_column import Column, ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PLACE_COLUMNS = (
    Column("cluster_id", "string", "the cluster, from meta.properties"),
    Column("node_id", "int", "the node that the copy of the log belongs to"),
    Column("partition", "int", "the partition of the log"),
    Column("offset", "bigint", "the offset in the log"),
    Column("timestamp", "timestamp", "when the coordinator wrote the record"),
    Column("leader_epoch", "int", "the leader epoch of the batch"),
    Column("producer_id", "bigint", "the producer whose transaction the record is part of; -1: none"),
    Column("producer_epoch", "smallint", "the epoch of that producer; -1: none"),
    Column("is_transactional", "boolean", "whether the record takes effect only if a marker commits it"),
    Column("is_control", "boolean", "whether the record is such a marker"),
    Column("control_type", "string", "COMMIT or ABORT, in a marker"),
    Column("record_type", "string", "OffsetCommit, GroupMetadata, TransactionLog, ...; null: an unknown type"),
    Column("key_version", "int", "the number at the start of the key, which identifies the type"),
    Column("record_version", "int", "the version of the value; null: a tombstone"),
    Column("is_tombstone", "boolean", "whether the record deletes its key"),
)
CONTENT_COLUMNS = (
    Column("key", "string", "the key as JSON, as Kafka's own tools print it; null if it cannot be decoded"),
    Column("payload", "string", "the value as JSON, as Kafka's own tools print it; null if it cannot be decoded"),
    Column("raw_key", "binary", "the key's bytes"),
    Column("raw_value", "binary", "the value's bytes; null: a tombstone"),
    Column("segment", "string", "the file"),
    Column("position", "bigint", "the position of the batch in the file"),
)
ERROR = Column("error", "string", "why the record or batch cannot be read; only if the schema names this column")


class CoordinatorLog(DataSource):
    """All records of a coordinator's topic."""

    NAME: ClassVar[str]
    TOPIC: ClassVar[str]
    COLUMNS: ClassVar[tuple[Column, ...]]

    @classmethod
    def name(cls) -> str:
        return cls.NAME

    def schema(self) -> str:
        return ddl(self.COLUMNS)

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.lake.sources.coordinator_reading import CoordinatorReader

        return CoordinatorReader(self.NAME, self.TOPIC, self.options, schema, (*self.COLUMNS, ERROR))

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        from barnabas.lake.sources.coordinator_reading import stream_reader

        return stream_reader(self.NAME, self.TOPIC, self.options, schema, (*self.COLUMNS, ERROR))
