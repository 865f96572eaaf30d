"""What is read, and what is not: topics that nobody writes to or reads, groups that fall behind, transactions that hang.

The end of a partition is that of its log as the lake has seen it (`traffic`), or of the last observation of the live cluster.
Times are those of the logs: a lag in time is how much later the last record came than the last commit.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.columns import CLUSTER
from barnabas.lake.tables.gold.intervals import log_ends, minutes_between, now

IDLE_DAYS = 7

TOPIC_USE = (
    CLUSTER,
    Column("topic_id", "string", "The topic's id."),
    Column("topic", "string", "The topic."),
    Column("created", "timestamp", "When it was created."),
    Column("last_written", "timestamp", "The time of its last record; null: none was seen."),
    Column("last_committed", "timestamp", "When a group last committed an offset of it; null: never."),
    Column("groups", "bigint", "How many groups have ever committed an offset of it."),
    Column("verdict", "string", f"used, never written, idle (not written for {IDLE_DAYS} days), or never consumed."),
)


def topic_use(
    topics: DataFrame, traffic: DataFrame, group_offsets: DataFrame, metadata_records: DataFrame
) -> DataFrame:
    written = traffic.groupBy("cluster_id", "topic").agg(f.max("last_time").alias("last_written"))
    read = group_offsets.groupBy("cluster_id", "topic").agg(
        f.max("commit_time").alias("last_committed"), f.countDistinct("group_id").alias("groups")
    )
    present = now(topics).select(
        "cluster_id", "topic_id", f.col("name").alias("topic"), f.col("valid_from_time").alias("created")
    )
    rows = present.where(~f.col("topic").startswith("__")).join(written, ["cluster_id", "topic"], "left")
    rows = rows.join(read, ["cluster_id", "topic"], "left").join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    idle = minutes_between(f.col("last_written"), f.col("last_time")) > IDLE_DAYS * 24 * 60
    verdict = (
        f.when(f.col("last_written").isNull(), "never written")
        .when(idle, "idle")
        .when(f.col("groups").isNull(), "never consumed")
        .otherwise("used")
    )
    return rows.select(
        "cluster_id",
        "topic_id",
        "topic",
        "created",
        "last_written",
        "last_committed",
        f.coalesce("groups", f.lit(0).cast("bigint")).alias("groups"),
        verdict.alias("verdict"),
    )


GROUP_LAG = (
    CLUSTER,
    Column("group_id", "string", "The group."),
    Column("topic", "string", "The topic."),
    Column("partition", "int", "The partition."),
    Column("committed_offset", "bigint", "From where on it has still to read."),
    Column("end_offset", "bigint", "The end of the partition."),
    Column("lag", "bigint", "The records between them."),
    Column("committed_at", "timestamp", "When it last committed."),
    Column("lag_minutes", "double", "From its last commit to the last record; 0 if it has read all."),
    Column(
        "lag_before", "bigint", "The lag at its commit before the last, against the end at the time; null: not known."
    ),
    Column("trend", "string", "none (no lag), falling, growing, stopped (no commit since there is more), or unknown."),
)


def group_lag(group_offsets: DataFrame, traffic: DataFrame) -> DataFrame:
    place = ["cluster_id", "topic", "partition"]
    ends = traffic.groupBy(*place).agg(
        (f.max("last_offset") + 1).alias("end_offset"), f.max("last_time").alias("last_time")
    )
    order = Window.partitionBy("cluster_id", "group_id", "topic", "partition").orderBy("valid_from_offset")
    commits = group_offsets.withColumn(
        "committed_before", f.lag(f.struct("committed_offset", "commit_time")).over(order)
    )
    last = commits.where("valid_to_offset is null").join(ends, place)
    hours = traffic.select(*place, f.col("last_time").alias("seen"), (f.col("last_offset") + 1).alias("seen_end"))
    earlier = (
        last.select(*place, "group_id", "committed_before")
        .where("committed_before is not null")
        .join(hours, place)
        .where("seen <= committed_before.commit_time")
        .groupBy(*place, "group_id")
        .agg(f.max("seen_end").alias("end_before"))
    )
    rows = last.join(earlier, [*place, "group_id"], "left")
    lag = f.greatest(f.lit(0).cast("bigint"), f.col("end_offset") - f.col("committed_offset"))
    lag_before = f.greatest(f.lit(0).cast("bigint"), f.col("end_before") - f.col("committed_before.committed_offset"))
    rows = rows.withColumn("lag", lag).withColumn(
        "lag_before", f.when(f.col("end_before").isNotNull() & f.col("committed_before").isNotNull(), lag_before)
    )
    behind = minutes_between(f.col("commit_time"), f.col("last_time"))
    trend = (
        f.when(f.col("lag") == 0, "none")
        .when(
            f.col("committed_before").isNull()
            | (f.col("committed_before.committed_offset") == f.col("committed_offset")),
            "stopped",
        )
        .when(f.col("lag_before").isNull(), "unknown")
        .when(f.col("lag") > f.col("lag_before"), "growing")
        .otherwise("falling")
    )
    return rows.select(
        "cluster_id",
        "group_id",
        "topic",
        "partition",
        "committed_offset",
        "end_offset",
        "lag",
        f.col("commit_time").alias("committed_at"),
        f.when(f.col("lag") > 0, behind).otherwise(0.0).alias("lag_minutes"),
        "lag_before",
        trend.alias("trend"),
    )


HANGING_TRANSACTIONS = (
    CLUSTER,
    Column("transactional_id", "string", "The transactional id."),
    Column("producer_id", "bigint", "Its producer id."),
    Column("producer_epoch", "smallint", "The epoch of that."),
    Column("state", "string", "The state in which it hangs."),
    Column("started", "timestamp", "When the transaction began."),
    Column("minutes", "double", "How long it had been open at the end of the log."),
    Column("timeout_minutes", "double", "How long it may take."),
)


def hanging_transactions(transactions: DataFrame, metadata_records: DataFrame) -> DataFrame:
    """Open longer than their own time-out, or stuck between the decision and its markers for as long."""
    rows = now(transactions).where("state in ('Ongoing', 'PrepareCommit', 'PrepareAbort')")
    rows = rows.join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    minutes = minutes_between(f.col("start_time"), f.col("last_time"))
    timeout = f.col("timeout_ms") / 60_000.0
    return (
        rows.withColumn("minutes", minutes)
        .withColumn("timeout_minutes", timeout)
        .where("minutes > timeout_minutes")
        .select(
            "cluster_id",
            "transactional_id",
            "producer_id",
            "producer_epoch",
            "state",
            f.col("start_time").alias("started"),
            "minutes",
            "timeout_minutes",
        )
    )


TABLES = (
    Table(
        "topic_use",
        "gold",
        "Which topics are idle, and which has nobody ever consumed?",
        TOPIC_USE,
        ("topics", "traffic", "group_offsets", "metadata_records"),
        topic_use,
        Mode.FULL,
        ("cluster_id", "topic_id"),
        not_null=("verdict",),
    ),
    Table(
        "group_lag",
        "gold",
        "Which groups are behind, in records and in time, and does it get worse?",
        GROUP_LAG,
        ("group_offsets", "traffic"),
        group_lag,
        Mode.FULL,
        ("cluster_id", "group_id", "topic", "partition"),
        not_null=("lag", "trend"),
    ),
    Table(
        "hanging_transactions",
        "gold",
        "Which transactions have been open for longer than they may?",
        HANGING_TRANSACTIONS,
        ("transactions", "metadata_records"),
        hanging_transactions,
        Mode.FULL,
        ("cluster_id", "transactional_id"),
    ),
)
