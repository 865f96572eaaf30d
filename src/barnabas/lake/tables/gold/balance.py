"""Balance of the cluster at the end of the log: leaders, replicas and bytes by broker, and racks.

`barnabas lake plan reassignment` makes a plan to improve it from the same rows.
"""

from __future__ import annotations

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table, Uses
from barnabas.lake.tables.gold.intervals import now
from barnabas.lake.tables.gold.shared_columns import CLUSTER, PARTITION

BROKER_BALANCE = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("rack", "string", "Its rack; null: none."),
    Column("fenced", "boolean", "Whether it is fenced."),
    Column("replicas", "bigint", "Number of replicas."),
    Column("leaders", "bigint", "Number of partitions that it leads."),
    Column("preferred_leaders", "bigint", "Number of partitions whose preferred leader it is."),
    Column("replica_skew", "double", "Its replicas, divided by the mean of all brokers; 1 is even."),
    Column("leader_skew", "double", "The partitions that it leads, divided by the mean of all brokers; 1 is even."),
)


def broker_balance(brokers: DataFrame, partitions: DataFrame) -> DataFrame:
    keys = ["cluster_id", "broker_id"]
    present = now(partitions)
    held = (
        present.select("cluster_id", f.explode("replicas").alias("broker_id"))
        .groupBy(*keys)
        .agg(f.count("*").alias("replicas"))
    )
    led = present.groupBy("cluster_id", f.col("leader").alias("broker_id")).agg(f.count("*").alias("leaders"))
    preferred = present.groupBy("cluster_id", f.col("replicas")[0].alias("broker_id")).agg(
        f.count("*").alias("preferred_leaders")
    )
    rows = now(brokers).select(*keys, "rack", "fenced")
    counts = ("replicas", "leaders", "preferred_leaders")
    for part in (held, led, preferred):
        rows = rows.join(part, keys, "left")
    rows = rows.fillna(0, list(counts))
    means = rows.groupBy("cluster_id").agg(
        f.mean("replicas").alias("mean_replicas"), f.mean("leaders").alias("mean_leaders")
    )
    return rows.join(f.broadcast(means), "cluster_id").select(
        *keys,
        "rack",
        "fenced",
        *counts,
        f.expr("try_divide(replicas, mean_replicas)").alias("replica_skew"),
        f.expr("try_divide(leaders, mean_leaders)").alias("leader_skew"),
    )


RACK_VIOLATIONS = (
    *PARTITION,
    Column("replicas", "array<int>", "Its replicas."),
    Column("racks", "array<string>", "The racks of its replicas, without duplicates."),
    Column("possible_racks", "int", "The number of racks that they could be on."),
)


def rack_violations(brokers: DataFrame, partitions: DataFrame) -> DataFrame:
    """Return partitions whose replicas are on fewer racks than possible; none if a broker of the cluster has no rack."""
    racks = now(brokers).select("cluster_id", "broker_id", "rack")
    known = racks.groupBy("cluster_id").agg(
        f.countDistinct("rack").alias("all_racks"), f.every(f.col("rack").isNotNull()).alias("all_known")
    )
    replicas = now(partitions).select(
        "cluster_id", "topic_id", "topic_name", "partition", "replicas", f.explode("replicas").alias("broker_id")
    )
    spread = (
        replicas.join(f.broadcast(racks), ["cluster_id", "broker_id"], "left")
        .groupBy("cluster_id", "topic_id", "topic_name", "partition", "replicas")
        .agg(f.sort_array(f.collect_set("rack")).alias("racks"))
    )
    judged = spread.join(f.broadcast(known.where("all_known and all_racks > 1")), "cluster_id").withColumn(
        "possible_racks", f.least(f.size("replicas"), f.col("all_racks").cast("int"))
    )
    return judged.where(f.size("racks") < f.col("possible_racks")).select(*(column.name for column in RACK_VIOLATIONS))


TABLES = (
    Table(
        "broker_balance",
        "gold",
        "How many replicas and leaders does each broker have, and how uneven is that?",
        BROKER_BALANCE,
        ("brokers", "partitions"),
        broker_balance,
        Mode.FULL,
        ("cluster_id", "broker_id"),
        is_kept=True,
        uses={"partitions": Uses(("topic_id", "partition", "replicas", "leader"))},
    ),
    Table(
        "rack_violations",
        "gold",
        "Which partitions have replicas on fewer racks than possible?",
        RACK_VIOLATIONS,
        ("brokers", "partitions"),
        rack_violations,
        Mode.FULL,
        ("cluster_id", "topic_id", "partition"),
    ),
)
