"""Incidents: what happened at the same time, as one row. A broker that stops, its partitions, leaders and groups are one.

Its one rule: an incident is a time without gaps in which some broker was fenced, or some partition was without a leader or
below its min.insync.replicas. What else happened then belongs to it. Replicas that fall behind by themselves are no incident.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import by_the_clock
from barnabas.lake.tables.gold.shared_columns import CLUSTER

GAP_SECONDS = 60
"""What begins within this time after the end of something else belongs to the same incident: a broker that comes back takes a
moment to get its replicas in sync."""
BEFORE_SECONDS = 3600
"""A group that committed offsets in this time before an incident, and none during it, was stalled."""

INCIDENTS = (
    CLUSTER,
    Column("began", "timestamp", "When it began."),
    Column("until", "timestamp", "When all of it was over, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether it has ended."),
    Column("brokers", "array<int>", "The brokers that were fenced."),
    Column("causes", "array<string>", "Why they were fenced: silence, shutdown or restart."),
    Column("offline_minutes", "double", "How long some partition had no leader, by the clock."),
    Column("offline_partitions", "bigint", "Number of partitions without a leader."),
    Column("below_min_isr_partitions", "bigint", "Number of partitions below min.insync.replicas."),
    Column("under_replicated_partitions", "bigint", "Number of partitions with a replica out of sync."),
    Column("topics", "bigint", "Number of topics with such partitions."),
    Column("leader_changes", "bigint", "How often a partition changed its leader."),
    Column("stalled_groups", "array<string>", "Groups that committed offsets in the hour before, and none during it."),
)


def incidents(
    partition_trouble: DataFrame, broker_fences: DataFrame, leader_changes: DataFrame, group_offsets: DataFrame
) -> DataFrame:
    partition = f.struct("topic_id", "partition")
    trouble = partition_trouble.select(
        "cluster_id", "began", "until", "is_over", "topic_id", "offline", "below_min_isr", partition.alias("of")
    )
    fences = broker_fences.where("cause != 'start'").select(
        "cluster_id", "began", "until", "is_over", "broker_id", "cause"
    )
    serious = trouble.where("offline or below_min_isr").unionByName(fences, allowMissingColumns=True)
    keys, numbered = ["cluster_id", "incident"], _numbered(serious)
    found = numbered.groupBy(*keys).agg(
        f.min("began").alias("began"),
        f.max("until").alias("until"),
        f.every("is_over").alias("is_over"),
        f.sort_array(f.collect_set("broker_id")).alias("brokers"),
        f.sort_array(f.collect_set("cause")).alias("causes"),
        f.countDistinct(f.when(f.col("offline"), f.col("of"))).alias("offline_partitions"),
        f.countDistinct(f.when(f.col("below_min_isr"), f.col("of"))).alias("below_min_isr_partitions"),
    )
    held = found.select(*keys, "began", "until")
    down = by_the_clock(numbered, keys, offline=f.coalesce("offline", f.lit(False)))
    behind = (
        _within(held, trouble, f.col("began"))
        .groupBy(*keys)
        .agg(f.countDistinct("of").alias("under_replicated_partitions"), f.countDistinct("topic_id").alias("topics"))
    )
    changed = _within(held, leader_changes, f.col("time")).groupBy(*keys).agg(f.count("*").alias("leader_changes"))
    counts = found.join(down, keys).join(behind, keys, "left").join(changed, keys, "left")
    counts = counts.fillna(0).join(_stalled(held, group_offsets), keys, "left")
    minutes = (f.unix_micros("until") - f.unix_micros("began")) / f.lit(60_000_000.0)
    stalled = f.coalesce("stalled_groups", f.array().cast("array<string>")).alias("stalled_groups")
    shown = counts.withColumn("minutes", minutes).withColumn("stalled_groups", stalled)
    return shown.select(*(column.name for column in INCIDENTS))


def _numbered(spans: DataFrame) -> DataFrame:
    """Add `incident`: the number of the incident that a span belongs to."""
    order = Window.partitionBy("cluster_id").orderBy("began", "until")
    before = f.max("until").over(order.rowsBetween(Window.unboundedPreceding, -1))
    follows = f.unix_micros("began") - f.unix_micros(before) <= GAP_SECONDS * 1_000_000
    begins = f.when(follows, 0).otherwise(1)
    marked = spans.withColumn("begins", begins)
    return marked.withColumn("incident", f.sum("begins").over(order.rowsBetween(Window.unboundedPreceding, 0)))


def _within(held: DataFrame, events: DataFrame, time: SparkColumn) -> DataFrame:
    """Return the events during an incident, with its number."""
    return _beside(held, events, time, 0).where("during")


def _beside(held: DataFrame, events: DataFrame, time: SparkColumn, seconds: int) -> DataFrame:
    """Return the events during an incident, and up to so many seconds before one: with its number, and `during`.

    Incidents do not overlap. So it is enough to put incidents and events into one order, and to look at the nearest ones.
    """
    place = f.struct("incident", f.unix_micros("began").alias("began"), f.unix_micros("until").alias("until"))
    marks = held.select(
        "cluster_id", f.unix_micros("began").alias("_at"), f.lit(0).alias("_rank"), place.alias("_mark")
    )
    told = events.withColumns({"_at": f.unix_micros(time), "_rank": f.lit(1)})
    both = told.unionByName(marks, allowMissingColumns=True)
    by_cluster = Window.partitionBy("cluster_id")
    forward, back = by_cluster.orderBy("_at", "_rank"), by_cluster.orderBy(f.desc("_at"), f.desc("_rank"))
    nearest = f.last("_mark", ignorenulls=True)
    last = nearest.over(forward.rowsBetween(Window.unboundedPreceding, 0))
    # Backwards, because Spark computes a frame that ends with the last row anew for each row.
    coming = nearest.over(back.rowsBetween(Window.unboundedPreceding, 0))
    placed = both.withColumns({"_last": last, "_next": coming}).where("_mark is null")
    during = f.coalesce(f.col("_last.until") + GAP_SECONDS * 1_000_000 >= f.col("_at"), f.lit(False))
    soon = f.coalesce(f.col("_next.began") - f.col("_at") <= f.lit(seconds * 1_000_000).cast("long"), f.lit(False))
    rows = placed.withColumns({"during": during, "soon": soon}).where("during or soon")
    number = f.when(f.col("during"), f.col("_last.incident")).otherwise(f.col("_next.incident"))
    return rows.withColumn("incident", number).drop("_at", "_rank", "_mark", "_last", "_next", "soon", "began", "until")


def _stalled(held: DataFrame, group_offsets: DataFrame) -> DataFrame:
    """Return the groups of each incident of at least a minute that committed before, and not during it."""
    long = held.where(f"unix_micros(until) - unix_micros(began) >= {GAP_SECONDS * 1_000_000}")
    # Until it is over, and not the minute after that, in which groups go on.
    strict = long.withColumn("until", f.col("until") - f.expr(f"interval {GAP_SECONDS} seconds"))
    commits = group_offsets.select("cluster_id", "group_id", f.col("valid_from_time").alias("time")).distinct()
    seen = _beside(strict, commits, f.col("time"), BEFORE_SECONDS)
    quiet = seen.groupBy("cluster_id", "incident", "group_id").agg(f.max("during").alias("read")).where("not read")
    return quiet.groupBy("cluster_id", "incident").agg(f.sort_array(f.collect_set("group_id")).alias("stalled_groups"))


TABLES = (
    Table(
        "incidents",
        "gold",
        "What went wrong, when, and what was affected?",
        INCIDENTS,
        ("partition_trouble", "broker_fences", "leader_changes", "group_offsets"),
        incidents,
        Mode.FULL,
        ("cluster_id", "began"),
    ),
)
