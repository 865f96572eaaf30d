"""Reassignments, how long they took and how they ended; and the quorum: who led it, for how long."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.columns import CLUSTER, PARTITION
from barnabas.lake.tables.gold.intervals import islands, lasting, log_ends

REASSIGNMENTS = (
    *PARTITION,
    Column("valid_from_offset", "bigint", "The record with which it began."),
    Column("began", "timestamp", "When it began."),
    Column("until", "timestamp", "When it ended, or the end of the log."),
    Column("minutes", "double", "How long it took."),
    Column("adding_replicas", "array<int>", "The brokers that it added, when it began."),
    Column("removing_replicas", "array<int>", "The brokers that it removed, when it began."),
    Column("added_in_sync", "array<int>", "Those added that were in sync at its end, or are at the end of the log."),
    Column("outcome", "string", "done, cancelled, deleted (with its topic), or running."),
)


def reassignments(partitions: DataFrame, metadata_records: DataFrame) -> DataFrame:
    keys = ["topic_id", "topic_name", "partition"]
    moving = (f.size("adding_replicas") > 0) | (f.size("removing_replicas") > 0)
    marked = partitions.withColumn("is_moving", f.coalesce(moving, f.lit(False)))
    spans = islands(marked, keys, ["is_moving"]).where("is_moving")
    place = ["cluster_id", *keys]
    began = marked.select(*place, "valid_from_offset", "adding_replicas", "removing_replicas")
    last = marked.where("is_moving").select(
        *place, f.col("valid_to_offset").alias("valid_to_offset"), f.col("isr").alias("last_isr")
    )
    after = marked.select(
        *place, f.col("valid_from_offset").alias("valid_to_offset"), f.col("replicas").alias("replicas_after"), "isr"
    )
    rows = spans.join(began, [*place, "valid_from_offset"]).join(after, [*place, "valid_to_offset"], "left")
    open_isr = last.where("valid_to_offset is null").select(*place, "last_isr")
    rows = rows.join(open_isr, place, "left")
    gone = f.size(f.array_except("removing_replicas", f.array_except("removing_replicas", "replicas_after"))) == 0
    arrived = f.size(f.array_except("adding_replicas", "replicas_after")) == 0
    outcome = (
        f.when(f.col("valid_to_offset").isNull(), "running")
        .when(f.col("replicas_after").isNull(), "deleted")
        .when(arrived & gone, "done")
        .otherwise("cancelled")
    )
    in_sync = f.array_intersect("adding_replicas", f.coalesce("isr", "last_isr", f.array().cast("array<int>")))
    return lasting(rows, log_ends(metadata_records)).select(
        *place,
        "valid_from_offset",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        "adding_replicas",
        "removing_replicas",
        in_sync.alias("added_in_sync"),
        outcome.alias("outcome"),
    )


QUORUM_LEADERS = (
    CLUSTER,
    Column("epoch", "int", "The epoch of the quorum."),
    Column("leader_id", "int", "Who led it."),
    Column("began", "timestamp", "When it began."),
    Column("until", "timestamp", "When the next one began, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether another has led since."),
    Column("voters", "int", "How many could vote."),
    Column("granting_voters", "int", "How many voted for it."),
)


def quorum_leaders(leader_epochs: DataFrame, metadata_records: DataFrame) -> DataFrame:
    return lasting(leader_epochs, log_ends(metadata_records)).select(
        "cluster_id",
        "epoch",
        "leader_id",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        f.col("valid_to_offset").isNotNull().alias("is_over"),
        f.size("voters").alias("voters"),
        f.size("granting_voters").alias("granting_voters"),
    )


TABLES = (
    Table(
        "reassignments",
        "gold",
        "Which partitions were moved, how long did it take, and how did it end?",
        REASSIGNMENTS,
        ("partitions", "metadata_records"),
        reassignments,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition", "valid_from_offset"),
        not_null=("outcome",),
    ),
    Table(
        "quorum_leaders",
        "gold",
        "Who led the quorum, and for how long?",
        QUORUM_LEADERS,
        ("leader_epochs", "metadata_records"),
        quorum_leaders,
        Mode.FULL,
        ("cluster_id", "epoch"),
    ),
)
