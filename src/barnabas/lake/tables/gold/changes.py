"""Changes, with time and a sentence; and settings with their values before and after.

Inputs are silver histories. A change is a row that starts, or one that ends without a successor.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.declared_column import Column
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.intervals import with_before
from barnabas.lake.tables.gold.shared_columns import CLUSTER, WHEN

CHANGES = (
    CLUSTER,
    *WHEN,
    Column("kind", "string", "The silver table that changed."),
    Column("resource", "string", "The resource that changed."),
    Column("change", "string", "created, changed or deleted."),
    Column("before", "string", "The value before; null: none."),
    Column("after", "string", "The value after; null: none."),
    Column("sentence", "string", "The change in words."),
    Column("exact", "boolean", "False: found in a snapshot, so it happened earlier."),
)

CONFIG_HISTORY = (
    CLUSTER,
    Column("resource_type", "string", "TOPIC, BROKER, ..."),
    Column("resource_name", "string", "The name of the resource; empty: the default of its type."),
    Column("name", "string", "The setting."),
    Column("before", "string", "Its value before; null: not set."),
    Column("after", "string", "Its value after; null: not set."),
    *WHEN,
    Column("exact", "boolean", "False: found in a snapshot, so it happened earlier."),
)


def _listed(numbers: SparkColumn) -> SparkColumn:
    return f.concat(f.lit("["), f.array_join(numbers, ", "), f.lit("]"))


def _events(history: DataFrame, keys: Sequence[str], columns: Sequence[str]) -> DataFrame:
    """Return a row for each start and each end: `before` and `after` are structs of `columns`, or null."""
    rows = with_before(history, keys, columns)
    this = f.struct(*columns)
    begin = f.struct(
        f.col("valid_from_offset").alias("offset"),
        f.col("valid_from_time").alias("time"),
        f.col("valid_from_epoch").alias("epoch"),
        f.col("before").dropFields("valid_to_offset").alias("before"),
        this.alias("after"),
    )
    end = f.struct(
        f.col("valid_to_offset").alias("offset"),
        f.col("valid_to_time").alias("time"),
        f.lit(None).cast("int").alias("epoch"),
        this.alias("before"),
        f.when(f.lit(False), this).alias("after"),
    )
    # both from one pass: histories are long, and finding the predecessor sorts them
    events = f.when(f.col("is_last"), f.array(begin, end)).otherwise(f.array(begin))
    return rows.select("cluster_id", *keys, "exact", f.inline(events))


def _fields(side: str, columns: Sequence[str], lists: Sequence[str] = ()) -> SparkColumn:
    """Return fields of `before` or `after` as text."""
    texts = [f.concat(f.lit(f"{name} "), _text(side, name, lists)) for name in columns]
    return f.concat_ws(", ", *texts)


def _text(side: str, name: str, lists: Sequence[str]) -> SparkColumn:
    value = f.col(side)[name]
    return f.coalesce(_listed(value) if name in lists else value.cast("string"), f.lit("none"))


def _differing(columns: Sequence[str], lists: Sequence[str] = ()) -> SparkColumn:
    """Return the fields that differ, as name old -> new; or a remark if only hidden fields differ."""
    texts = [
        f.when(
            ~f.col("before")[name].eqNullSafe(f.col("after")[name]),
            f.concat(f.lit(f"{name} "), _text("before", name, lists), f.lit(" -> "), _text("after", name, lists)),
        )
        for name in columns
    ]
    return f.coalesce(f.nullif(f.concat_ws(", ", *texts), f.lit("")), f.lit("changed"))


def _told(
    events: DataFrame,
    kind: str,
    resource: SparkColumn,
    before: SparkColumn,
    after: SparkColumn,
    sentences: tuple[SparkColumn, SparkColumn, SparkColumn],
) -> DataFrame:
    """Return events with the columns of `CHANGES`; `sentences` are for created, changed and deleted resources."""
    is_new, is_gone = f.col("before").isNull(), f.col("after").isNull()
    created, changed, deleted = sentences
    place = f.concat(
        f.lit(" at "),
        _iso("time"),
        f.coalesce(f.concat(f.lit(" in epoch "), f.col("epoch").cast("string")), f.lit("")),
    )
    return events.select(
        "cluster_id",
        "offset",
        "time",
        "epoch",
        f.lit(kind).alias("kind"),
        resource.alias("resource"),
        f.when(is_new, "created").when(is_gone, "deleted").otherwise("changed").alias("change"),
        f.when(~is_new, before).alias("before"),
        f.when(~is_gone, after).alias("after"),
        f.concat(f.when(is_new, created).when(is_gone, deleted).otherwise(changed), place).alias("sentence"),
        "exact",
    )


def _iso(time: str) -> SparkColumn:
    """Format a time in UTC, whatever the session's time zone."""
    text = (
        f"timestamp_ntz'1970-01-01 00:00:00' + make_dt_interval(0, 0, 0, cast(unix_seconds({time}) as decimal(18,6)))"
    )
    return f.concat(f.replace(f.expr(f"cast({text} as string)"), f.lit(" "), f.lit("T")), f.lit("Z"))


def _setting(events: DataFrame, kind: str, resource: SparkColumn, name: SparkColumn, value: str) -> DataFrame:
    """Describe a named value of a resource: "orders: retention.ms 604800000 -> 86400000"."""
    before, after = f.col("before")[value].cast("string"), f.col("after")[value].cast("string")
    label = f.concat(resource, f.lit(": "), name)
    sentences = (
        f.concat(label, f.lit(" set to "), after),
        f.concat(label, f.lit(" "), before, f.lit(" -> "), after),
        f.concat(label, f.lit(" no longer set (was "), before, f.lit(")")),
    )
    return _told(events, kind, resource, before, after, sentences)


def _thing(
    events: DataFrame, kind: str, label: SparkColumn, columns: Sequence[str], lists: Sequence[str] = ()
) -> DataFrame:
    """Describe a resource with fields: "partition orders-0: leader 1 -> 2, isr [1, 2] -> [2]"."""
    sentences = (
        f.concat(label, f.lit(" created")),
        f.concat(label, f.lit(": "), _differing(columns, lists)),
        f.concat(label, f.lit(" deleted")),
    )
    return _told(events, kind, label, _fields("before", columns, lists), _fields("after", columns, lists), sentences)


def changes(
    topics: DataFrame,
    partitions: DataFrame,
    configs: DataFrame,
    acls: DataFrame,
    brokers: DataFrame,
    features: DataFrame,
    quotas: DataFrame,
    users: DataFrame,
    leader_epochs: DataFrame,
) -> DataFrame:
    partition_lists = (
        "replicas", "isr", "elr", "last_known_elr", "adding_replicas", "removing_replicas", "directories",
    )  # fmt: skip
    partition_fields = ("leader", "leader_epoch", "leader_recovery_state", *partition_lists)
    acl_fields = ("permission", "operation", "principal", "host", "resource_type", "pattern_type", "resource_name")
    broker_lists = ("log_dirs", "cordoned_log_dirs")
    broker_fields = ("epoch", "fenced", "in_controlled_shutdown", "rack", *broker_lists)
    found = [
        _thing(_events(topics, ["topic_id"], ["name"]), "topics", _named("topic ", "name"), ["name"]),
        _thing(
            _not_with_their_topic(
                _events(partitions, ["topic_id", "partition"], ["topic_name", *partition_fields]), topics
            ),
            "partitions",
            f.concat(_named("partition ", "topic_name"), f.lit("-"), f.col("partition").cast("string")),
            partition_fields,
            partition_lists,
        ),
        _setting(
            _events(configs, ["resource_type", "resource_name", "name"], ["value"]),
            "configs",
            _resource(f.col("resource_type"), f.col("resource_name")),
            f.col("name"),
            "value",
        ),
        _thing(
            _events(acls, ["acl_id"], acl_fields),
            "acls",
            f.concat(f.lit("acl "), _acl(f.coalesce("after", "before"))),
            acl_fields,
        ),
        _thing(
            _events(brokers, ["broker_id"], broker_fields),
            "brokers",
            f.concat(f.lit("broker "), f.col("broker_id").cast("string")),
            broker_fields,
            broker_lists,
        ),
        _setting(_events(features, ["name"], ["level"]), "features", f.lit("feature"), f.col("name"), "level"),
        _setting(
            _events(quotas.withColumn("value", _number(f.col("value"))), ["entity", "name"], ["value"]),
            "quotas",
            _entity(),
            f.col("name"),
            "value",
        ),
        _thing(
            _events(users, ["name", "mechanism"], ["iterations"]),
            "users",
            f.concat_ws(" ", f.lit("user"), f.col("name"), f.col("mechanism")),
            ["iterations"],
        ),
        _told(
            _events(leader_epochs.withColumnRenamed("epoch", "its_epoch"), ["its_epoch"], ["leader_id"]).where(
                "after is not null"
            ),
            "leader_epochs",
            f.lit("quorum"),
            f.lit(None).cast("string"),
            f.col("after")["leader_id"].cast("string"),
            (f.concat(f.lit("controller "), f.col("after")["leader_id"].cast("string"), f.lit(" leads")),) * 3,
        ),
    ]
    return reduce(DataFrame.unionByName, found)


def _named(noun: str, column: str) -> SparkColumn:
    return f.concat(f.lit(noun), f.coalesce(f.col("after")[column], f.col("before")[column]))


def _resource(resource_type: SparkColumn, resource_name: SparkColumn) -> SparkColumn:
    """Name a topic by its name alone, others with their type; an empty name is the default of the type."""
    kind = f.lower(resource_type)
    other = f.when(resource_name == "", f.concat(f.lit("every "), kind)).otherwise(
        f.concat_ws(" ", kind, resource_name)
    )
    return f.when(resource_type == "TOPIC", resource_name).otherwise(other)


def _acl(entry: SparkColumn) -> SparkColumn:
    """Describe an ACL entry: "User:alice may READ TOPIC orders from *"."""
    verb = f.when(entry["permission"] == "ALLOW", " may ").otherwise(" may not ")
    name = f.concat(entry["resource_name"], f.when(entry["pattern_type"] == "PREFIXED", "...").otherwise(""))
    return f.concat(
        entry["principal"], verb, entry["operation"], f.lit(" "), entry["resource_type"], f.lit(" "), name,
        f.lit(" from "), entry["host"],
    )  # fmt: skip


def _number(value: SparkColumn) -> SparkColumn:
    """Format a number without exponent, 104857600 and not 1.048576E8, with up to six decimals."""
    plain = f.regexp_replace(value.try_cast("decimal(38,6)").cast("string"), r"\.?0+$", "")
    return f.coalesce(plain, value.cast("string"))


def _entity() -> SparkColumn:
    """Name the entity of a quota: "user alice, client-id default"."""
    parts = f.transform(
        "entity", lambda part: f.concat_ws(" ", part["type"], f.coalesce(part["name"], f.lit("default")))
    )
    return f.concat(f.lit("quota of "), f.array_join(parts, ", "))


def _not_with_their_topic(events: DataFrame, topics: DataFrame) -> DataFrame:
    """Drop partitions created or deleted in the same batch as their topic: the topic's change covers them."""
    began = topics.select(
        "cluster_id", "topic_id", f.col("valid_from_time").alias("began"), f.col("valid_to_time").alias("ended")
    )
    joined = events.join(began, ["cluster_id", "topic_id"], "left")
    with_it = (f.col("before").isNull() & f.col("time").eqNullSafe(f.col("began"))) | (
        f.col("after").isNull() & f.col("time").eqNullSafe(f.col("ended"))
    )
    return joined.where(~with_it).drop("began", "ended")


def config_history(configs: DataFrame) -> DataFrame:
    events = _events(configs, ["resource_type", "resource_name", "name"], ["value"])
    return events.select(
        "cluster_id",
        "resource_type",
        "resource_name",
        "name",
        f.col("before")["value"].alias("before"),
        f.col("after")["value"].alias("after"),
        "offset",
        "time",
        "epoch",
        "exact",
    )


TABLES = (
    Table(
        "changes",
        "gold",
        "What changed, when, and from what to what?",
        CHANGES,
        ("topics", "partitions", "configs", "acls", "brokers", "features", "quotas", "users", "leader_epochs"),
        changes,
        Mode.FULL,
        ("cluster_id", "offset", "kind", "resource", "sentence"),
        not_null=("cluster_id", "offset", "kind", "resource", "sentence"),
        is_kept=True,
        grows_by="offset",
        whole=("topics",),
    ),
    Table(
        "config_history",
        "gold",
        "Which value did each setting have before and after each change?",
        CONFIG_HISTORY,
        ("configs",),
        config_history,
        Mode.FULL,
        ("cluster_id", "resource_type", "resource_name", "name", "offset"),
        not_null=("cluster_id", "resource_type", "resource_name", "name", "offset"),
        is_kept=True,
        grows_by="offset",
    ),
)
