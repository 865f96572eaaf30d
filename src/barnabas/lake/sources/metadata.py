"""The data source `kafka_metadata`: every record of a cluster's metadata log, from files or live, batch and stream.

    spark.read.format("kafka_metadata").load("/var/lib/kafka/data")
    spark.read.format("kafka_metadata").option("bootstrap.controllers", "localhost:9093").load()

Its one rule: it is light. What reads is imported when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.reading.metadata_options import parse_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = (
    Column("cluster_id", "string", "the cluster, as meta.properties has it"),
    Column("node_id", "int", "the node whose copy of the log it is; live: who led"),
    Column("source_file", "string", "the segment or snapshot; live: kafka:// and the controllers"),
    Column("position", "bigint", "where its batch begins in the file"),
    Column("offset", "bigint", "its offset in the log; null in snapshots"),
    Column("base_offset", "bigint", "the first offset of its batch; null in snapshots"),
    Column("last_offset", "bigint", "the last offset of its batch; null in snapshots"),
    Column("batch_index", "int", "which record of its batch it is, from 0"),
    Column("leader_epoch", "int", "the epoch in which it was written"),
    Column("append_time", "timestamp", "when its batch was written"),
    Column("record_type", "string", "PartitionChangeRecord, ...; UnknownRecord99 for a type that is not known"),
    Column("record_version", "int", "the version of its type"),
    Column("is_snapshot", "boolean", "whether it is of a snapshot"),
    Column("snapshot_end_offset", "bigint", "the snapshot stands for all offsets before this one; null in the log"),
    Column("snapshot_epoch", "int", "the epoch of the last of these offsets; null in the log"),
    Column("is_control", "boolean", "whether it is of the quorum itself"),
    Column("committed", "boolean", "whether the quorum has committed it; null if the copies at hand do not say"),
    Column("topic_id", "string", "of a topic, a partition, and what changes them"),
    Column("topic_name", "string", "of a topic and of its configs"),
    Column("partition", "int", "of a partition and what changes it"),
    Column("broker_id", "int", "of brokers and their changes"),
    Column("resource_type", "string", "of configs, ACLs, users and tokens"),
    Column("resource_name", "string", "of configs, ACLs, users and tokens"),
    Column("payload", "string", "the record as JSON, as Kafka's own tools print it; null where it cannot be read"),
    Column("raw", "binary", "its bytes in the log, with secrets masked"),
)
ERROR = Column("error", "string", "why a batch does not count; such a row has only its place")


class KafkaMetadata(DataSource):
    """Spark makes one for each DataFrame."""

    @classmethod
    def name(cls) -> str:
        return "kafka_metadata"

    def schema(self) -> str:
        variant = parse_options(self.options).variant
        return ddl(
            column._replace(type="variant") if column.name == "payload" and variant else column for column in COLUMNS
        )

    def reader(self, schema: StructType) -> DataSourceReader:
        from barnabas.lake.sources.metadata_reading import MetadataReader

        return MetadataReader(parse_options(self.options), schema)

    def streamReader(self, schema: StructType) -> DataSourceStreamReader:  # noqa: N802  (Spark's name)
        from barnabas.lake.sources.metadata_stream import MetadataStreamReader

        return MetadataStreamReader(parse_options(self.options), schema)
