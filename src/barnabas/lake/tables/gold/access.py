"""Who may do what: grants by principal, and what is odd about the entries, as `acls audit` finds it.

The logs name no principal: whether an entry is used can only be guessed from whether its resource is (`no_trace_of_use`).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql import DataFrame
from pyspark.sql import functions as f

from barnabas.lake.column import Column, ddl
from barnabas.lake.tables.declaration import Mode, Table
from barnabas.lake.tables.gold.columns import CLUSTER
from barnabas.lake.tables.gold.intervals import now

if TYPE_CHECKING:
    import pyarrow as pa

    from barnabas.security.acl import AclEntry

_ENTRY = ("resource_type", "pattern_type", "resource_name", "principal", "host", "operation", "permission")

ACL_GRANTS = (
    CLUSTER,
    Column("principal", "string", "Who."),
    Column("resource_type", "string", "TOPIC, GROUP, ..."),
    Column("pattern_type", "string", "LITERAL or PREFIXED."),
    Column("resource_name", "string", "The name, or the prefix; * for all."),
    Column("allowed", "array<string>", "The operations that entries allow."),
    Column("denied", "array<string>", "The operations that entries deny."),
    Column("hosts", "array<string>", "From where."),
    Column("since", "timestamp", "Since when the oldest of the entries holds."),
)


def acl_grants(acls: DataFrame) -> DataFrame:
    operations = {
        name: f.sort_array(f.collect_set(f.when(f.col("permission") == permission, f.col("operation"))))
        for name, permission in (("allowed", "ALLOW"), ("denied", "DENY"))
    }
    return (
        now(acls)
        .groupBy("cluster_id", "principal", "resource_type", "pattern_type", "resource_name")
        .agg(
            *(column.alias(name) for name, column in operations.items()),
            f.sort_array(f.collect_set("host")).alias("hosts"),
            f.min("valid_from_time").alias("since"),
        )
    )


ACL_FINDINGS = (
    CLUSTER,
    Column(
        "finding", "string", "duplicated, shadowed, denied, never-denies, wildcard, replaceable or no-such-resource."
    ),
    Column("entries", "array<string>", "The entries that it is about."),
    Column("message", "string", "What is odd."),
    Column("because", "string", "The entry that makes it so, or that could stand for all; null: none."),
)


def acl_findings(acls: DataFrame, topics: DataFrame, groups: DataFrame) -> DataFrame:
    """Audited in one task for each cluster: an entry is compared with all others."""
    entries = now(acls).select("cluster_id", *_ENTRY)
    names = (
        now(topics)
        .select("cluster_id", f.lit("TOPIC").alias("kind"), "name")
        .unionByName(now(groups).select("cluster_id", f.lit("GROUP").alias("kind"), f.col("group_id").alias("name")))
    )
    pairs = entries.groupBy("cluster_id").cogroup(names.groupBy("cluster_id"))
    return pairs.applyInArrow(_audit, ddl(ACL_FINDINGS))


def _audit(entries: pa.Table, names: pa.Table) -> pa.Table:
    import pyarrow as pa  # noqa: PLC0415

    from barnabas.declared.acl_audit import audit  # noqa: PLC0415
    from barnabas.declared.acl_text import entry_text  # noqa: PLC0415

    clusters = entries.column("cluster_id").to_pylist()
    known: dict[str, list[str]] = {"TOPIC": [], "GROUP": []}
    for row in names.to_pylist():
        known[row["kind"]].append(row["name"])
    rows = [
        {
            "cluster_id": clusters[0],
            "finding": str(finding.kind),
            "entries": [entry_text(entry) for entry in finding.entries],
            "message": finding.message,
            "because": None if finding.because is None else entry_text(finding.because),
        }
        for finding in (audit(entries_of(entries.to_pylist()), known["TOPIC"], known["GROUP"]) if clusters else ())
    ]
    fields = [pa.field(name, pa.string()) for name in ("cluster_id", "finding", "message", "because")]
    fields.insert(2, pa.field("entries", pa.list_(pa.string())))
    return pa.Table.from_pylist(rows, schema=pa.schema(fields))


def entries_of(rows: Iterable[Any]) -> Iterator[AclEntry]:
    """Rows of `acls` as the entries that they are."""
    from barnabas.security.acl import (  # noqa: PLC0415
        AclEntry,
        AclOperation,
        AclPermissionType,
        PatternType,
        ResourceType,
    )

    for row in rows:
        yield AclEntry(
            resource_type=ResourceType[row["resource_type"]],
            resource_name=row["resource_name"],
            pattern_type=PatternType[row["pattern_type"]],
            principal=row["principal"],
            host=row["host"],
            operation=AclOperation[row["operation"]],
            permission=AclPermissionType[row["permission"]],
        )


TABLES = (
    Table(
        "acl_grants",
        "gold",
        "Who may do what, on which resource?",
        ACL_GRANTS,
        ("acls",),
        acl_grants,
        Mode.FULL,
        ("cluster_id", "principal", "resource_type", "pattern_type", "resource_name"),
    ),
    Table(
        "acl_findings",
        "gold",
        "Which ACLs are wide, never match, say the same twice, or speak of what is not there?",
        ACL_FINDINGS,
        ("acls", "topics", "groups"),
        acl_findings,
        Mode.FULL,
        ("cluster_id", "finding", "entries", "message"),
    ),
)
