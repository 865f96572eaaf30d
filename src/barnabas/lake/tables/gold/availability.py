"""How available partitions were: minutes under-replicated, without a leader, below min ISR; who led, and why that changed.

Times are those of the log. Whether a partition was below its minimum is known from what is set in the log, for the topic or for
all brokers; what stands in the files of brokers is not there, and 1 is taken.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.columns import CLUSTER, PARTITION, TOPIC, WHEN
from barnabas.lake.tables.gold.intervals import islands, lasting, log_ends, minutes_between, with_before

_MIN_ISR = "min.insync.replicas"
_TOPIC = ["cluster_id", "topic_id", "topic_name"]
_PARTITION = [*_TOPIC, "partition"]

PARTITION_TROUBLE = (
    *PARTITION,
    Column("valid_from_offset", "bigint", "The record with which it began."),
    Column("began", "timestamp", "When it began."),
    Column("until", "timestamp", "When it ended, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether it ended."),
    Column("under_replicated", "boolean", "Fewer in sync than replicas, not counting those that a reassignment adds."),
    Column("offline", "boolean", "Nobody led."),
    Column("below_min_isr", "boolean", "Fewer in sync than min.insync.replicas."),
    Column("min_isr", "int", "The min.insync.replicas that counted, at the time it began."),
    Column("missing", "array<int>", "The replicas that were not in sync."),
)


def _replicas_wanted() -> SparkColumn:
    return f.array_except("replicas", f.coalesce("adding_replicas", f.array().cast("array<int>")))


def partition_trouble(partitions: DataFrame, configs: DataFrame, metadata_records: DataFrame) -> DataFrame:
    """Rows of partitions that were under-replicated, offline or below min ISR, split where the minimum changed."""
    rows = lasting(partitions, log_ends(metadata_records)).withColumn("missing", f.array_except("replicas", "isr"))
    rows = rows.withColumn("under_replicated", f.size("isr") < f.size(_replicas_wanted())).withColumn(
        "offline", f.col("leader") == -1
    )
    trouble = rows.where((f.size("missing") > 0) | f.col("offline"))
    split = _with_min_isr(trouble, configs)
    judged = split.withColumn("below_min_isr", f.size("isr") < f.col("min_isr")).where(
        "under_replicated or offline or below_min_isr"
    )
    return judged.select(
        *_PARTITION,
        "valid_from_offset",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        f.col("valid_to_offset").isNotNull().alias("is_over"),
        "under_replicated",
        "offline",
        "below_min_isr",
        "min_isr",
        "missing",
    )


def _with_min_isr(rows: DataFrame, configs: DataFrame) -> DataFrame:
    """With `min_isr` as it was set when the row began: for the topic, else for all brokers, else 1."""
    wanted = configs.where(f.col("name") == _MIN_ISR).select(
        "cluster_id",
        "resource_type",
        "resource_name",
        f.expr("try_cast(value as int)").alias("value"),
        f.col("valid_from_offset").alias("set_from"),
        f.col("valid_to_offset").alias("set_to"),
    )
    of_topics = wanted.where("resource_type = 'TOPIC'").withColumnRenamed("resource_name", "topic_name")
    of_brokers = wanted.where("resource_type = 'BROKER' and resource_name = ''").drop("resource_name")

    def held(own: str) -> SparkColumn:
        began = f.col("valid_from_offset")
        return (f.col(f"{own}.set_from") <= began) & f.coalesce(f.col(f"{own}.set_to") > began, f.lit(True))

    topic, broker = of_topics.alias("t"), of_brokers.alias("b")
    joined = rows.alias("r").join(
        topic,
        (f.col("r.cluster_id") == f.col("t.cluster_id")) & (f.col("r.topic_name") == f.col("t.topic_name")) & held("t"),
        "left",
    )
    joined = joined.join(broker, (f.col("r.cluster_id") == f.col("b.cluster_id")) & held("b"), "left")
    return joined.select("r.*", f.coalesce("t.value", "b.value", f.lit(1)).alias("min_isr"))


AVAILABILITY = (
    *TOPIC,
    Column("partitions", "bigint", "How many of its partitions ever had trouble."),
    Column("under_replicated_minutes", "double", "Summed over its partitions."),
    Column("offline_minutes", "double", "Summed over its partitions."),
    Column("below_min_isr_minutes", "double", "Summed over its partitions."),
    Column("is_over", "boolean", "Whether nothing of it goes on at the end of the log."),
)


def _minutes(condition: str) -> SparkColumn:
    return f.sum(f.when(f.col(condition), f.col("minutes")).otherwise(0.0)).alias(f"{condition}_minutes")


def topic_availability(partition_trouble: DataFrame) -> DataFrame:
    return partition_trouble.groupBy(*_TOPIC).agg(
        f.countDistinct("partition").alias("partitions"),
        _minutes("under_replicated"),
        _minutes("offline"),
        _minutes("below_min_isr"),
        f.every("is_over").alias("is_over"),
    )


BROKER_AVAILABILITY = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("out_of_sync_minutes", "double", "How long its replicas were not in sync, summed over partitions."),
    Column("partitions", "bigint", "How many partitions that concerned."),
    Column("fenced_minutes", "double", "How long it was fenced, after it had once been unfenced."),
    Column("fences", "bigint", "How often it was fenced."),
)


def broker_availability(partition_trouble: DataFrame, broker_fences: DataFrame, brokers: DataFrame) -> DataFrame:
    missing = (
        partition_trouble.select(*_PARTITION, "minutes", f.explode("missing").alias("broker_id"))
        .groupBy("cluster_id", "broker_id")
        .agg(
            f.sum("minutes").alias("out_of_sync_minutes"),
            f.countDistinct("topic_id", "partition").alias("partitions"),
        )
    )
    fenced = broker_fences.groupBy("cluster_id", "broker_id").agg(
        f.sum("minutes").alias("fenced_minutes"), f.count("*").alias("fences")
    )
    keys = ["cluster_id", "broker_id"]
    joined = brokers.select(*keys).distinct().join(missing, keys, "left").join(fenced, keys, "left")
    return joined.select(
        *keys,
        f.coalesce("out_of_sync_minutes", f.lit(0.0)).alias("out_of_sync_minutes"),
        f.coalesce("partitions", f.lit(0).cast("bigint")).alias("partitions"),
        f.coalesce("fenced_minutes", f.lit(0.0)).alias("fenced_minutes"),
        f.coalesce("fences", f.lit(0).cast("bigint")).alias("fences"),
    )


BROKER_FENCES = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("valid_from_offset", "bigint", "The record with which it was fenced."),
    Column("began", "timestamp", "When it was fenced."),
    Column("until", "timestamp", "When it was unfenced or unregistered, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether it ended."),
    Column("cause", "string", "shutdown (it had said that it goes), silence, or start (a new process)."),
)


def broker_fences(brokers: DataFrame, metadata_records: DataFrame) -> DataFrame:
    columns = ["fenced", "incarnation_id", "in_controlled_shutdown"]
    rows = with_before(islands(brokers, ["broker_id"], columns), ["broker_id"], columns)
    is_new = f.col("before").isNull() | (f.col("before.incarnation_id") != f.col("incarnation_id"))
    cause = f.when(is_new, "start").when(f.col("in_controlled_shutdown"), "shutdown").otherwise("silence")
    return lasting(rows.where("fenced"), log_ends(metadata_records)).select(
        "cluster_id",
        "broker_id",
        "valid_from_offset",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        f.col("valid_to_offset").isNotNull().alias("is_over"),
        cause.alias("cause"),
    )


LEADER_CHANGES = (
    *PARTITION,
    *WHEN,
    Column("leader_before", "int", "Who led before; -1: nobody."),
    Column("leader", "int", "Who led after; -1: nobody."),
    Column("leader_epoch", "int", "The epoch of the partition that began."),
    Column("cause", "string", "Inferred from what happened at the same time; unknown otherwise."),
)
NEIGHBOUR_SECONDS = 1
"""A broker's change counts as the cause of what followed within this time: both are mostly of one batch."""


def _broker_events(brokers: DataFrame) -> DataFrame:
    """When each broker was fenced, went, or came back: cluster_id, broker_id, event, event_time."""
    rows = with_before(brokers, ["broker_id"], ["fenced", "in_controlled_shutdown", "epoch"])
    was = f.col("before")
    event = (
        f.when(f.col("in_controlled_shutdown") & ~f.coalesce(was["in_controlled_shutdown"], f.lit(False)), "shut down")
        .when(f.col("fenced") & was.isNotNull() & ~was["fenced"], "fenced")
        .when(~f.col("fenced") & was["fenced"], "unfenced")
    )
    place = ("cluster_id", "broker_id")
    changed = rows.select(*place, event.alias("event"), f.col("valid_from_time").alias("event_time"))
    gone = rows.where("is_last").select(
        *place, f.lit("unregistered").alias("event"), f.col("valid_to_time").alias("event_time")
    )
    return changed.where("event is not null").unionByName(gone)


def leader_changes(partitions: DataFrame, brokers: DataFrame) -> DataFrame:
    kept = [
        "leader",
        "leader_epoch",
        "replicas",
        "isr",
        "adding_replicas",
        "removing_replicas",
        "leader_recovery_state",
    ]
    rows = with_before(partitions, ["topic_id", "partition"], kept).where("before.leader != leader")
    events = _broker_events(brokers)
    went = f.when(
        f.col("event") != "unfenced", f.concat(f.lit("broker "), f.col("b.broker_id"), f.lit(" "), f.col("event"))
    )
    came = f.when(f.col("event") == "unfenced", f.concat(f.lit("broker "), f.col("b.broker_id"), f.lit(" came back")))
    near = f.abs(f.unix_micros("r.valid_from_time") - f.unix_micros("b.event_time")) <= NEIGHBOUR_SECONDS * 1_000_000
    concerned = ((f.col("b.broker_id") == f.col("r.before.leader")) & (f.col("event") != "unfenced")) | (
        (f.col("b.broker_id") == f.col("r.leader")) & (f.col("event") == "unfenced")
    )
    joined = rows.alias("r").join(
        events.alias("b"), (f.col("r.cluster_id") == f.col("b.cluster_id")) & near & concerned, "left"
    )
    found = joined.groupBy("r.cluster_id", "r.topic_id", "r.partition", "r.valid_from_offset").agg(
        f.min(went).alias("went"), f.min(came).alias("came")
    )
    moved = (
        (f.size("adding_replicas") > 0)
        | (f.size("before.adding_replicas") > 0)
        | (~f.array_contains("replicas", f.col("before.leader")))
    )
    preferred = (f.col("leader") == f.col("replicas")[0]) & f.array_contains("isr", f.col("before.leader"))
    unclean = (f.col("leader_recovery_state") == "RECOVERING") & (f.col("before.leader_recovery_state") != "RECOVERING")
    cause = (
        f.when(unclean, "unclean election")
        .when(f.col("went").isNotNull(), f.col("went"))
        .when((f.col("before.leader") == -1) & f.col("came").isNotNull(), f.col("came"))
        .when(moved, "reassignment")
        .when(preferred, "preferred leader election")
        .otherwise("unknown")
    )
    return rows.join(found, ["cluster_id", "topic_id", "partition", "valid_from_offset"]).select(
        *_PARTITION,
        f.col("valid_from_offset").alias("offset"),
        f.col("valid_from_time").alias("time"),
        f.col("valid_from_epoch").alias("epoch"),
        f.col("before.leader").alias("leader_before"),
        "leader",
        "leader_epoch",
        cause.alias("cause"),
    )


ISR_FLAPS = (
    *PARTITION,
    Column("broker_id", "int", "The broker that left the ISR."),
    Column("times", "bigint", "How often it left."),
    Column("first_time", "timestamp", "When it left first."),
    Column("last_time", "timestamp", "When it left last."),
    Column("shortest_minutes", "double", "The time between two leavings, at the shortest; null: it left once."),
)


def isr_flaps(partitions: DataFrame) -> DataFrame:
    """Brokers that left an ISR, and how often."""
    rows = with_before(partitions, ["topic_id", "partition"], ["isr", "replicas"]).where("before is not null")
    left = f.array_intersect(f.array_except("before.isr", "isr"), f.col("replicas"))
    events = rows.select(*_PARTITION, f.col("valid_from_time").alias("time"), f.explode(left).alias("broker_id"))
    order = Window.partitionBy("cluster_id", "topic_id", "partition", "broker_id").orderBy("time")
    between = events.withColumn("gap", minutes_between(f.lag("time").over(order), f.col("time")))
    return between.groupBy(*_PARTITION, "broker_id").agg(
        f.count("*").alias("times"),
        f.min("time").alias("first_time"),
        f.max("time").alias("last_time"),
        f.min("gap").alias("shortest_minutes"),
    )


TABLES = (
    Table(
        "partition_trouble",
        "gold",
        "When was which partition under-replicated, without a leader, or below its minimum in sync?",
        PARTITION_TROUBLE,
        ("partitions", "configs", "metadata_records"),
        partition_trouble,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition", "valid_from_offset"),
        not_null=("cluster_id", "topic_id", "partition", "minutes"),
    ),
    Table(
        "topic_availability",
        "gold",
        "How many minutes was each topic under-replicated, offline, or below its minimum in sync?",
        AVAILABILITY,
        ("partition_trouble",),
        topic_availability,
        Mode.FULL,
        ("cluster_id", "topic_id"),
    ),
    Table(
        "broker_fences",
        "gold",
        "When was which broker fenced, for how long, and why?",
        BROKER_FENCES,
        ("brokers", "metadata_records"),
        broker_fences,
        Mode.FULL,
        ("cluster_id", "broker_id", "valid_from_offset"),
    ),
    Table(
        "broker_availability",
        "gold",
        "How long were each broker's replicas out of sync, and how long was it fenced?",
        BROKER_AVAILABILITY,
        ("partition_trouble", "broker_fences", "brokers"),
        broker_availability,
        Mode.FULL,
        ("cluster_id", "broker_id"),
    ),
    Table(
        "leader_changes",
        "gold",
        "Which partitions changed their leader, and why?",
        LEADER_CHANGES,
        ("partitions", "brokers"),
        leader_changes,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition", "offset"),
        not_null=("cause",),
    ),
    Table(
        "isr_flaps",
        "gold",
        "Which replicas left the set of those in sync, and how often?",
        ISR_FLAPS,
        ("partitions",),
        isr_flaps,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition", "broker_id"),
    ),
)
