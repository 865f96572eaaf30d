"""Access: grants by principal and by resource, the access that results from all of them, and findings about them.

The logs do not show which principal did something: whether an entry is used can only be guessed from the use of its resource
(`traces_of_use`). Super users, and ACLs in properties files of brokers, are not in the logs either.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from functools import reduce
from typing import TYPE_CHECKING, Any

from pyspark.sql import Column as SparkColumn
from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.lake.declared_column import Column, ddl
from barnabas.lake.tables.declaration import Mode, Table, Uses
from barnabas.lake.tables.gold.intervals import now
from barnabas.lake.tables.gold.shared_columns import CLUSTER

if TYPE_CHECKING:
    import pyarrow as pa

_ENTRY = ("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission")
_RESOURCE = (
    Column("resource_type", "string", "TOPIC, GROUP, ..."),
    Column("pattern_type", "string", "LITERAL or PREFIXED."),
    Column("resource_name", "string", "The name, or the prefix; * for all."),
)
_PATTERN = [column.name for column in _RESOURCE]

# --- grants

ACL_GRANTS = (
    CLUSTER,
    Column("principal", "string", "The principal."),
    *_RESOURCE,
    Column("allowed", "array<string>", "The operations that entries allow."),
    Column("denied", "array<string>", "The operations that entries deny."),
    Column("hosts", "array<string>", "The hosts."),
    Column("since", "timestamp", "The start of the oldest entry."),
)


def acl_grants(acls: DataFrame) -> DataFrame:
    operations = {
        name: f.sort_array(f.collect_set(f.when(f.col("permission") == permission, f.col("operation"))))
        for name, permission in (("allowed", "ALLOW"), ("denied", "DENY"))
    }
    return (
        now(acls)
        .groupBy("cluster_id", "principal", *_PATTERN)
        .agg(
            *(column.alias(name) for name, column in operations.items()),
            f.sort_array(f.collect_set("host")).alias("hosts"),
            f.min("valid_from_time").alias("since"),
        )
    )


ACL_GRANTS_BY_RESOURCE = (
    CLUSTER,
    *_RESOURCE,
    Column("allowed", "map<string, array<string>>", "The operations that entries allow, by principal."),
    Column("denied", "map<string, array<string>>", "The operations that entries deny, by principal."),
    Column("since", "timestamp", "The start of the oldest entry."),
)


def acl_grants_by_resource(acl_grants: DataFrame) -> DataFrame:
    def by_principal(operations: str) -> SparkColumn:
        having = f.when(f.size(operations) > 0, f.struct("principal", operations))
        return f.map_from_entries(f.sort_array(f.collect_list(having))).alias(operations)

    return acl_grants.groupBy("cluster_id", *_PATTERN).agg(
        by_principal("allowed"), by_principal("denied"), f.min("since").alias("since")
    )


# --- resulting access

ACCESS = (
    CLUSTER,
    Column("principal", "string", "The principal; User:*: everyone without a row for this resource."),
    Column("resource_type", "string", "TOPIC, GROUP, CLUSTER, ..."),
    Column("pattern_type", "string", "LITERAL; PREFIXED: all other names with this prefix, also future ones."),
    Column("resource_name", "string", "An existing name; *: all other names, also future ones."),
    Column("host", "string", "The host; *: any other host."),
    Column(
        "operations", "array<string>", "All allowed operations; empty: none, though others or other hosts have some."
    ),
)
_SHARES = 8
"""Number of parts into which the resources of a cluster are divided, for tasks."""
_BATCH_ROWS = 16_384


def access(
    acls: DataFrame,
    topics: DataFrame,
    groups: DataFrame,
    group_offsets: DataFrame,
    transactions: DataFrame,
    tokens: DataFrame,
) -> DataFrame:
    """Compute access for every existing resource, and for every pattern. Each task uses an index of all entries."""
    there = _there(
        *_topics_and_groups(topics, groups, group_offsets),
        (transactions, "TRANSACTIONAL_ID", "transactional_id"),
        (tokens, "DELEGATION_TOKEN", "token_id"),
    ).withColumn("pattern_type", f.lit("LITERAL"))
    # A literal entry for a topic or group that does not exist gives no access; other types of resources are not in the lake.
    patterns = now(acls).where(
        "pattern_type = 'PREFIXED' or resource_name = '*' or resource_type not in ('TOPIC', 'GROUP')"
    )
    resources = there.unionByName(patterns.select("cluster_id", *_PATTERN)).distinct()
    share = f.pmod(f.hash("resource_name"), f.lit(_SHARES))
    shares = resources.groupBy("cluster_id", share).agg(f.collect_list(f.struct(*_PATTERN)).alias("resources"))
    entries = now(acls).groupBy("cluster_id").agg(f.collect_list(f.struct(*_ENTRY)).alias("entries"))
    asked = shares.join(f.broadcast(entries), "cluster_id").select("cluster_id", "resources", "entries")
    return asked.mapInArrow(_ask, ddl(ACCESS))


_Named = tuple[DataFrame, str, str]
"""A history of named resources, their type, and the column of the name."""


def _topics_and_groups(topics: DataFrame, groups: DataFrame, group_offsets: DataFrame) -> tuple[_Named, ...]:
    return (topics, "TOPIC", "name"), (groups, "GROUP", "group_id"), (group_offsets, "GROUP", "group_id")


def _there(*kinds: _Named) -> DataFrame:
    """Return (cluster_id, resource_type, resource_name) of what exists."""
    rows = (
        now(history).select(
            "cluster_id", f.lit(resource_type).alias("resource_type"), f.col(name).alias("resource_name")
        )
        for history, resource_type, name in kinds
    )
    return reduce(DataFrame.unionByName, rows)


def _ask(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    from barnabas.lake.facts.acl_entries import code_of, entries_of
    from barnabas.metadata.acls import indexed
    from barnabas.security.acl import PatternType, ResourceType
    from barnabas.security.acl_access import Resource, effective_access
    from barnabas.security.acl_index import AclIndex

    for row in (row for batch in batches for row in batch.to_pylist()):
        index = AclIndex(indexed(entries_of(row["entries"])))
        resources = (
            Resource(code_of(ResourceType, kind), code_of(PatternType, pattern), name)
            for kind, pattern, name in (each.values() for each in row["resources"])
        )
        made: list[tuple[Any, ...]] = []
        for (resource_type, pattern_type, name), found in effective_access(index, resources):
            where = (resource_type.name, pattern_type.name, name)
            made += [(row["cluster_id"], principal, *where, host, allowed) for principal, host, allowed in found]
            if len(made) >= _BATCH_ROWS:
                yield _rows_of(made)
                made = []
        if made:
            yield _rows_of(made)


def _rows_of(rows: list[tuple[Any, ...]]) -> pa.RecordBatch:
    import pyarrow as pa

    from barnabas.lake.facts.schema import arrow_type

    arrays = [
        pa.array(values, arrow_type(column.type))
        for column, values in zip(ACCESS, zip(*rows, strict=True), strict=True)
    ]
    return pa.RecordBatch.from_arrays(arrays, names=[column.name for column in ACCESS])


# --- findings

TRACES_OF_USE = (
    CLUSTER,
    Column("resource_type", "string", "TOPIC or GROUP."),
    Column("resource_name", "string", "The name."),
    Column("trace", "string", "written (a record), read (a commit, a subscription), or joined (a member, a commit)."),
    Column("since", "timestamp", "The time of the first such trace."),
)


def traces_of_use(traffic: DataFrame, group_offsets: DataFrame, group_members: DataFrame) -> DataFrame:
    """Return the traces of all history, by name."""
    committed = f.coalesce("commit_time", "valid_from_time")
    joined = f.col("valid_from_time")
    subscribed = group_members.select("cluster_id", f.explode("subscribed_topics").alias("topic"), "valid_from_time")
    kinds = (
        (traffic, "TOPIC", "topic", "written", f.col("first_time")),
        (group_offsets, "TOPIC", "topic", "read", committed),
        (subscribed, "TOPIC", "topic", "read", joined),
        (group_offsets, "GROUP", "group_id", "joined", committed),
        (group_members, "GROUP", "group_id", "joined", joined),
    )
    traces = [
        rows.select(
            "cluster_id",
            f.lit(resource_type).alias("resource_type"),
            f.col(name).alias("resource_name"),
            f.lit(trace).alias("trace"),
            time.alias("since"),
        )
        for rows, resource_type, name, trace, time in kinds
    ]
    keys = [column.name for column in TRACES_OF_USE[:-1]]
    return reduce(DataFrame.unionByName, traces).groupBy(*keys).agg(f.min("since").alias("since"))


ACL_FINDINGS = (
    CLUSTER,
    Column(
        "finding",
        "string",
        "duplicated, shadowed, denied, never-denies, wildcard, replaceable, no-such-resource or no-trace-of-use.",
    ),
    Column("entries", "array<string>", "The entries that the finding is about."),
    Column("message", "string", "The finding in words."),
    Column("because", "string", "The entry that causes it, or that could replace all; null: none."),
)
_THERE = "there"


def acl_findings(
    acls: DataFrame, topics: DataFrame, groups: DataFrame, group_offsets: DataFrame, traces_of_use: DataFrame
) -> DataFrame:
    """Audit ACLs, in one task per cluster, since each entry is compared with all others."""
    there = _there(*_topics_and_groups(topics, groups, group_offsets)).withColumn("trace", f.lit(_THERE))
    names = there.unionByName(traces_of_use.drop("since")).distinct()
    entries = now(acls).select("cluster_id", *_ENTRY)
    pairs = entries.groupBy("cluster_id").cogroup(names.groupBy("cluster_id"))
    return pairs.applyInArrow(_audit, ddl(ACL_FINDINGS))


def _audit(entries: pa.Table, names: pa.Table) -> pa.Table:
    import pyarrow as pa

    from barnabas.lake.facts.acl_entries import entries_of
    from barnabas.security.acl_audit import Traces, audit
    from barnabas.security.acl_text import entry_text

    known: dict[tuple[str, str], list[str]] = {}
    for row in names.to_pylist():
        known.setdefault((row["resource_type"], row["trace"]), []).append(row["resource_name"])
    topics, groups = known.get(("TOPIC", _THERE), []), known.get(("GROUP", _THERE))
    if groups is None and GROUP_METADATA_TOPIC not in topics:
        groups = []  # otherwise the cluster has groups, but the lake does not have their log
    written = known.get(("TOPIC", "written"))
    traces = None
    if written is not None:
        of_groups = (
            (None, None) if groups is None else (known.get(("TOPIC", "read"), []), known.get(("GROUP", "joined"), []))
        )
        traces = Traces(written, *of_groups)
    rows = [
        {
            "cluster_id": entries.column("cluster_id")[0].as_py(),
            "finding": str(finding.kind),
            "entries": [entry_text(entry) for entry in finding.entries],
            "message": finding.message,
            "because": None if finding.because is None else entry_text(finding.because),
        }
        for finding in audit(entries_of(entries.to_pylist()), topics, groups, traces)
    ]
    fields = [pa.field(name, pa.string()) for name in ("cluster_id", "finding", "message", "because")]
    fields.insert(2, pa.field("entries", pa.list_(pa.string())))
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


TABLES = (
    Table(
        "acl_grants",
        "gold",
        "Which operations do ACLs allow and deny each principal?",
        ACL_GRANTS,
        ("acls",),
        acl_grants,
        Mode.FULL,
        ("cluster_id", "principal", *_PATTERN),
        is_kept=True,
    ),
    Table(
        "acl_grants_by_resource",
        "gold",
        "Which operations do ACLs allow and deny on each resource?",
        ACL_GRANTS_BY_RESOURCE,
        ("acl_grants",),
        acl_grants_by_resource,
        Mode.FULL,
        ("cluster_id", *_PATTERN),
        is_kept=True,
    ),
    Table(
        "access",
        "gold",
        "Who may do what, on which resource and from where, when all ACLs are taken together?",
        ACCESS,
        ("acls", "topics", "groups", "group_offsets", "transactions", "tokens"),
        access,
        Mode.FULL,
        ("cluster_id", "principal", *_PATTERN, "host"),
        is_kept=True,
        uses={
            "topics": Uses(("name",)),
            "groups": Uses(("group_id",)),
            "group_offsets": Uses(("group_id",)),
            "transactions": Uses(("transactional_id",)),
            "tokens": Uses(("token_id",)),
        },
    ),
    Table(
        "traces_of_use",
        "gold",
        "Since when do the logs show that a topic or a group is used?",
        TRACES_OF_USE,
        ("traffic", "group_offsets", "group_members"),
        traces_of_use,
        Mode.FULL,
        ("cluster_id", "resource_type", "resource_name", "trace"),
        since="since",
    ),
    Table(
        "acl_findings",
        "gold",
        "Which ACLs are too wide, have no effect, are duplicates, or concern resources that do not exist or are not used?",
        ACL_FINDINGS,
        ("acls", "topics", "groups", "group_offsets", "traces_of_use"),
        acl_findings,
        Mode.FULL,
        ("cluster_id", "finding", "entries", "message"),
        is_kept=True,
        uses={
            "topics": Uses(("name",)),
            "groups": Uses(("group_id",)),
            "traffic": Uses(("topic",)),
            "group_offsets": Uses(("group_id", "topic"), ended=True),
            "group_members": Uses(("group_id", "subscribed_topics"), ended=True),
        },
    ),
)
