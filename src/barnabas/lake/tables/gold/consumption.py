"""What is read, and what is not: topics that nobody writes to or reads, groups that fall behind, transactions that hang.

The end of a partition is that of its log as the lake has seen it (`traffic`), or of the last observation of the live cluster.
Times are those of the logs: a lag in time is how much later the last record came than the last commit. As `traffic` is by the
hour, where within an hour a record is, or was, follows from its place between the first and the last one.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import log_ends, minutes_between, now, present_topics
from barnabas.lake.tables.gold.shared_columns import CLUSTER

IDLE_DAYS = 7
TREND_MINUTES = 10
"""Over how long a lag has to grow: from one commit to the next it goes up and down."""

TOPIC_USE = (
    CLUSTER,
    Column("topic_id", "string", "The topic's id."),
    Column("topic", "string", "The topic."),
    Column("created", "timestamp", "When it was created."),
    Column("last_written", "timestamp", "The time of its last record; null: none was seen."),
    Column("last_committed", "timestamp", "When a group last committed an offset of it; null: never."),
    Column("groups", "bigint", "How many groups have ever committed an offset of it."),
    Column(
        "verdict",
        "string",
        f"used, never written, idle (not written for {IDLE_DAYS} days), never consumed, or unknown (no traffic was read).",
    ),
)


def _commits(group_offsets: DataFrame, topics: DataFrame) -> DataFrame:
    """Commits of topics that are there, with their id: those of a deleted one of the same name are left out."""
    rows = group_offsets.withColumnRenamed("topic_id", "said_id").join(present_topics(topics), ["cluster_id", "topic"])
    return rows.where(f.coalesce(f.col("said_id") == f.col("topic_id"), f.col("commit_time") >= f.col("created")))


def topic_use(
    topics: DataFrame, traffic: DataFrame, group_offsets: DataFrame, metadata_records: DataFrame
) -> DataFrame:
    key = ["cluster_id", "topic_id", "topic"]
    written = traffic.groupBy("cluster_id", "topic_id").agg(f.max("last_time").alias("last_written"))
    read = (
        _commits(group_offsets, topics)
        .groupBy(*key)
        .agg(
            f.max("commit_time").alias("last_committed"),
            f.countDistinct("group_id").alias("groups"),
            f.max("committed_offset").alias("read_until"),
        )
    )
    watched = traffic.select("cluster_id", f.lit(True).alias("is_watched")).distinct()
    rows = (
        present_topics(topics).where(~f.col("topic").startswith("__")).join(written, ["cluster_id", "topic_id"], "left")
    )
    rows = rows.join(read, key, "left").join(f.broadcast(watched), "cluster_id", "left")
    rows = rows.join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    # Producers may give any time, but nothing was written before the topic was there.
    idle = minutes_between(f.greatest("last_written", "created"), f.col("last_time")) > IDLE_DAYS * 24 * 60
    not_seen = f.col("is_watched").isNull() | (f.col("read_until") > 0)  # something that nobody wrote cannot be read
    verdict = (
        f.when(f.col("last_written").isNull() & not_seen, "unknown")
        .when(f.col("last_written").isNull(), "never written")
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
    Column("lag_before", "bigint", f"The lag {TREND_MINUTES} minutes before, or at its first commit; null: not known."),
    Column(
        "trend",
        "string",
        f"none (no lag), falling, steady, growing, stopped (it has read nothing for {TREND_MINUTES} minutes, though there is"
        " more), or unknown.",
    ),
)


def group_lag(
    group_offsets: DataFrame, traffic: DataFrame, topics: DataFrame, metadata_records: DataFrame
) -> DataFrame:
    rows = _last_commits(_commits(group_offsets, topics)).join(_ends(traffic), ["cluster_id", "topic_id", "partition"])
    committed, before = f.col("committed_offset"), f.col("before")
    rows = rows.withColumns(
        {
            "end_before": f.expr(f"aggregate(hours, 0L, (most, hour) -> greatest(most, {_END_AT}))"),
            "next_time": f.expr(f"array_min(transform(hours, hour -> {_TIME_OF}))"),
            "lag": f.greatest(f.lit(0).cast("bigint"), f.col("end_offset") - committed),
        }
    )
    rows = rows.withColumn(
        "lag_before",
        f.when(f.col("end_before") > 0, f.greatest(f.lit(0).cast("bigint"), f.col("end_before") - before["offset"])),
    ).join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    idle = minutes_between(f.greatest("since", "next_time"), f.col("last_time"))
    trend = (
        f.when(f.col("lag") == 0, "none")
        .when(idle > TREND_MINUTES, "stopped")
        .when(f.col("lag_before").isNull(), "unknown")
        .when(f.col("lag") > f.col("lag_before"), "growing")
        .when(f.col("lag") < f.col("lag_before"), "falling")
        .otherwise("steady")
    )
    behind = minutes_between(f.col("committed_at"), f.col("last_written"))
    return rows.withColumns({"lag_minutes": f.when(f.col("lag") > 0, behind).otherwise(0.0), "trend": trend}).select(
        *(column.name for column in GROUP_LAG)
    )


def _last_commits(commits: DataFrame) -> DataFrame:
    """Of each offset that is still committed: the commit, since when it was this offset, and an earlier one to compare with."""
    keys = ["cluster_id", "group_id", "topic_id", "topic", "partition"]
    commit = f.struct(f.col("commit_time").alias("time"), f.col("committed_offset").alias("offset"))
    order = Window.partitionBy(*keys)
    rows = commits.withColumn("last", f.max_by(commit, "valid_from_offset").over(order))
    is_same = f.col("committed_offset") == f.col("last.offset")
    rows = rows.withColumn("elsewhere", f.max(f.when(~is_same, f.col("commit_time"))).over(order))
    is_there = f.coalesce(f.col("commit_time") > f.col("elsewhere"), f.lit(True))
    is_earlier = f.unix_micros("commit_time") <= f.unix_micros("last.time") - TREND_MINUTES * 60_000_000
    is_another = f.col("commit_time") < f.col("last.time")
    found = rows.groupBy(*keys, "last").agg(
        f.bool_or(f.col("valid_to_offset").isNull()).alias("is_held"),
        f.min(f.when(is_there, f.col("commit_time"))).alias("since"),
        f.coalesce(f.max(f.when(is_earlier, commit)), f.min(f.when(is_another, commit))).alias("before"),
    )
    return found.where("is_held").select(
        *keys,
        f.col("last.offset").alias("committed_offset"),
        f.col("last.time").alias("committed_at"),
        "since",
        "before",
    )


_END_AT = """case when hour.last_time <= before.time then hour.last_offset + 1
  when hour.first_time <= before.time then hour.first_offset + cast((hour.last_offset - hour.first_offset)
    * (unix_micros(before.time) - unix_micros(hour.first_time))
    / (unix_micros(hour.last_time) - unix_micros(hour.first_time)) as bigint) + 1 else 0L end"""
_TIME_OF = """case when committed_offset between hour.first_offset and hour.last_offset
  then timestamp_micros(unix_micros(hour.first_time) + cast(coalesce(try_divide(
    (committed_offset - hour.first_offset) * (unix_micros(hour.last_time) - unix_micros(hour.first_time)),
    hour.last_offset - hour.first_offset), 0) as bigint)) end"""


def _ends(traffic: DataFrame) -> DataFrame:
    """The end of each partition, when it was last written, and its `hours`."""
    hour = f.struct("first_offset", "last_offset", "first_time", "last_time")
    return traffic.groupBy("cluster_id", "topic_id", "partition").agg(
        (f.max("last_offset") + 1).alias("end_offset"),
        f.max("last_time").alias("last_written"),
        f.collect_list(hour).alias("hours"),
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
        ("group_offsets", "traffic", "topics", "metadata_records"),
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
