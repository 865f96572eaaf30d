"""Traffic: rates and sizes by topic, hot partitions, heavy keys, and the number of partitions that a topic needs.

Made from bronze `traffic` and `key_counts`, so only of topics whose logs the lake has read. Rates are means over whole hours,
without records that retention removed before the lake read them.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table, Uses
from barnabas.lake.tables.gold.intervals import now, partition_counts
from barnabas.lake.tables.gold.shared_columns import CLUSTER

TARGET_BYTES_PER_SECOND = 5 * 1024 * 1024
"""The load of one partition in its busiest hour: a tenth of what a disk or a consumer can easily handle."""
HOT_SHARE = 2.0
"""A partition is hot from this many times its even share on."""
HOUR_SECONDS = 3600.0

_TOPIC = (
    CLUSTER,
    Column("topic_id", "string", "The topic's id; a re-created topic has another."),
    Column("topic", "string", "The topic."),
)
_KEY = [column.name for column in _TOPIC]

TOPIC_TRAFFIC = (
    *_TOPIC,
    Column("partitions", "bigint", "Number of its partitions with records."),
    Column("records", "bigint", "Number of records."),
    Column("bytes", "bigint", "Bytes of their keys and values."),
    Column("mean_record_bytes", "double", "Mean bytes per record."),
    Column("first_time", "timestamp", "The earliest timestamp of a record."),
    Column("last_time", "timestamp", "The latest timestamp of a record."),
    Column("mean_bytes_per_second", "double", "The mean rate, over hours with records."),
    Column("peak_bytes_per_second", "double", "The rate in the busiest hour."),
    Column("peak_hour", "timestamp", "The busiest hour."),
)


def topic_traffic(traffic: DataFrame) -> DataFrame:
    hours = traffic.groupBy(*_KEY, "hour").agg(f.sum("bytes").alias("hour_bytes"))
    busiest = hours.groupBy(*_KEY).agg(
        (f.max("hour_bytes") / HOUR_SECONDS).alias("peak_bytes_per_second"),
        (f.mean("hour_bytes") / HOUR_SECONDS).alias("mean_bytes_per_second"),
        f.max_by("hour", "hour_bytes").alias("peak_hour"),
    )
    whole = traffic.groupBy(*_KEY).agg(
        f.countDistinct("partition").alias("partitions"),
        f.sum("records").alias("records"),
        f.sum("bytes").alias("bytes"),
        f.min("first_time").alias("first_time"),
        f.max("last_time").alias("last_time"),
    )
    rows = whole.join(busiest, _KEY).withColumn("mean_record_bytes", f.expr("try_divide(bytes, records)"))
    return rows.select(*(column.name for column in TOPIC_TRAFFIC))


HOT_PARTITIONS = (
    *_TOPIC,
    Column("partition", "int", "The partition."),
    Column("bytes", "bigint", "Bytes written to it."),
    Column("share", "double", "Its share of all bytes of the topic."),
    Column("times_even", "double", "Its share, divided by the share that it would have if all were even."),
)


def hot_partitions(traffic: DataFrame, partitions: DataFrame) -> DataFrame:
    each = traffic.groupBy(*_KEY, "partition").agg(f.sum("bytes").alias("bytes"))
    whole = each.groupBy(*_KEY).agg(f.sum("bytes").alias("all_bytes"))
    rows = (
        each.join(whole, _KEY)
        .join(partition_counts(partitions), _KEY)
        .withColumn("share", f.expr("try_divide(bytes, all_bytes)"))
    )
    rows = rows.withColumn("times_even", f.col("share") * f.col("partitions"))
    return rows.where((f.col("partitions") > 1) & (f.col("times_even") >= HOT_SHARE)).select(
        *(column.name for column in HOT_PARTITIONS)
    )


KEY_SKEW = (
    *_TOPIC,
    Column("key", "string", "The key, as text if it is text, otherwise in hex."),
    Column("records", "bigint", "At least this many records have it, since only frequent keys are counted."),
    Column("share", "double", "Its share of all records of the topic."),
)


def key_skew(key_counts: DataFrame, traffic: DataFrame) -> DataFrame:
    """Return keys that have at least a tenth of the records of a topic."""
    each = key_counts.groupBy(*_KEY, "key").agg(f.sum("records").alias("records"))
    whole = traffic.groupBy(*_KEY).agg(f.sum("records").alias("all_records"))
    rows = each.join(whole, _KEY).withColumn("share", f.expr("try_divide(records, all_records)"))
    return rows.where("share >= 0.1 and all_records >= 100").select(*(column.name for column in KEY_SKEW))


PARTITION_PLAN = (
    *_TOPIC,
    Column("partitions", "int", "Its number of partitions."),
    Column("recommended", "int", "The recommended number; never smaller, since the number cannot be decreased."),
    Column("reason", "string", "The reason."),
    Column("peak_bytes_per_second", "double", "The rate in the busiest hour."),
    Column("most_members", "int", "Members of the largest group that reads it."),
)


def partition_plan(
    topic_traffic: DataFrame, partitions: DataFrame, group_offsets: DataFrame, groups: DataFrame, key_skew: DataFrame
) -> DataFrame:
    readers = (
        now(group_offsets)
        .select("cluster_id", "topic", "group_id")
        .distinct()
        .join(now(groups).select("cluster_id", "group_id", "members"), ["cluster_id", "group_id"])
        .groupBy("cluster_id", "topic")
        .agg(f.max("members").alias("most_members"))
    )
    heavy = key_skew.groupBy(*_KEY).agg(f.max("share").alias("heaviest"))
    rows = (
        partition_counts(partitions)
        .join(topic_traffic.select(*_KEY, "peak_bytes_per_second"), _KEY)
        .join(readers, ["cluster_id", "topic"], "left")
        .join(heavy, _KEY, "left")
        .withColumn("for_rate", f.ceil(f.col("peak_bytes_per_second") / TARGET_BYTES_PER_SECOND).cast("int"))
        .withColumn("for_members", f.coalesce("most_members", f.lit(0)))
        .withColumn("recommended", f.greatest("partitions", "for_rate", "for_members"))
    )
    megabytes = f.format_number(f.col("peak_bytes_per_second") / (1024 * 1024), 1)
    target = f"{TARGET_BYTES_PER_SECOND // (1024 * 1024)} MB/s"
    reason = (
        f.when(
            (f.col("recommended") > f.col("partitions")) & (f.col("for_rate") >= f.col("for_members")),
            f.concat(f.lit("its busiest hour has "), megabytes, f.lit(f" MB/s, and a partition should carry {target}")),
        )
        .when(
            f.col("recommended") > f.col("partitions"),
            f.concat(
                f.lit("a group has "),
                f.col("for_members").cast("string"),
                f.lit(" members, of which some have nothing to read"),
            ),
        )
        .when(
            (f.col("partitions") > 1)
            & (f.col("for_rate") * 4 <= f.col("partitions"))
            & (f.col("for_members") * 4 <= f.col("partitions")),
            f.lit("more than it needs; the number cannot be decreased"),
        )
        .otherwise(f.lit("enough"))
    )
    skewed = f.when(
        f.col("heaviest") >= 0.5,
        f.concat(
            f.lit("; one key has "),
            f.format_number(f.col("heaviest") * 100, 0),
            f.lit("% of it, which more partitions do not spread"),
        ),
    )
    return rows.withColumn("reason", f.concat(reason, f.coalesce(skewed, f.lit("")))).select(
        *(column.name for column in PARTITION_PLAN)
    )


TABLES = (
    Table(
        "topic_traffic",
        "gold",
        "How much is written to each topic, and when most?",
        TOPIC_TRAFFIC,
        ("traffic",),
        topic_traffic,
        Mode.FULL,
        ("cluster_id", "topic_id"),
    ),
    Table(
        "hot_partitions",
        "gold",
        "Which partitions get much more than their share?",
        HOT_PARTITIONS,
        ("traffic", "partitions"),
        hot_partitions,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition"),
    ),
    Table(
        "key_skew",
        "gold",
        "Which keys make a large part of a topic?",
        KEY_SKEW,
        ("key_counts", "traffic"),
        key_skew,
        Mode.FULL,
        ("cluster_id", "topic_id", "key"),
    ),
    Table(
        "partition_plan",
        "gold",
        "How many partitions should each topic have, and why?",
        PARTITION_PLAN,
        ("topic_traffic", "partitions", "group_offsets", "groups", "key_skew"),
        partition_plan,
        Mode.FULL,
        ("cluster_id", "topic_id"),
        not_null=("recommended", "reason"),
        is_kept=True,
        uses={
            "partitions": Uses(("topic_id", "topic_name", "partition")),
            "group_offsets": Uses(("group_id", "topic")),
            "groups": Uses(("group_id", "members")),
        },
        needs="traffic",
    ),
)
