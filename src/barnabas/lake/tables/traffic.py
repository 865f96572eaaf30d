"""Bronze: what was written to topics, by hour and partition, and frequent keys. The records themselves are not kept.

Only in lakes filled with `lake run --traffic`. Every record of every topic is read once, and keys become text.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.sources import log
from barnabas.lake.tables.bronze import records_table
from barnabas.lake.tables.declaration import Mode, Table

TOP_KEYS = 20
"""Keys kept per partition in each batch of the pipeline: a key that is frequent overall is frequent in most batches."""
_READ = ("cluster_id", "topic", "topic_id", "partition", "offset", "timestamp", "is_control", "key", "size")
_PLACE_OF_ERRORS = ("node_id", "segment", "position")
LOG_RECORDS = records_table(
    "log_records",
    "What was written to topics?",
    tuple(column for column in log.COLUMNS if column.name in _READ + _PLACE_OF_ERRORS),
    ("cluster_id", "topic", "topic_id", "partition", "offset"),
)
"""The columns read from `kafka_log`; these records do not stay in the lake."""

_PLACE = (
    Column("cluster_id", "string", "The cluster."),
    Column("topic", "string", "The topic."),
    Column("topic_id", "string", "The topic's id."),
    Column("partition", "int", "The partition."),
)
TRAFFIC_COLUMNS = (
    *_PLACE,
    Column("hour", "timestamp", "The hour of the records' timestamps."),
    Column("first_offset", "bigint", "The first offset of these records; one hour may have several rows."),
    Column("records", "bigint", "Number of records, without markers of transactions."),
    Column("bytes", "bigint", "Bytes of their keys and values."),
    Column("last_offset", "bigint", "The last offset, which may be that of a marker."),
    Column("first_time", "timestamp", "The earliest timestamp of a record."),
    Column("last_time", "timestamp", "The latest timestamp of a record."),
)
KEY_COUNTS_COLUMNS = (
    *_PLACE,
    Column("first_offset", "bigint", "The first offset of the counted records."),
    Column("key", "string", "The key, as text if it is text, otherwise in hex."),
    Column("records", "bigint", "Number of records with this key."),
)
_KEYS = ["cluster_id", "topic", "topic_id", "partition"]


def traffic(records: DataFrame) -> DataFrame:
    is_data = ~f.col("is_control")
    rows = records.groupBy(*_KEYS, f.date_trunc("hour", "timestamp").alias("hour"))
    return rows.agg(
        f.min("offset").alias("first_offset"),
        f.count_if(is_data).alias("records"),
        f.coalesce(f.sum(f.when(is_data, f.col("size"))), f.lit(0)).alias("bytes"),
        f.max("offset").alias("last_offset"),
        f.min(f.when(is_data, f.col("timestamp"))).alias("first_time"),
        f.max(f.when(is_data, f.col("timestamp"))).alias("last_time"),
    ).select(*(column.name for column in TRAFFIC_COLUMNS))


def key_counts(records: DataFrame) -> DataFrame:
    text = f.when(f.is_valid_utf8(f.col("key").cast("string")), f.col("key").cast("string")).otherwise(f.hex("key"))
    counted = (
        records.where("not is_control and key is not null")
        .groupBy(*_KEYS, "key")
        .agg(f.count("*").alias("records"), f.min("offset").alias("first_offset"))
    )
    order = Window.partitionBy(*_KEYS).orderBy(f.desc("records"), "first_offset")
    top = counted.withColumn("rank", f.row_number().over(order)).where(
        (f.col("rank") <= TOP_KEYS) & (f.col("records") > 1)
    )
    return top.withColumn("key", f.substring(text, 1, 200)).select(*(column.name for column in KEY_COUNTS_COLUMNS))


TRAFFIC = Table(
    "traffic",
    "bronze",
    "How much was written to each partition, hour by hour?",
    TRAFFIC_COLUMNS,
    ("records",),
    traffic,
    Mode.APPEND,
    ("cluster_id", "topic", "topic_id", "partition", "hour", "first_offset"),
)
KEY_COUNTS = Table(
    "key_counts",
    "bronze",
    "Which keys are frequent?",
    KEY_COUNTS_COLUMNS,
    ("records",),
    key_counts,
    Mode.APPEND,
    ("cluster_id", "topic", "topic_id", "partition", "first_offset", "key"),
)
TABLES = (TRAFFIC, KEY_COUNTS)
