"""Availability of partitions: minutes under-replicated, without a leader, below min ISR; leader changes and their causes.

Times are those of the log. min.insync.replicas is taken from the log, set for the topic or for all brokers; the lake does not
have properties files of brokers, and otherwise assumes 1.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame, Window
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import by_the_clock, islands, lasting, log_ends, minutes_between, with_before
from barnabas.lake.tables.gold.shared_columns import CLUSTER, PARTITION, TOPIC, WHEN

_MIN_ISR = "min.insync.replicas"
_PLACE = "struct<offset: bigint, time: timestamp>"
_TOPIC = ["cluster_id", "topic_id", "topic_name"]
_PARTITION = [*_TOPIC, "partition"]

PARTITION_TROUBLE = (
    *PARTITION,
    Column("valid_from_offset", "bigint", "The record that started it."),
    Column("began", "timestamp", "When it started."),
    Column("until", "timestamp", "When it ended, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether it has ended."),
    Column(
        "under_replicated", "boolean", "Fewer in-sync replicas than replicas, without those that a reassignment adds."
    ),
    Column("offline", "boolean", "There was no leader."),
    Column(
        "below_min_isr",
        "boolean",
        "Fewer in-sync replicas than min.insync.replicas, or than all replicas if these are fewer.",
    ),
    Column("min_isr", "int", "The min.insync.replicas that applied."),
    Column("missing", "array<int>", "The replicas that were not in sync, without those that a reassignment adds."),
)


def partition_trouble(partitions: DataFrame, configs: DataFrame, metadata_records: DataFrame) -> DataFrame:
    """Return spans in which a partition was under-replicated, offline or below min ISR, with constant flags in each span."""
    wanted = f.array_except("replicas", f.coalesce("adding_replicas", f.array().cast("array<int>")))
    rows = partitions.withColumns(
        {
            "missing": f.array_except(wanted, "isr"),
            "under_replicated": f.size("isr") < f.size(wanted),
            "offline": f.col("leader") == -1,
        }
    ).where((f.size(f.array_except("replicas", "isr")) > 0) | f.col("offline"))
    needed = f.least("min_isr", f.size("replicas"))  # a broker requires no more than there are
    judged = _with_min_isr(rows, configs).withColumn("below_min_isr", f.size("isr") < needed)
    said = ["under_replicated", "offline", "below_min_isr", "min_isr", "missing"]
    spans = islands(judged, ["topic_id", "topic_name", "partition"], said).where(
        "under_replicated or offline or below_min_isr"
    )
    return lasting(spans, log_ends(metadata_records)).select(
        *_PARTITION,
        "valid_from_offset",
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        f.col("valid_to_offset").isNotNull().alias("is_over"),
        *said,
    )


def _with_min_isr(rows: DataFrame, configs: DataFrame) -> DataFrame:
    """Add `min_isr` (set for the topic, else for all brokers, else 1), and cut rows where it was set or unset."""
    wanted = configs.where(f.col("name") == _MIN_ISR).select(
        "cluster_id",
        "resource_type",
        "resource_name",
        f.expr("try_cast(value as int)").alias("value"),
        f.struct(f.col("valid_from_offset").alias("offset"), f.col("valid_from_time").alias("time")).alias("set"),
        f.struct(f.col("valid_to_offset").alias("offset"), f.col("valid_to_time").alias("time")).alias("unset"),
    )
    of_topics = wanted.where("resource_type = 'TOPIC'").withColumnRenamed("resource_name", "topic_name")
    of_brokers = wanted.where("resource_type = 'BROKER' and resource_name = ''").drop("resource_name")
    pieces = _cut(_cut(rows, of_topics, ["cluster_id", "topic_name"]), of_brokers, ["cluster_id"])

    def held(own: str) -> SparkColumn:
        began = f.col("valid_from_offset")
        return (f.col(f"{own}.set.offset") <= began) & f.coalesce(f.col(f"{own}.unset.offset") > began, f.lit(True))

    topic, broker = of_topics.alias("t"), of_brokers.alias("b")
    joined = pieces.alias("r").join(
        topic,
        (f.col("r.cluster_id") == f.col("t.cluster_id")) & (f.col("r.topic_name") == f.col("t.topic_name")) & held("t"),
        "left",
    )
    joined = joined.join(broker, (f.col("r.cluster_id") == f.col("b.cluster_id")) & held("b"), "left")
    return joined.select("r.*", f.coalesce("t.value", "b.value", f.lit(1)).alias("min_isr"))


def _cut(rows: DataFrame, settings: DataFrame, on: list[str]) -> DataFrame:
    """Cut rows where one of their settings started or ended inside of them."""
    cuts = settings.groupBy(*on).agg(f.array_distinct(f.flatten(f.collect_list(f.array("set", "unset")))).alias("cuts"))
    start = f.struct(f.col("valid_from_offset").alias("offset"), f.col("valid_from_time").alias("time"))
    end = f.struct(f.col("valid_to_offset").alias("offset"), f.col("valid_to_time").alias("time"))
    inside = f.filter(
        "cuts",
        lambda cut: (
            (cut["offset"] > f.col("valid_from_offset"))
            & f.coalesce(cut["offset"] < f.col("valid_to_offset"), f.col("valid_to_offset").isNull())
        ),
    )
    places = f.sort_array(f.coalesce(inside, f.array().cast(f"array<{_PLACE}>")))
    pieces = (
        rows.join(f.broadcast(cuts), on, "left")
        .withColumn("places", places)
        .withColumn(
            "piece",
            f.explode(
                f.arrays_zip(
                    f.concat(f.array(start), "places").alias("start"), f.concat("places", f.array(end)).alias("end")
                )
            ),
        )
    )
    bounds = {
        f"valid_{side}_{what}": f.col(f"piece.{place}.{what}")
        for side, place in (("from", "start"), ("to", "end"))
        for what in ("offset", "time")
    }
    return pieces.withColumns(bounds).drop("cuts", "places", "piece")


AVAILABILITY = (
    *TOPIC,
    Column("partitions", "bigint", "Number of its partitions that ever had trouble."),
    Column("under_replicated_minutes", "double", "Minutes in which some partition of it was under-replicated."),
    Column("offline_minutes", "double", "Minutes in which some partition of it had no leader."),
    Column("below_min_isr_minutes", "double", "Minutes in which some partition of it was below min.insync.replicas."),
    Column("is_over", "boolean", "Whether all of it has ended by the end of the log."),
)


def _kinds(*names: str) -> dict[str, SparkColumn]:
    return {name: f.col(name) for name in names}


def topic_availability(partition_trouble: DataFrame) -> DataFrame:
    minutes = by_the_clock(partition_trouble, _TOPIC, **_kinds("under_replicated", "offline", "below_min_isr"))
    counts = partition_trouble.groupBy(*_TOPIC).agg(
        f.countDistinct("partition").alias("partitions"), f.every("is_over").alias("is_over")
    )
    return counts.join(minutes, _TOPIC).select(*(column.name for column in AVAILABILITY))


BROKER_AVAILABILITY = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("out_of_sync_minutes", "double", "Minutes in which some replica of it was not in sync."),
    Column("offline_minutes", "double", "Of these, minutes in which such a partition had no leader."),
    Column(
        "below_min_isr_minutes", "double", "Of these, minutes in which such a partition was below min.insync.replicas."
    ),
    Column("partitions", "bigint", "Number of partitions affected."),
    Column("fenced_minutes", "double", "Minutes that it was fenced, after it had once been unfenced."),
    Column("fences", "bigint", "How often it was fenced, after it had once been unfenced."),
)


def broker_availability(partition_trouble: DataFrame, broker_fences: DataFrame, brokers: DataFrame) -> DataFrame:
    keys = ["cluster_id", "broker_id"]
    out = partition_trouble.withColumn("broker_id", f.explode("missing"))
    minutes = by_the_clock(out, keys, out_of_sync=f.lit(True), **_kinds("offline", "below_min_isr"))
    partitions = out.groupBy(*keys).agg(f.countDistinct("topic_id", "partition").alias("partitions"))
    missing = minutes.join(partitions, keys)
    fenced = (
        broker_fences.where("cause != 'start'")
        .groupBy(*keys)
        .agg(f.sum("minutes").alias("fenced_minutes"), f.count("*").alias("fences"))
    )
    joined = brokers.select(*keys).distinct().join(missing, keys, "left").join(fenced, keys, "left")
    return joined.fillna(0).select(*(column.name for column in BROKER_AVAILABILITY))


BROKER_FENCES = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("valid_from_offset", "bigint", "The record that fenced it."),
    Column("began", "timestamp", "When it was fenced."),
    Column("until", "timestamp", "When it was unfenced or unregistered, or the end of the log."),
    Column("minutes", "double", "How long it lasted."),
    Column("is_over", "boolean", "Whether it has ended."),
    Column(
        "cause",
        "string",
        "start (it was not registered before), restart (another process registered in its place), shutdown (a controlled"
        " shutdown), or silence (its session expired; also a shutdown while it led nothing, which looks the same in the log).",
    ),
)


def broker_fences(brokers: DataFrame, metadata_records: DataFrame) -> DataFrame:
    """Return one row for each time that a broker was fenced, with the cause."""
    rows = with_before(brokers, ["broker_id"], ["fenced", "incarnation_id"]).where("fenced")
    cause = (
        f.when(f.col("before").isNull(), "start")
        .when(f.col("before.incarnation_id") != f.col("incarnation_id"), "restart")
        .when(f.col("in_controlled_shutdown"), "shutdown")
        .otherwise("silence")
    )
    place = ["cluster_id", "broker_id", "valid_from_offset"]
    spans = islands(brokers, ["broker_id"], ["fenced"]).join(rows.select(*place, cause.alias("cause")), place)
    return lasting(spans, log_ends(metadata_records)).select(
        *place,
        f.col("valid_from_time").alias("began"),
        "until",
        "minutes",
        f.col("valid_to_offset").isNotNull().alias("is_over"),
        "cause",
    )


LEADER_CHANGES = (
    *PARTITION,
    *WHEN,
    Column("leader_before", "int", "The previous leader; -1: none."),
    Column("leader", "int", "The new leader; -1: none."),
    Column("leader_epoch", "int", "The new leader epoch of the partition."),
    Column("cause", "string", "The cause, inferred from what happened at the same time; unknown otherwise."),
)
NEIGHBOUR_SECONDS = 1
"""A broker's change can be the cause of changes within this time: mostly both are in one batch."""


def _broker_events(brokers: DataFrame) -> DataFrame:
    """Return when each broker was fenced, shut down, came back, or lost a log dir: event, event_offset and event_time."""
    rows = with_before(brokers, ["broker_id"], ["fenced", "in_controlled_shutdown", "incarnation_id", "log_dirs"])
    was = f.col("before")
    is_same = was["incarnation_id"] == f.col("incarnation_id")
    event = (
        f.when(f.col("in_controlled_shutdown") & ~f.coalesce(was["in_controlled_shutdown"], f.lit(False)), "shut down")
        .when(f.col("fenced") & was.isNotNull() & ~was["fenced"], "fenced")
        .when(~f.col("fenced") & was["fenced"], "came back")
        .when(is_same & (f.size(f.array_except(was["log_dirs"], f.col("log_dirs"))) > 0), "lost a log dir")
    )

    def events(found: DataFrame, what: SparkColumn, side: str) -> DataFrame:
        offset, time = f.col(f"valid_{side}_offset"), f.col(f"valid_{side}_time")
        place = ("cluster_id", "broker_id")
        return found.select(*place, what.alias("event"), offset.alias("event_offset"), time.alias("event_time"))

    gone = events(rows.where("is_last"), f.lit("unregistered"), "to")
    return events(rows, event, "from").where("event is not null").unionByName(gone)


def leader_changes(partitions: DataFrame, brokers: DataFrame) -> DataFrame:
    kept = ["leader", "leader_recovery_state"]
    rows = with_before(partitions, ["topic_id", "partition"], kept).where("before.leader != leader")
    was_led = f.col("before.leader") != -1
    is_replica = f.array_contains("replicas", f.col("before.leader"))
    is_in_sync = f.array_contains("isr", f.col("before.leader"))
    unclean = (f.col("leader_recovery_state") == "RECOVERING") & (f.col("before.leader_recovery_state") != "RECOVERING")
    cause = (
        f.when(unclean, "unclean election")
        .when(was_led & ~is_replica, "reassignment")
        .when(f.col("neighbour").isNotNull(), f.col("neighbour"))
        .when((f.col("leader") == f.col("replicas")[0]) & is_in_sync, "preferred leader election")
        .otherwise("unknown")
    )
    # A broker that shuts down leaves the ISR, unless it is the last in it; if there was no leader, one can only come back.
    went = was_led & is_replica & (~is_in_sync | (f.col("leader") == -1))
    concerned = rows.where(went | ~was_led).select(
        "cluster_id",
        "topic_id",
        "partition",
        "valid_from_offset",
        "valid_from_time",
        was_led.alias("was_led"),
        f.when(was_led, f.col("before.leader")).otherwise(f.col("leader")).alias("broker_id"),
    )
    apart = f.abs(f.unix_micros("valid_from_time") - f.unix_micros("event_time"))  # 0 within one batch
    distance = f.struct(apart, f.abs(f.col("valid_from_offset") - f.col("event_offset")))
    found = (
        concerned.join(f.broadcast(_broker_events(brokers)), ["cluster_id", "broker_id"])
        .where((apart <= NEIGHBOUR_SECONDS * 1_000_000) & (f.col("was_led") == (f.col("event") != "came back")))
        .groupBy("cluster_id", "topic_id", "partition", "valid_from_offset")
        .agg(
            f.min_by(f.concat_ws(" ", f.lit("broker"), f.col("broker_id").cast("string"), "event"), distance).alias(
                "neighbour"
            )
        )
    )
    return rows.join(found, ["cluster_id", "topic_id", "partition", "valid_from_offset"], "left").select(
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
    Column("first_time", "timestamp", "When it left for the first time."),
    Column("last_time", "timestamp", "When it left for the last time."),
    Column("shortest_minutes", "double", "The shortest time between leaving twice; null: it left once."),
)


def isr_flaps(partitions: DataFrame) -> DataFrame:
    """Return brokers that left an ISR, and how often."""
    rows = with_before(partitions, ["topic_id", "partition"], ["isr", "replicas"]).where("before is not null")
    left = f.array_intersect(f.array_except("before.isr", "isr"), f.col("replicas"))
    time = f.col("valid_from_time").alias("time")
    events = rows.select(*_PARTITION, "valid_from_offset", time, f.explode(left).alias("broker_id"))
    order = Window.partitionBy("cluster_id", "topic_id", "partition", "broker_id").orderBy("valid_from_offset")
    between = events.withColumn("gap", minutes_between(f.lag("time").over(order), f.col("time")))
    return between.groupBy(*_PARTITION, "broker_id").agg(
        f.count("*").alias("times"),
        f.min_by("time", "valid_from_offset").alias("first_time"),
        f.max_by("time", "valid_from_offset").alias("last_time"),
        f.min("gap").alias("shortest_minutes"),
    )


TABLES = (
    Table(
        "partition_trouble",
        "gold",
        "When was which partition under-replicated, without a leader, or below min.insync.replicas?",
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
        "How many minutes was each topic under-replicated, offline, or below min.insync.replicas?",
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
        "Which replicas left the ISR, and how often?",
        ISR_FLAPS,
        ("partitions",),
        isr_flaps,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition", "broker_id"),
    ),
)
