"""Consumption: unused topics, groups that fall behind, and hanging transactions.

The end of a partition is that of its log as the lake has read it (`traffic`). Lag is defined in `operations.groups.lag`, and
measured at the end of the metadata log. As `traffic` is by the hour, the time of a record within an hour is interpolated from
its offset between the first and the last one.
"""

from __future__ import annotations

from pyspark.sql import Column as Expression
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import log_ends, minutes_between, now, present_topics
from barnabas.lake.tables.gold.shared_columns import CLUSTER

IDLE_DAYS = 7
TREND_MINUTES = 10
"""The time over which a lag has to grow: from one commit to the next it fluctuates."""

TOPIC_USE = (
    CLUSTER,
    Column("topic_id", "string", "The topic's id."),
    Column("topic", "string", "The topic."),
    Column("created", "timestamp", "When it was created."),
    Column("last_written", "timestamp", "The time of its last record; null: none was seen."),
    Column("last_committed", "timestamp", "When a group last committed an offset of it; null: never."),
    Column(
        "groups",
        "bigint",
        "How many groups have ever committed an offset of it, are share groups that subscribed to it, or streams groups whose "
        "topology has it.",
    ),
    Column(
        "verdict",
        "string",
        f"used, never written, idle (not written for {IDLE_DAYS} days), never consumed, or unknown (no traffic was read).",
    ),
)


def _commits(group_offsets: DataFrame, topics: DataFrame) -> DataFrame:
    """Return commits for existing topics, with their id, without those for a deleted topic of the same name."""
    rows = group_offsets.withColumnRenamed("topic_id", "said_id").join(present_topics(topics), ["cluster_id", "topic"])
    return rows.where(f.coalesce(f.col("said_id") == f.col("topic_id"), f.col("commit_time") >= f.col("created")))


_NAMED = ("cluster_id", "group_id", "topic", "valid_to_time")


def _subscriptions(group_members: DataFrame) -> DataFrame:
    """Return the topics that share groups have subscribed to: they commit no offsets."""
    members = group_members.where("group_type = 'share'")
    return members.withColumn("topic", f.explode("subscribed_topics")).select(*_NAMED)


def _topologies(groups: DataFrame) -> DataFrame:
    """Return the topics of the topologies of streams groups. They read their changelogs without committing offsets."""
    return groups.withColumn("topic", f.explode("topology_topics")).select(*_NAMED)


def _while_it_exists(named: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the rows about existing topics, with their id, without those about a deleted topic of the same name."""
    rows = named.join(present_topics(topics), ["cluster_id", "topic"])
    return rows.where(f.col("valid_to_time").isNull() | (f.col("valid_to_time") >= f.col("created")))


def topic_use(
    topics: DataFrame,
    traffic: DataFrame,
    group_offsets: DataFrame,
    group_members: DataFrame,
    groups: DataFrame,
    metadata_records: DataFrame,
) -> DataFrame:
    key = ["cluster_id", "topic_id", "topic"]
    used = _commits(group_offsets, topics).select(*key, "group_id", "commit_time", "committed_offset")
    for named in (_subscriptions(group_members), _topologies(groups)):
        rows = _while_it_exists(named, topics).select(*key, "group_id")
        used = used.unionByName(rows, allowMissingColumns=True)
    written = traffic.groupBy("cluster_id", "topic_id").agg(f.max("last_time").alias("last_written"))
    read = used.groupBy(*key).agg(
        f.max("commit_time").alias("last_committed"),
        f.countDistinct("group_id").alias("groups"),
        f.max("committed_offset").alias("read_until"),
    )
    watched = traffic.select("cluster_id", f.lit(True).alias("is_watched")).distinct()
    rows = (
        present_topics(topics).where(~f.col("topic").startswith("__")).join(written, ["cluster_id", "topic_id"], "left")
    )
    rows = rows.join(read, key, "left").join(f.broadcast(watched), "cluster_id", "left")
    rows = rows.join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    # Producers may set any timestamp, but nothing was written before the topic was created.
    idle = minutes_between(f.greatest("last_written", "created"), f.col("last_time")) > IDLE_DAYS * 24 * 60
    # Committed offsets above 0 show that there were records.
    not_seen = f.col("is_watched").isNull() | (f.col("read_until") > 0)
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
    Column("committed_offset", "bigint", "From where on it has still to read; of a share group, its start offset."),
    Column("end_offset", "bigint", "The end of the partition."),
    Column(
        "lag",
        "bigint",
        "The end minus the committed offset, at least 0; of a share group, without records that are done already.",
    ),
    Column("committed_at", "timestamp", "When it last committed, or the position of a share group was last stored."),
    Column(
        "lag_minutes",
        "double",
        "The age of its oldest unread record at the end of the log; 0 if nothing is unread, null if the record has no time.",
    ),
    Column(
        "lag_is_interpolated",
        "boolean",
        "Whether lag_minutes is an estimate, from the record's place among those of its hour; null where that is null.",
    ),
    Column("lag_before", "bigint", f"The lag {TREND_MINUTES} minutes before, or at its first commit; null: not known."),
    Column(
        "trend",
        "string",
        f"none (nothing unread), falling, steady, growing, stopped (it has read nothing for {TREND_MINUTES} minutes, though"
        " there is more), or unknown.",
    ),
)


def group_lag(
    group_offsets: DataFrame,
    share_partitions: DataFrame,
    traffic: DataFrame,
    topics: DataFrame,
    metadata_records: DataFrame,
) -> DataFrame:
    commits = _commits(group_offsets, topics).withColumn("done", f.lit(0)).select(*_COMMIT)
    commits = commits.unionByName(_positions(share_partitions, topics).select(*_COMMIT))
    rows = _last_commits(commits).join(_ends(traffic), ["cluster_id", "topic_id", "partition"])
    committed, before = f.col("committed_offset"), f.col("before")
    rows = with_oldest_unread(rows).withColumns(
        {
            "end_before": f.expr(f"aggregate(hours, 0L, (most, hour) -> greatest(most, {_END_AT}))"),
            "lag": f.greatest(f.lit(0).cast("bigint"), f.col("end_offset") - committed - f.col("done")),
        }
    )
    rows = rows.withColumn(
        "lag_before",
        f.when(f.col("end_before") > 0, _lag_before(f.col("end_before"), before)),
    ).join(f.broadcast(log_ends(metadata_records)), "cluster_id")
    idle = minutes_between(f.greatest("since", "unread_time"), f.col("last_time"))
    trend = (
        f.when(~f.col("is_unread"), "none")
        .when(idle > TREND_MINUTES, "stopped")
        .when(f.col("lag_before").isNull(), "unknown")
        .when(f.col("lag") > f.col("lag_before"), "growing")
        .when(f.col("lag") < f.col("lag_before"), "falling")
        .otherwise("steady")
    )
    age = minutes_between(f.col("unread_time"), f.col("last_time"))
    lag_minutes = f.when(f.col("is_unread"), age).otherwise(0.0)
    is_interpolated = f.when(lag_minutes.isNotNull(), f.col("is_interpolated"))
    return rows.withColumns(
        {"lag_minutes": lag_minutes, "lag_is_interpolated": is_interpolated, "trend": trend}
    ).select(*(column.name for column in GROUP_LAG))


_COMMIT = (
    "cluster_id",
    "group_id",
    "topic_id",
    "topic",
    "partition",
    "committed_offset",
    "done",
    "commit_time",
    "valid_from_offset",
    "valid_to_offset",
)


def _positions(share_partitions: DataFrame, topics: DataFrame) -> DataFrame:
    """Return the positions of share groups as if they were commits, without those in deleted topics."""
    rows = share_partitions.where("start_offset is not null").join(present_topics(topics), ["cluster_id", "topic_id"])
    return rows.withColumns(
        {
            "committed_offset": f.col("start_offset"),
            "commit_time": f.col("valid_from_time"),
            "done": f.coalesce("delivery_complete_count", f.lit(0)),
        }
    )


def _lag_before(end: Expression, before: Expression) -> Expression:
    return f.greatest(f.lit(0).cast("bigint"), end - before["offset"] - before["done"])


def with_oldest_unread(rows: DataFrame) -> DataFrame:
    """Add `is_unread`, `unread_time` and `is_interpolated` to rows with `committed_offset` and `hours`.

    This is `operations.groups.lag.interpolated_time` as Spark expressions; a test compares them.
    """
    return (
        rows.withColumn("unread", f.expr("filter(hours, h -> h.records > 0 and h.last_offset >= committed_offset)"))
        .withColumn(
            "next_offset", f.expr("array_min(transform(unread, h -> greatest(h.first_offset, committed_offset)))")
        )
        .withColumn("holding", f.expr("filter(unread, h -> h.first_offset <= next_offset)"))
        .withColumns(
            {
                "is_unread": f.size("unread") > 0,
                "unread_time": f.expr(
                    "if(exists(holding, h -> coalesce(unix_micros(h.first_time), -1) < 0), null,"
                    f" array_min(transform(holding, h -> {_TIME_OF})))"
                ),
                "is_interpolated": f.expr(
                    "exists(holding, h -> h.records <= h.last_offset - h.first_offset"
                    " or h.first_time <> holding[0].first_time or h.last_time <> holding[0].first_time)"
                ),
            }
        )
        .drop("unread", "next_offset", "holding")
    )


def _last_commits(commits: DataFrame) -> DataFrame:
    """Return the current commit of each partition, since when it has had this offset, and an earlier commit to compare with."""
    keys = ["cluster_id", "group_id", "topic_id", "topic", "partition"]
    commit = f.struct(f.col("commit_time").alias("time"), f.col("committed_offset").alias("offset"), "done")
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
        f.col("last.done").alias("done"),
        "since",
        "before",
    )


_END_AT = """case when hour.last_time <= before.time then hour.last_offset + 1
  when hour.first_time <= before.time then hour.first_offset + cast((hour.last_offset - hour.first_offset)
    * (unix_micros(before.time) - unix_micros(hour.first_time))
    / (unix_micros(hour.last_time) - unix_micros(hour.first_time)) as bigint) + 1 else 0L end"""
_TIME_OF = """timestamp_micros(unix_micros(h.first_time) + cast(
    coalesce(try_divide(next_offset - h.first_offset, h.last_offset - h.first_offset), 0D)
    * (unix_micros(h.last_time) - unix_micros(h.first_time)) as bigint))"""


def _ends(traffic: DataFrame) -> DataFrame:
    """Return the end of each partition, and its `hours`."""
    hour = f.struct("first_offset", "last_offset", "records", "first_time", "last_time")
    return traffic.groupBy("cluster_id", "topic_id", "partition").agg(
        (f.max("last_offset") + 1).alias("end_offset"),
        f.collect_list(hour).alias("hours"),
    )


HANGING_TRANSACTIONS = (
    CLUSTER,
    Column("transactional_id", "string", "The transactional id."),
    Column("producer_id", "bigint", "Its producer id."),
    Column("producer_epoch", "smallint", "Its producer epoch."),
    Column("state", "string", "The state that it is stuck in."),
    Column("started", "timestamp", "When the transaction started."),
    Column("minutes", "double", "How long it had been open at the end of the log."),
    Column("timeout_minutes", "double", "Its timeout."),
)


def hanging_transactions(transactions: DataFrame, metadata_records: DataFrame) -> DataFrame:
    """Return transactions open for longer than their timeout, or stuck for as long between decision and markers."""
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
        "Which topics are idle, and which have never been consumed?",
        TOPIC_USE,
        ("topics", "traffic", "group_offsets", "group_members", "groups", "metadata_records"),
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
        ("group_offsets", "share_partitions", "traffic", "topics", "metadata_records"),
        group_lag,
        Mode.FULL,
        ("cluster_id", "group_id", "topic", "partition"),
        not_null=("lag", "trend"),
        is_kept=True,
        needs="traffic",
    ),
    Table(
        "hanging_transactions",
        "gold",
        "Which transactions have been open for longer than their timeout?",
        HANGING_TRANSACTIONS,
        ("transactions", "metadata_records"),
        hanging_transactions,
        Mode.FULL,
        ("cluster_id", "transactional_id"),
    ),
)
