"""Reassignments, with duration and outcome; and the leaders of the quorum."""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import islands, lasting, log_ends, now
from barnabas.lake.tables.gold.shared_columns import CLUSTER, PARTITION

REASSIGNMENTS = (
    *PARTITION,
    Column("valid_from_offset", "bigint", "The record that started it."),
    Column("began", "timestamp", "When it started."),
    Column("until", "timestamp", "When it ended, or the end of the log."),
    Column("minutes", "double", "How long it took."),
    Column("adding_replicas", "array<int>", "The brokers that it added."),
    Column("removing_replicas", "array<int>", "The brokers that it removed."),
    Column(
        "added_in_sync", "array<int>", "The added brokers that were in sync at its end, or are at the end of the log."
    ),
    Column("outcome", "string", "done, cancelled, changed (to another one), deleted (with its topic), or running."),
)


def reassignments(partitions: DataFrame, metadata_records: DataFrame) -> DataFrame:
    place, moving = ["cluster_id", "topic_id", "topic_name", "partition"], ["adding_replicas", "removing_replicas"]
    is_moving = (f.size("adding_replicas") > 0) | (f.size("removing_replicas") > 0)
    spans = islands(partitions, place[1:], moving).where(is_moving)
    after = partitions.select(
        *place,
        f.col("valid_from_offset").alias("valid_to_offset"),
        f.col("replicas").alias("replicas_after"),
        f.col("isr").alias("isr_after"),
        is_moving.alias("goes_on"),
    )
    present = now(partitions).select(*place, f.col("isr").alias("isr_now"))
    rows = spans.join(after, [*place, "valid_to_offset"], "left").join(present, place, "left")
    # After a reassignment was changed half-way, a replica may be both: still being added, and to be removed.
    wanted = f.array_except("adding_replicas", "removing_replicas")
    is_done = (f.size(f.array_except(wanted, "replicas_after")) == 0) & (
        f.size(f.array_intersect("removing_replicas", "replicas_after")) == 0
    )
    outcome = (
        f.when(f.col("valid_to_offset").isNull(), "running")
        .when(f.col("replicas_after").isNull(), "deleted")
        .when(f.col("goes_on"), "changed")
        .when(is_done, "done")
        .otherwise("cancelled")
    )
    isr = f.when(f.col("valid_to_offset").isNull(), f.col("isr_now")).otherwise(f.col("isr_after"))
    in_sync = f.array_intersect("adding_replicas", f.coalesce(isr, f.array().cast("array<int>")))
    return lasting(rows, log_ends(metadata_records)).select(
        *place,
        "valid_from_offset",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        *moving,
        in_sync.alias("added_in_sync"),
        outcome.alias("outcome"),
    )


QUORUM_LEADERS = (
    CLUSTER,
    Column("epoch", "int", "The epoch of the quorum."),
    Column("leader_id", "int", "The leader."),
    Column("began", "timestamp", "When the epoch started."),
    Column("until", "timestamp", "When the next one started, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether there has been another leader since."),
    Column("voters", "int", "Number of voters."),
    Column("granting_voters", "int", "Number of voters that voted for the leader."),
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
