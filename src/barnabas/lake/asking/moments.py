"""States as of an offset or a time: ends of batches, the rows of a silver table valid there, and histories up to there.

Its one rule: a state is that at the end of a batch, because a batch is applied as a whole. An offset stands for the end of the
batch that contains it, so the offset at which a change is shown includes the change. A time stands for the end with the
highest offset among batches appended at or before it (times may go backwards, offsets do not). All functions
take and return DataFrames, per cluster and log; nothing is collected.
"""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final

from barnabas.storage.log_dirs import CLUSTER_METADATA

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

METADATA_LOG: Final = str(CLUSTER_METADATA)
_END_OF_BATCH: Final = "if(is_snapshot, snapshot_end_offset - 1, last_offset)"
_RECORD_OFFSET: Final = "if(is_snapshot, snapshot_end_offset - 1, offset)"


def metadata_batch_ends(records: DataFrame) -> DataFrame:
    """Return (cluster_id, log, offset, time) of every batch in `metadata_records`. A snapshot ends before its end offset."""
    from pyspark.sql import functions as f

    return records.select(
        "cluster_id",
        f.lit(METADATA_LOG).alias("log"),
        f.expr(_END_OF_BATCH).alias("offset"),
        f.col("append_time").alias("time"),
    ).where("offset is not null")


def coordinator_batch_ends(records: DataFrame, topic: str) -> DataFrame:
    """Return the same for `group_records`, `transaction_records` or `share_records`, which have one log per partition."""
    from pyspark.sql import functions as f

    log = f.concat_ws("-", f.lit(topic), f.col("partition").cast("string"))
    batches = records.groupBy("cluster_id", log.alias("log"), "segment", "position")
    return batches.agg(f.max("offset").alias("offset"), f.max("timestamp").alias("time")).drop("segment", "position")


def at_offset(records: DataFrame, offset: int) -> DataFrame:
    """Return (cluster_id, log, offset, time) of the end of the batch in `metadata_records` that contains this offset.

    If no batch contains it, it is the end of the last batch before it.
    """
    return at_end(metadata_batch_ends(records.where(f"{_RECORD_OFFSET} <= {offset}")))


def at_end(ends: DataFrame) -> DataFrame:
    """Return (cluster_id, log, offset, time) of the end of each log."""
    from pyspark.sql import functions as f

    return ends.groupBy("cluster_id", "log").agg(
        f.max("offset").alias("offset"), f.max_by("time", "offset").alias("time")
    )


def until_time(rows: DataFrame, column: str, time: datetime) -> DataFrame:
    """Return the rows whose time in this column is not after `time`."""
    from pyspark.sql import functions as f

    return rows.where(f.col(column) <= f.timestamp_micros(f.lit(_micros(time))))


def until_places(rows: DataFrame, column: str, places: DataFrame) -> DataFrame:
    """Return the rows whose time in this column is not after that of their cluster's place in the metadata log."""
    from pyspark.sql import functions as f

    times = places.where(f.col("log") == METADATA_LOG).select("cluster_id", f.col("time").alias("_as_of"))
    return rows.join(f.broadcast(times), "cluster_id").where(f.col(column) <= f.col("_as_of")).select(*rows.columns)


def state(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Return the rows of a silver table that were valid at these places. Without a column `log`, it is the metadata log."""
    had_not_ended = "valid_to_offset is null or valid_to_offset > _as_of"
    return _placed(rows, places).where("valid_from_offset <= _as_of").where(had_not_ended).select(*rows.columns)


def history(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Return a silver table as it was at these places: rows that had begun by then, those that ended later as still open."""
    from pyspark.sql import functions as f

    began = _placed(rows, places).where("valid_from_offset <= _as_of")
    has_ended = f.col("valid_to_offset") <= f.col("_as_of")
    ends = {name: f.when(has_ended, f.col(name)) for name in ("valid_to_offset", "valid_to_time")}
    return began.select(*(ends[name].alias(name) if name in ends else f.col(name) for name in rows.columns))


def records_until(records: DataFrame, places: DataFrame) -> DataFrame:
    """Return `metadata_records` up to these places."""
    return _placed(records, places).where(f"{_END_OF_BATCH} <= _as_of").select(*records.columns)


def _placed(rows: DataFrame, places: DataFrame) -> DataFrame:
    """Return the rows with `_as_of`, the last offset of their log that counts."""
    from pyspark.sql import functions as f

    has_log = "log" in rows.columns
    places = places if has_log else places.where(f.col("log") == METADATA_LOG)
    keys = ["cluster_id", "log"] if has_log else ["cluster_id"]
    return rows.join(f.broadcast(places.select(*keys, f.col("offset").alias("_as_of"))), keys)


def _micros(time: datetime) -> int:
    """Return microseconds since 1970, computed without floats."""
    since = time - datetime.fromisoformat("1970-01-01T00:00:00+00:00")
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
