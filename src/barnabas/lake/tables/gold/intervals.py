"""What the tables of gold share: neighbours in a history, and how long something lasted. Pure functions over DataFrames.

Its one rule: nobody's clock is asked. What is still true lasts until the last time that the cluster's log tells of.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f


def with_before(history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Each row of a history with `before`, the columns of the row that it follows without a gap (else null), and with
    `is_last`: it ended, and nothing follows it without a gap."""
    order = Window.partitionBy("cluster_id", *keys).orderBy("valid_from_offset")
    row = f.struct(*columns, "valid_to_offset")
    before, after = f.lag(row).over(order), f.lead("valid_from_offset").over(order)
    follows = before["valid_to_offset"] == f.col("valid_from_offset")
    return history.withColumns(
        {
            "before": f.when(follows, before),
            "is_last": f.col("valid_to_offset").isNotNull() & ~after.eqNullSafe(f.col("valid_to_offset")),
        }
    )


def islands(history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """A history of some columns alone: rows that follow each other without a gap, and are equal in them, become one."""
    rows = with_before(history, keys, columns)
    same = [f.col("before")[column].eqNullSafe(f.col(column)) for column in columns]
    begins = f.when(f.col("before").isNotNull() & reduce(and_, same), 0).otherwise(1)
    order = Window.partitionBy("cluster_id", *keys).orderBy("valid_from_offset")
    numbered = rows.withColumn("island", f.sum(begins).over(order.rowsBetween(Window.unboundedPreceding, 0)))
    merged = numbered.groupBy("cluster_id", *keys, *columns, "island").agg(
        f.min("valid_from_offset").alias("valid_from_offset"),
        f.min_by("valid_from_time", "valid_from_offset").alias("valid_from_time"),
        f.min_by("valid_from_epoch", "valid_from_offset").alias("valid_from_epoch"),
        f.max_by("valid_to_offset", "valid_from_offset").alias("valid_to_offset"),
        f.max_by("valid_to_time", "valid_from_offset").alias("valid_to_time"),
        f.every("exact").alias("exact"),
    )
    return merged.drop("island")


def log_ends(metadata_records: DataFrame) -> DataFrame:
    """For each cluster the last offset of its metadata log, and the latest time in it: cluster_id, last_offset, last_time."""
    return metadata_records.groupBy("cluster_id").agg(
        f.max("offset").alias("last_offset"), f.max("append_time").alias("last_time")
    )


def lasting(history: DataFrame, ends: DataFrame) -> DataFrame:
    """Rows with `until` (their end, or that of the log) and `minutes`: never negative, though times may go backwards."""
    until = f.coalesce("valid_to_time", "last_time")
    minutes = minutes_between(f.col("valid_from_time"), f.col("until"))
    return history.join(f.broadcast(ends), "cluster_id").withColumn("until", until).withColumn("minutes", minutes)


def minutes_between(start: Column, end: Column) -> Column:
    """Null where one of them is."""
    minutes = (f.unix_micros(end) - f.unix_micros(start)) / f.lit(60_000_000.0)
    return f.when(minutes.isNotNull(), f.greatest(f.lit(0.0), minutes))


def now(history: DataFrame) -> DataFrame:
    """What is true at the end of the log."""
    return history.where("valid_to_offset is null")


def present_topics(topics: DataFrame) -> DataFrame:
    """(cluster_id, topic_id, topic, created) of the topics that there are."""
    return now(topics).select(
        "cluster_id", "topic_id", f.col("name").alias("topic"), f.col("valid_from_time").alias("created")
    )


def partition_counts(partitions: DataFrame) -> DataFrame:
    """(cluster_id, topic_id, topic, partitions) of the topics that there are."""
    present = now(partitions).groupBy("cluster_id", "topic_id", f.col("topic_name").alias("topic"))
    return present.agg(f.count("*").cast("int").alias("partitions"))
