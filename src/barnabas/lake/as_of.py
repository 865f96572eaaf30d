"""What was true as of an offset or a time: where batches ended, and the rows of a silver table that were valid there.

Its one rule: states are those at the ends of batches, because a batch is applied whole. An offset means the last end at or
before it; a time the furthest end, in the order of offsets, of a batch that was appended at or before it (times may go
backwards, offsets do not). Functions from DataFrames to DataFrames, per cluster and log; nothing is collected.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

METADATA_LOG: Final = "__cluster_metadata-0"


def metadata_batch_ends(records: DataFrame) -> DataFrame:
    """(cluster_id, log, offset, time) of every batch in `metadata_records`; a snapshot ends before its end offset."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    end = f.when(f.col("is_snapshot"), f.col("snapshot_end_offset") - 1).otherwise(f.col("last_offset"))
    return records.select(
        "cluster_id", f.lit(METADATA_LOG).alias("log"), end.alias("offset"), f.col("append_time").alias("time")
    ).where("offset is not null")


def coordinator_batch_ends(records: DataFrame, topic: str) -> DataFrame:
    """The same of `group_records` or `transaction_records`, which have a log for each partition."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    log = f.concat_ws("-", f.lit(topic), f.col("partition").cast("string"))
    batches = records.groupBy("cluster_id", log.alias("log"), "segment", "position")
    return batches.agg(f.max("offset").alias("offset"), f.max("timestamp").alias("time")).drop("segment", "position")


def at_offset(ends: DataFrame, offset: int) -> DataFrame:
    """(cluster_id, log, offset): the last end of a batch at or before this offset."""
    return _furthest(ends.where(ends["offset"] <= offset))


def at_time(ends: DataFrame, time: datetime) -> DataFrame:
    """(cluster_id, log, offset): the furthest end of a batch that was appended at or before this time."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    return _furthest(ends.where(ends["time"] <= f.timestamp_micros(f.lit(_micros(time)))))


def at_end(ends: DataFrame) -> DataFrame:
    """(cluster_id, log, offset): the end of each log."""
    return _furthest(ends)


def _furthest(ends: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f  # noqa: PLC0415

    return ends.groupBy("cluster_id", "log").agg(f.max("offset").alias("offset"))


def state(rows: DataFrame, places: DataFrame) -> DataFrame:
    """The rows of a silver table that were valid at these places. A table without `log` is of the metadata log."""
    from pyspark.sql import functions as f  # noqa: PLC0415

    has_log = "log" in rows.columns
    places = places if has_log else places.where(f.col("log") == METADATA_LOG).drop("log")
    places = places.withColumnRenamed("offset", "_as_of")
    joined = rows.join(f.broadcast(places), ["cluster_id", "log"] if has_log else ["cluster_id"])
    was_valid = (f.col("valid_from_offset") <= f.col("_as_of")) & (
        f.col("valid_to_offset").isNull() | (f.col("valid_to_offset") > f.col("_as_of"))
    )
    return joined.where(was_valid).select(*rows.columns)


def _micros(time: datetime) -> int:
    """Since 1970, without the rounding of a float."""
    since = time - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
