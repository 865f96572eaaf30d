"""Who made each change: rows of the lake with the requests of audit logs.

Its one rule: a change is attributed by the offset and the leader epoch of its record, never by its time. Rows that were found
in a snapshot have no record of their own, and changes of the controller itself no request: both have no `who`.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from barnabas.operations.audit_trail import Who, audit_files

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_LINE = (
    "cluster string, principal string, address string, api string, client_id string, "
    "metadata array<struct<epoch: int, first: bigint, last: bigint>>"
)


def read_requests(spark: SparkSession, logs: Iterable[Path]) -> DataFrame:
    """Return a row for each record that a request appended: cluster_id, offset, epoch, and the fields of `Who`."""
    from pyspark.sql import functions as f

    files = [str(file.absolute()) for log in logs for file in audit_files(log)]
    lines = spark.read.schema(_LINE).json(files) if files else spark.createDataFrame([], _LINE)
    ranges = lines.select(f.col("cluster").alias("cluster_id"), *Who._fields, f.explode("metadata").alias("range"))
    offsets = f.explode(f.sequence("range.first", "range.last")).alias("offset")
    return ranges.select("cluster_id", *Who._fields, f.col("range.epoch").alias("epoch"), offsets)


def with_who(changes: DataFrame, requests: DataFrame) -> DataFrame:
    """Add `who` to changes: a struct with the fields of `Who`, or null.

    The end of something has no epoch of its own: among requests with its offset, the one of the latest epoch counts, because
    records of earlier ones were lost.
    """
    from pyspark.sql import functions as f

    key = ["cluster_id", "offset"]
    request = f.struct("epoch", f.struct(*Who._fields).alias("who"))
    by_offset = requests.groupBy(*key).agg(f.array_sort(f.collect_set(request)).alias("requests"))
    fitting = f.filter("requests", lambda each: f.coalesce(each["epoch"] == f.col("epoch"), f.lit(True)))
    who = f.when(f.col("exact"), f.try_element_at(fitting, f.lit(-1))["who"])
    return changes.join(by_offset, key, "left").select(*changes.columns, who.alias("who"))
