"""Observations of a live cluster over time: lag in the quorum, usage of disks, lag of groups.

Made from the rows of `lake run --observe`. Nothing is known of the time between two observations; its length is in the tables.
"""

from __future__ import annotations

from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import minutes_between
from barnabas.lake.tables.gold.shared_columns import CLUSTER

_OBSERVATIONS = Column("observations", "bigint", "Number of observations.")

QUORUM_LAG = (
    CLUSTER,
    Column("observation_id", "string", "The observation."),
    Column("observed_at", "timestamp", "The time of the observation."),
    Column("replica_id", "int", "A node that replicates the metadata log."),
    Column("directory_id", "string", "The id of its directory; null if it is unknown."),
    Column("role", "string", "leader, voter or observer."),
    Column("lag", "bigint", "Number of records behind the leader."),
    Column("seconds_since_caught_up", "double", "Seconds since it was last at the end of the log; null: it never was."),
    Column("leader_epoch", "int", "The leader epoch of the quorum."),
    Column("seconds_since_previous", "double", "Seconds since the previous observation; null: it is the first."),
)


def quorum_lag(observed_quorum: DataFrame) -> DataFrame:
    # The leader's clock may be ahead of ours.
    since = f.expr("if(last_caught_up_time > observed_at, observed_at, last_caught_up_time)")
    seconds = (f.unix_millis("observed_at") - f.unix_millis(since)) / 1000
    caught_up = f.when(f.col("role") == "leader", 0.0).otherwise(seconds)
    return observed_quorum.withColumn("seconds_since_caught_up", caught_up).select(
        *(column.name for column in QUORUM_LAG)
    )


QUORUM_HEALTH = (
    CLUSTER,
    Column("replica_id", "int", "A node that replicates the metadata log."),
    Column("directory_id", "string", "The id of its directory; null if it is unknown."),
    Column("role", "string", "leader, voter or observer, when last seen."),
    Column("lag", "bigint", "Number of records behind the leader, when last seen."),
    Column("most_lag", "bigint", "The largest lag."),
    Column("seconds_since_caught_up", "double", "Seconds since it was at the end of the log, when last seen."),
    Column("most_seconds_since_caught_up", "double", "The longest such time."),
    Column("times_leader", "bigint", "Number of observations in which it was the leader."),
    _OBSERVATIONS,
    Column("first_seen", "timestamp", "The first observation with it."),
    Column("last_seen", "timestamp", "The last observation with it."),
    Column("is_there", "boolean", "Whether it is in the last observation of the cluster."),
)


def quorum_health(quorum_lag: DataFrame) -> DataFrame:
    ends = quorum_lag.groupBy("cluster_id").agg(f.max("observed_at").alias("last_observed"))
    last = {
        name: f.max_by(name, "observed_at").alias(name)
        for name in ("directory_id", "role", "lag", "seconds_since_caught_up")
    }
    rows = quorum_lag.groupBy("cluster_id", "replica_id").agg(
        *last.values(),
        f.max("lag").alias("most_lag"),
        f.max("seconds_since_caught_up").alias("most_seconds_since_caught_up"),
        f.count_if(f.col("role") == "leader").alias("times_leader"),
        f.countDistinct("observation_id").alias("observations"),
        f.min("observed_at").alias("first_seen"),
        f.max("observed_at").alias("last_seen"),
    )
    return (
        rows.join(f.broadcast(ends), "cluster_id")
        .withColumn("is_there", f.col("last_seen") == f.col("last_observed"))
        .select(*(column.name for column in QUORUM_HEALTH))
    )


DISK_BALANCE = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("log_dir", "string", "One of its log dirs."),
    Column("replicas", "bigint", "Number of replicas in it."),
    Column("bytes", "bigint", "The size of their segments."),
    Column("skew", "double", "Its bytes, divided by the mean of all log dirs; 1 is even."),
    Column("volume_bytes", "bigint", "The size of its volume; null before Kafka 3.3."),
    Column("usable_bytes", "bigint", "Free bytes on the volume; null before Kafka 3.3."),
    Column("used_share", "double", "The share of the volume that is used, also by other files; null before Kafka 3.3."),
    Column("bytes_per_day", "double", "Its growth since the first observation; null: there is only one."),
    Column("observed_at", "timestamp", "The time of the observation, which is the last one."),
)


def disk_balance(observed_log_dirs: DataFrame) -> DataFrame:
    keys = ["cluster_id", "broker_id", "log_dir"]
    sizes = observed_log_dirs.groupBy(*keys, "observation_id").agg(
        f.max("observed_at").alias("observed_at"),
        f.count("topic_name").alias("replicas"),
        f.coalesce(f.sum("size_bytes"), f.lit(0)).alias("bytes"),
        f.max("total_bytes").alias("volume_bytes"),
        f.max("usable_bytes").alias("usable_bytes"),
    )
    mean = f.mean("bytes").over(Window.partitionBy("cluster_id"))
    rows = _growth(sizes, ["broker_id", "log_dir"]).withColumn("mean", mean)
    return rows.withColumns(
        {
            "skew": f.expr("try_divide(bytes, mean)"),
            "used_share": f.expr("1 - try_divide(usable_bytes, volume_bytes)"),
        }
    ).select(*(column.name for column in DISK_BALANCE))


TOPIC_SIZES = (
    CLUSTER,
    Column("topic", "string", "The topic."),
    Column("partitions", "bigint", "Number of its partitions on disks."),
    Column("bytes", "bigint", "The size of all of its replicas."),
    Column("largest_bytes", "bigint", "The size of the largest replica of its largest partition."),
    Column("largest_partition", "int", "That partition."),
    Column("skew", "double", "The largest, divided by the mean of its partitions; 1 is even."),
    Column("bytes_per_day", "double", "Its growth since the first observation; null: there is only one."),
    Column("observed_at", "timestamp", "The time of the observation, which is the last one."),
)


def topic_sizes(observed_log_dirs: DataFrame) -> DataFrame:
    held = observed_log_dirs.where("topic_name is not null and not is_future").withColumnRenamed("topic_name", "topic")
    partitions = held.groupBy("cluster_id", "topic", "partition", "observation_id").agg(
        f.max("observed_at").alias("observed_at"),
        f.sum("size_bytes").alias("bytes"),
        f.max("size_bytes").alias("largest"),
    )
    each = partitions.groupBy("cluster_id", "topic", "observation_id").agg(
        f.max("observed_at").alias("observed_at"),
        f.count("*").alias("partitions"),
        f.sum("bytes").alias("bytes"),
        f.max("largest").alias("largest_bytes"),
        f.max_by("partition", "largest").alias("largest_partition"),
        f.mean("largest").alias("mean"),
    )
    return (
        _growth(each, ["topic"])
        .withColumn("skew", f.expr("try_divide(largest_bytes, mean)"))
        .select(*(column.name for column in TOPIC_SIZES))
    )


def _growth(sizes: DataFrame, keys: list[str]) -> DataFrame:
    """Return the sizes (`bytes`) of the cluster's last observation, with `bytes_per_day` since the first."""
    whole = (Window.unboundedPreceding, Window.unboundedFollowing)
    order = Window.partitionBy("cluster_id", *keys).orderBy("observed_at").rowsBetween(*whole)
    first = f.first(f.struct("observed_at", "bytes")).over(order)
    newest = f.max("observed_at").over(Window.partitionBy("cluster_id"))
    days = minutes_between(f.col("first.observed_at"), f.col("observed_at")) / (24 * 60)
    last = sizes.withColumns({"first": first, "newest": newest}).where("observed_at = newest").withColumn("days", days)
    return last.withColumn("bytes_per_day", f.expr("try_divide(bytes - first.bytes, days)"))


GROUP_LAG_GROWTH = (
    CLUSTER,
    Column("group_id", "string", "The group."),
    Column("state", "string", "Its state, when last seen."),
    _OBSERVATIONS,
    Column("first_seen", "timestamp", "The first observation with it."),
    Column("last_seen", "timestamp", "The last observation with it."),
    Column("first_lag", "bigint", "Its lag in the first observation, over all of its partitions."),
    Column("lag", "bigint", "Its lag in the last observation."),
    Column("most_lag", "bigint", "Its largest lag."),
    Column("records_per_minute", "double", "The growth of its lag over all observations; null: there is only one."),
    Column(
        "lag_minutes",
        "double",
        "The age of its oldest unread record, when it was last seen; 0 if nothing is unread, null if one age is not known.",
    ),
    Column("verdict", "string", "none (no lag), growing, falling, steady, stopped (it reads nothing), or unknown."),
)


def group_lag_growth(observed_group_lag: DataFrame) -> DataFrame:
    group = ["cluster_id", "group_id"]
    known = observed_group_lag.where("lag is not null")
    age = f.expr("if(lag = 0, 0D, lag_minutes)")  # lag_minutes is younger than the other columns: old rows have none
    each = known.groupBy(*group, "observation_id").agg(
        f.max("observed_at").alias("observed_at"),
        f.max("state").alias("state"),
        f.sum("lag").alias("lag"),
        f.sum("committed_offset").alias("read"),
        f.when(f.every(age.isNotNull()), f.max(age)).alias("lag_minutes"),
    )
    minutes = f.expr("unix_millis(observed_at) / 60000D")
    rows = each.groupBy(*group).agg(
        f.max_by("state", "observed_at").alias("state"),
        f.count("*").alias("observations"),
        f.min("observed_at").alias("first_seen"),
        f.max("observed_at").alias("last_seen"),
        f.min_by("lag", "observed_at").alias("first_lag"),
        f.max_by("lag", "observed_at").alias("lag"),
        f.max("lag").alias("most_lag"),
        f.max_by("lag_minutes", "observed_at").alias("lag_minutes"),
        f.regr_slope("lag", minutes).alias("records_per_minute"),
        (f.min_by("read", "observed_at") == f.max_by("read", "observed_at")).alias("reads_nothing"),
    )
    verdict = (
        f.when(f.col("lag") == 0, "none")
        .when(f.col("observations") == 1, "unknown")
        .when(f.col("reads_nothing"), "stopped")
        .when(f.col("lag") > f.col("first_lag"), "growing")
        .when(f.col("lag") < f.col("first_lag"), "falling")
        .otherwise("steady")
    )
    return rows.withColumn("verdict", verdict).select(*(column.name for column in GROUP_LAG_GROWTH))


TABLES = (
    Table(
        "quorum_lag",
        "gold",
        "How far was each node of the quorum behind its leader, at each observation?",
        QUORUM_LAG,
        ("observed_quorum",),
        quorum_lag,
        Mode.FULL,
        ("cluster_id", "observation_id", "replica_id"),
    ),
    Table(
        "quorum_health",
        "gold",
        "Which nodes of the quorum lag, and for how long?",
        QUORUM_HEALTH,
        ("quorum_lag",),
        quorum_health,
        Mode.FULL,
        ("cluster_id", "replica_id"),
    ),
    Table(
        "topic_sizes",
        "gold",
        "How many bytes does each topic use on disks, and how evenly are its partitions filled?",
        TOPIC_SIZES,
        ("observed_log_dirs",),
        topic_sizes,
        Mode.FULL,
        ("cluster_id", "topic"),
    ),
    Table(
        "disk_balance",
        "gold",
        "How many bytes does each log dir have, how uneven is that, and how full is its volume?",
        DISK_BALANCE,
        ("observed_log_dirs",),
        disk_balance,
        Mode.FULL,
        ("cluster_id", "broker_id", "log_dir"),
    ),
    Table(
        "group_lag_growth",
        "gold",
        "Which groups fall behind while they are observed?",
        GROUP_LAG_GROWTH,
        ("observed_group_lag",),
        group_lag_growth,
        Mode.FULL,
        ("cluster_id", "group_id"),
        not_null=("verdict",),
        is_kept=True,
    ),
)
