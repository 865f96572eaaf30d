"""The data source `kafka_metadata`: every record of a cluster's metadata log, from files or live, batch and stream.

    spark.read.format("kafka_metadata").load("/var/lib/kafka/data")
    spark.read.format("kafka_metadata").option("bootstrap.controllers", "localhost:9093").load()

Its one rule: importing it is cheap. The code that reads is imported when something is read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.reading.metadata_options import parse_options

if TYPE_CHECKING:
    from pyspark.sql.types import StructType

COLUMNS = (
    Column("cluster_id", "string", "the cluster, from meta.properties"),
    Column("node_id", "int", "the node that the copy of the log belongs to; live: the leader"),
    Column("source_file", "string", "the segment or snapshot file; live: kafka:// and the controllers"),
    Column("position", "bigint", "the position of the batch in the file"),
    Column("offset", "bigint", "the offset in the log; null in snapshots"),
    Column("base_offset", "bigint", "the first offset of the batch; null in snapshots"),
    Column("last_offset", "bigint", "the last offset of the batch; null in snapshots"),
    Column("batch_index", "int", "the index of the record in its batch, from 0"),
    Column("leader_epoch", "int", "the leader epoch of the batch"),
    Column("append_time", "timestamp", "when the batch was appended"),
    Column("record_type", "string", "PartitionChangeRecord, ...; UnknownRecord99 for an unknown type"),
    Column("record_version", "int", "the version of the record"),
    Column("is_snapshot", "boolean", "whether the record is from a snapshot"),
    Column("snapshot_end_offset", "bigint", "the snapshot replaces all offsets before this one; null in the log"),
    Column("snapshot_epoch", "int", "the epoch of the last of these offsets; null in the log"),
    Column("is_control", "boolean", "whether it is a control record of the quorum"),
    Column(
        "committed", "boolean", "whether the quorum has committed the record; null if the given copies do not show it"
    ),
    Column("topic_id", "string", "the topic id, in records about topics and partitions"),
    Column("topic_name", "string", "the topic name, in records about topics and their configs"),
    Column("partition", "int", "the partition, in records about partitions"),
    Column("broker_id", "int", "the broker, in records about brokers"),
    Column("resource_type", "string", "the type of resource, in records about configs, ACLs, users and tokens"),
    Column("resource_name", "string", "the name of the resource, in records about configs, ACLs, users and tokens"),
    Column("payload", "string", "the record as JSON, as Kafka's own tools print it; null if it cannot be decoded"),
    Column("raw", "binary", "the bytes of the record, with secrets masked"),
)
ERROR = Column("error", "string", "why a batch cannot be read; other columns of such a row only locate it")


class KafkaMetadata(DataSource):
    """Spark creates one instance for each DataFrame."""

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
