"""The data source `kafka_metadata`: every record of a cluster's metadata log, from files or live, batch and stream.

    spark.read.format("kafka_metadata").load("/var/lib/kafka/data")
    spark.read.format("kafka_metadata").option("bootstrap.controllers", "localhost:9093").load()

Its one rule: it is light. What reads is imported when something is read.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from pyspark.sql.datasource import DataSource, DataSourceReader, DataSourceStreamReader

from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.reading.options import EARLIEST, LATEST, OptionError, Options, ReadOptions, read_options

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

_OPTIONS = (
    "path",
    "paths",
    "copies",
    "voters",
    "startingOffsets",
    "endingOffsets",
    "startingTimestamp",
    "endingTimestamp",
    "maxPartitionBytes",
    "mode",
    "payload",
    "pushFilters",
    "includeSecrets",
    "includeUncommitted",
    "includeBootstrap",
    "failOnDataLoss",
    "maxBytesPerTrigger",
    "maxRowsPerTrigger",
    "clusterId",
    "nodeId",
    "bootstrap.controllers",
)
_CLIENT = "kafka."
_TOPIC = ("__cluster_metadata", 0)


@dataclass(frozen=True, slots=True)
class MetadataOptions(ReadOptions):
    """What is read, and how."""

    client: Mapping[str, str] = field(default_factory=dict)
    """Settings of the client; with bootstrap.controllers the log is read live."""
    merged: bool = False
    voters: frozenset[int] | None = None
    start: int = EARLIEST
    end: int = LATEST
    variant: bool = False
    include_uncommitted: bool = False
    include_bootstrap: bool = False

    @property
    def is_live(self) -> bool:
        return bool(self.client)


def parse_options(given: Mapping[str, str]) -> MetadataOptions:
    """Raises OptionError, which names the options that are known."""
    client = {name[len(_CLIENT) :]: value for name, value in given.items() if name.lower().startswith(_CLIENT)}
    own = {name: value for name, value in given.items() if not name.lower().startswith(_CLIENT)}
    options = Options("kafka_metadata", own, _OPTIONS)
    controllers = options.text("bootstrap.controllers") or client.get("bootstrap.controllers")
    if controllers is None and client:
        raise OptionError("kafka_metadata: options that begin with kafka. need bootstrap.controllers as well")
    if controllers is not None and (options.text("path") or options.text("paths")):
        raise OptionError("kafka_metadata reads directories or a live cluster: give a path or bootstrap.controllers")
    return MetadataOptions(
        paths=options.paths() if controllers is None else (),
        client={} if controllers is None else {**client, "bootstrap.controllers": controllers},
        merged=options.choice("copies", ("all", "merged"), "all") == "merged",
        voters=options.numbers("voters"),
        start=options.offsets("startingOffsets", EARLIEST).of(*_TOPIC),
        end=options.offsets("endingOffsets", LATEST).of(*_TOPIC),
        variant=options.choice("payload", ("json", "variant"), "json") == "variant",
        include_uncommitted=options.boolean("includeUncommitted", False),
        include_bootstrap=options.boolean("includeBootstrap", False),
        **read_options(options),
    )


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
