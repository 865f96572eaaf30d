"""Inventory: topics and brokers, each in one row, with its settings; also as of a moment.

Settings are those of the log. It has neither settings in properties files of brokers nor Kafka's defaults. The silver tables
`configs` and `acls` have single settings and ACLs.
"""

from __future__ import annotations

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table, Uses
from barnabas.lake.tables.gold.intervals import now, present_topics
from barnabas.lake.tables.gold.shared_columns import CLUSTER

_MIN_ISR = "min.insync.replicas"
_SETTINGS = Column("settings", "map<string, string>", "Its own settings.")

TOPIC_INVENTORY = (
    CLUSTER,
    Column("topic", "string", "The topic."),
    Column("topic_id", "string", "Its id."),
    Column("created", "timestamp", "When it was created."),
    Column("partitions", "int", "Number of partitions."),
    Column(
        "replication_factor", "int", "Replicas, without those being removed; the smallest number of all partitions."
    ),
    Column("min_insync_replicas", "int", "The setting of the topic, or else of all brokers; null: neither is set."),
    _SETTINGS,
    Column("acl_entries", "bigint", "Number of ACL entries for it, by its name, a prefix or *."),
    Column("groups", "array<string>", "The groups that have committed offsets of it."),
)


def topic_inventory(
    topics: DataFrame, partitions: DataFrame, configs: DataFrame, acls: DataFrame, group_offsets: DataFrame
) -> DataFrame:
    key = ["cluster_id", "topic"]
    present = present_topics(topics)
    staying = f.size(f.array_except("replicas", f.coalesce("removing_replicas", f.array().cast("array<int>"))))
    sizes = (
        now(partitions)
        .groupBy("cluster_id", "topic_id")
        .agg(f.count("*").cast("int").alias("partitions"), f.min(staying).alias("replication_factor"))
    )
    of_brokers = _settings(configs, "BROKER", "broker").where("broker = ''")
    default = of_brokers.select("cluster_id", f.col("settings")[_MIN_ISR].alias("default_min_isr"))
    readers = now(group_offsets).groupBy(*key).agg(f.sort_array(f.collect_set("group_id")).alias("groups"))
    rows = (
        present.join(sizes, ["cluster_id", "topic_id"], "left")
        .join(_settings(configs, "TOPIC", "topic"), key, "left")
        .join(f.broadcast(default), "cluster_id", "left")
        .join(_entries_about(present, acls), key, "left")
        .join(readers, key, "left")
    )
    min_isr = f.coalesce(f.col("settings")[_MIN_ISR], "default_min_isr").try_cast("int")
    return rows.select(
        "cluster_id",
        "topic",
        "topic_id",
        "created",
        f.coalesce("partitions", f.lit(0)).alias("partitions"),
        f.coalesce("replication_factor", f.lit(0)).alias("replication_factor"),
        min_isr.alias("min_insync_replicas"),
        _or_none("settings"),
        f.coalesce("acl_entries", f.lit(0).cast("bigint")).alias("acl_entries"),
        f.coalesce("groups", f.array().cast("array<string>")).alias("groups"),
    )


def _settings(configs: DataFrame, resource_type: str, name: str) -> DataFrame:
    """Return (cluster_id, name, settings) of the resources of a type."""
    pairs = f.sort_array(f.collect_list(f.struct("name", "value")))
    return (
        now(configs)
        .where(f.col("resource_type") == resource_type)
        .groupBy("cluster_id", f.col("resource_name").alias(name))
        .agg(f.map_from_entries(pairs).alias("settings"))
    )


def _or_none(name: str) -> SparkColumn:
    return f.coalesce(name, f.create_map().cast("map<string, string>")).alias(name)


def _entries_about(topics: DataFrame, acls: DataFrame) -> DataFrame:
    """Return (cluster_id, topic, acl_entries). A topic is looked up once per length of prefixes, not once per prefix."""
    entries = now(acls).where("resource_type = 'TOPIC'")
    pattern = ["cluster_id", "pattern_type", "resource_name"]
    counts = entries.groupBy(*pattern).agg(f.count("*").alias("entries"))
    prefixed = entries.where("pattern_type = 'PREFIXED'")
    lengths = prefixed.groupBy("cluster_id").agg(f.collect_set(f.length("resource_name")).alias("lengths"))
    looked_up = f.expr(
        "concat(array(struct('LITERAL' as pattern_type, topic as resource_name),"
        " struct('LITERAL' as pattern_type, '*' as resource_name)),"
        " transform(filter(coalesce(lengths, array()), each -> each <= length(topic)),"
        " each -> struct('PREFIXED' as pattern_type, substring(topic, 1, each) as resource_name)))"
    )
    asked = topics.join(f.broadcast(lengths), "cluster_id", "left").select("cluster_id", "topic", f.inline(looked_up))
    return asked.join(counts, pattern).groupBy("cluster_id", "topic").agg(f.sum("entries").alias("acl_entries"))


BROKER_INVENTORY = (
    CLUSTER,
    Column("broker_id", "int", "The broker."),
    Column("rack", "string", "Its rack; null: none."),
    Column("endpoints", "array<string>", "Its endpoints: LISTENER://host:port."),
    Column("fenced", "boolean", "Whether it is fenced."),
    Column("in_controlled_shutdown", "boolean", "Whether it is in controlled shutdown."),
    Column("log_dirs", "int", "Number of online log directories."),
    Column("replicas", "bigint", "Number of replicas."),
    Column("leaders", "bigint", "Number of partitions that it leads."),
    _SETTINGS,
    Column("since", "timestamp", "Since when its registration is as it is."),
)


def broker_inventory(brokers: DataFrame, configs: DataFrame, broker_balance: DataFrame) -> DataFrame:
    key = ["cluster_id", "broker_id"]
    settings = _settings(configs, "BROKER", "broker").select(
        "cluster_id", f.col("broker").try_cast("int").alias("broker_id"), "settings"
    )
    rows = now(brokers).join(broker_balance.select(*key, "replicas", "leaders"), key).join(settings, key, "left")
    endpoint = "transform(listeners, each -> concat(each.name, '://', each.host, ':', each.port))"
    return rows.select(
        *key,
        "rack",
        f.expr(endpoint).alias("endpoints"),
        "fenced",
        "in_controlled_shutdown",
        f.size("log_dirs").alias("log_dirs"),
        "replicas",
        "leaders",
        _or_none("settings"),
        f.col("valid_from_time").alias("since"),
    )


TABLES = (
    Table(
        "topic_inventory",
        "gold",
        "Which topics exist, how large are they, and with which settings, ACLs and consumer groups?",
        TOPIC_INVENTORY,
        ("topics", "partitions", "configs", "acls", "group_offsets"),
        topic_inventory,
        Mode.FULL,
        ("cluster_id", "topic"),
        is_kept=True,
        uses={
            "partitions": Uses(("topic_id", "partition", "replicas", "removing_replicas")),
            "group_offsets": Uses(("group_id", "topic")),
        },
    ),
    Table(
        "broker_inventory",
        "gold",
        "Which brokers exist, where, with which settings, and how many replicas and leaders do they have?",
        BROKER_INVENTORY,
        ("brokers", "configs", "broker_balance"),
        broker_inventory,
        Mode.FULL,
        ("cluster_id", "broker_id"),
        is_kept=True,
    ),
)
