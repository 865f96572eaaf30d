"""Functions that gold tables share: neighbours in a history, and durations. Pure functions of DataFrames.

Its one rule: no clock is read. What is still true lasts until the latest time in the cluster's log.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_

from pyspark.sql import Column, DataFrame, Window
from pyspark.sql import functions as f


def with_before(history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return each row of a history with `before`, the columns of its direct predecessor (null if there is a gap), and with
    `is_last`: it ended, and has no direct successor."""
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
    """Return the history of some columns: adjacent rows that are equal in them become one."""
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
    """Return the last offset of each cluster's metadata log, and the latest time in it: cluster_id, last_offset, last_time."""
    return metadata_records.groupBy("cluster_id").agg(
        f.max("offset").alias("last_offset"), f.max("append_time").alias("last_time")
    )


def lasting(history: DataFrame, ends: DataFrame) -> DataFrame:
    """Return rows with `until` (their end, or that of the log) and `minutes`, which is never negative."""
    until = f.coalesce("valid_to_time", "last_time")
    minutes = minutes_between(f.col("valid_from_time"), f.col("until"))
    return history.join(f.broadcast(ends), "cluster_id").withColumn("until", until).withColumn("minutes", minutes)


def by_the_clock(spans: DataFrame, keys: Sequence[str], **kinds: Column) -> DataFrame:
    """Return `<kind>_minutes` for each key: how long some span of the key was of the kind. What overlaps counts once."""
    order = Window.partitionBy(*keys).orderBy("began", "until").rowsBetween(Window.unboundedPreceding, -1)
    begin, end = f.unix_micros("began"), f.unix_micros("until")
    gains = {
        kind: f.when(
            condition, f.greatest(f.lit(0), end - f.greatest(begin, f.max(f.when(condition, end)).over(order)))
        )
        for kind, condition in kinds.items()
    }
    marked = spans.select("*", *(gain.alias(f"_{kind}") for kind, gain in gains.items()))
    return marked.groupBy(*keys).agg(
        *((f.coalesce(f.sum(f"_{kind}"), f.lit(0)) / f.lit(60_000_000.0)).alias(f"{kind}_minutes") for kind in kinds)
    )


def minutes_between(start: Column, end: Column) -> Column:
    """Return the minutes between two times; null if one of them is."""
    minutes = (f.unix_micros(end) - f.unix_micros(start)) / f.lit(60_000_000.0)
    return f.when(minutes.isNotNull(), f.greatest(f.lit(0.0), minutes))


def now(history: DataFrame) -> DataFrame:
    """Return the rows that are true at the end of the log."""
    return history.where("valid_to_offset is null")


def present_topics(topics: DataFrame) -> DataFrame:
    """Return (cluster_id, topic_id, topic, created) of the existing topics."""
    return now(topics).select(
        "cluster_id", "topic_id", f.col("name").alias("topic"), f.col("valid_from_time").alias("created")
    )


def partition_counts(partitions: DataFrame) -> DataFrame:
    """Return (cluster_id, topic_id, topic, partitions) of the existing topics."""
    present = now(partitions).groupBy("cluster_id", "topic_id", f.col("topic_name").alias("topic"))
    return present.agg(f.count("*").cast("int").alias("partitions"))
