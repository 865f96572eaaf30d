"""What the sources over the logs of coordinators are: the same columns around those of their records, and the same readers.

Its one rule: it is light. What reads is imported when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.declared_column import Column, ddl

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

PLACE_COLUMNS = (
    Column("cluster_id", "string", "the cluster, as meta.properties has it"),
    Column("node_id", "int", "the node whose copy of the log it is"),
    Column("partition", "int", "the partition of the log"),
    Column("offset", "bigint", "the offset in the log"),
    Column("timestamp", "timestamp", "when the coordinator wrote it"),
    Column("leader_epoch", "int", "the leader epoch of its batch"),
    Column("producer_id", "bigint", "the producer whose transaction it is part of; -1: none"),
    Column("producer_epoch", "smallint", "the epoch of that producer; -1: none"),
    Column("is_transactional", "boolean", "whether it counts only when a marker commits it"),
    Column("is_control", "boolean", "whether it is such a marker"),
    Column("control_type", "string", "COMMIT or ABORT, of a marker"),
    Column("record_type", "string", "OffsetCommit, GroupMetadata, TransactionLog, ...; null: a type that is not known"),
    Column("key_version", "int", "the number at the beginning of the key, which is that of the type"),
    Column("record_version", "int", "the version of the value; null: a tombstone"),
    Column("is_tombstone", "boolean", "whether it takes back what was said of its key"),
)
CONTENT_COLUMNS = (
    Column("key", "string", "the key as JSON, as Kafka's own tools print it; null where it cannot be read"),
    Column("payload", "string", "the value as JSON, as Kafka's own tools print it; null where it cannot be read"),
    Column("raw_key", "binary", "the key's bytes"),
    Column("raw_value", "binary", "the value's bytes; null: a tombstone"),
    Column("segment", "string", "the file"),
    Column("position", "bigint", "where in the file its batch begins"),
)
ERROR = Column("error", "string", "why it cannot be read; only in rows of what cannot, and only if asked for")


class CoordinatorLog(DataSource):
    """Every record of the topic of a coordinator."""

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
