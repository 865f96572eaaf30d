"""What a report is made of: for each cluster the top rows of each table of gold, how many there are, and small answers.

Its one rule: it stays small. `SHOWN` says which rows of a table a reader wants to see first and how many of them;
`top_sql` asks for those of all clusters at once, and `totals_sql` for how many there are. Times have a zone: what
`DataFrame.toArrow().to_pylist()` gives is right, `collect()` gives times without one, which are refused.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from barnabas.lake.declared_column import Column

Row = Mapping[str, Any]
LIMIT = 100
"""Rows on the page of a table that says nothing else."""


@dataclass(frozen=True, slots=True)
class Rows:
    """The top rows of a table, of one cluster."""

    columns: tuple[Column, ...]
    rows: Sequence[Row]
    total: int
    """How many rows there are, of which these are the top ones."""
    file: str = ""
    """Where all of them are: a path from the page; empty: nowhere beside it."""
    question: str = ""
    """What the table answers; the page needs it only for tables that `SHOWN` does not know."""


@dataclass(frozen=True, slots=True)
class LogRange:
    """What of the metadata log the lake has seen; all None: nothing."""

    first_offset: int | None = None
    last_offset: int | None = None
    first_time: datetime | None = None
    last_time: datetime | None = None


@dataclass(frozen=True, slots=True)
class ClusterContent:
    cluster_id: str
    log: LogRange
    tables: Mapping[str, Rows]
    answers: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    """What the queries of `queries.QUERIES` gave, by name."""


@dataclass(frozen=True, slots=True)
class ReportContent:
    clusters: tuple[ClusterContent, ...]


@dataclass(frozen=True, slots=True)
class Shown:
    """How a table is shown on the page."""

    table: str
    chapter: str
    question: str
    order: str
    """The rows that a reader wants first, as in ORDER BY."""
    empty: str
    """What it means that there are no rows."""
    columns: tuple[str, ...] = ()
    """Those on the page, in order; empty: all. Those of all rows are in the file."""
    limit: int = LIMIT
    source: str = ""
    """A table without which this one says nothing, though it may have rows."""


CHANGES, AVAILABILITY, LEADERS, BALANCE = "Changes", "Availability", "Leaders", "Balance"
QUORUM, ACCESS, TRAFFIC, CONSUMPTION = "Quorum", "Access", "Traffic", "Consumption"
INVENTORY, OTHER = "Inventory", "More"
CHAPTERS = (AVAILABILITY, CONSUMPTION, CHANGES, LEADERS, QUORUM, BALANCE, TRAFFIC, ACCESS, INVENTORY, OTHER)
"""In the order of the page."""

_DECLARED = (
    Shown(
        "topic_availability",
        AVAILABILITY,
        "How long was each topic without a leader, below its minimum in sync, or under-replicated?",
        "offline_minutes desc, below_min_isr_minutes desc, under_replicated_minutes desc, topic_name, topic_id",
        "No partition was ever without a leader, below its minimum in sync, or under-replicated.",
        ("topic_name", "offline_minutes", "below_min_isr_minutes", "under_replicated_minutes", "partitions", "is_over"),
    ),
    Shown(
        "broker_fences",
        AVAILABILITY,
        "When was which broker fenced, for how long, and why?",
        "is_over, began desc, broker_id",
        "No broker was ever fenced.",
        ("broker_id", "began", "until", "minutes", "is_over", "cause"),
    ),
    Shown(
        "broker_availability",
        AVAILABILITY,
        "How long were each broker's replicas out of sync?",
        "out_of_sync_minutes desc, fenced_minutes desc, broker_id",
        "No broker was ever registered.",
        (
            "broker_id",
            "out_of_sync_minutes",
            "offline_minutes",
            "below_min_isr_minutes",
            "partitions",
            "fenced_minutes",
            "fences",
        ),
    ),
    Shown(
        "partition_trouble",
        AVAILABILITY,
        "Which partitions had trouble, and when?",
        "is_over, offline desc, below_min_isr desc, minutes desc, topic_name, partition, valid_from_offset",
        "No partition ever had trouble.",
        (
            "topic_name",
            "partition",
            "began",
            "until",
            "minutes",
            "offline",
            "below_min_isr",
            "under_replicated",
            "min_isr",
            "missing",
            "is_over",
        ),
    ),
    Shown(
        "group_lag",
        CONSUMPTION,
        "Which groups are behind, in records and in time, and does it get worse?",
        "trend in ('growing', 'stopped') desc, lag desc, group_id, topic, partition",
        "No group has committed an offset of a topic whose records were read (lake run --traffic).",
        ("group_id", "topic", "partition", "lag", "lag_minutes", "trend", "committed_at", "lag_before", "end_offset"),
    ),
    Shown(
        "group_lag_growth",
        CONSUMPTION,
        "Which groups fell behind while they were watched?",
        "verdict in ('growing', 'stopped') desc, lag desc, group_id",
        "No group was watched (lake run --observe).",
        (
            "group_id",
            "verdict",
            "lag",
            "first_lag",
            "most_lag",
            "records_per_minute",
            "behind_minutes",
            "state",
            "last_seen",
            "observations",
        ),
    ),
    Shown(
        "topic_use",
        CONSUMPTION,
        "Which topics are idle, and which has nobody ever consumed?",
        "verdict = 'used', verdict, last_written nulls first, topic, topic_id",
        "There is no topic.",
        ("topic", "verdict", "groups", "last_written", "last_committed", "created"),
        source="topic_traffic",
    ),
    Shown(
        "hanging_transactions",
        CONSUMPTION,
        "Which transactions have been open for longer than they may?",
        "minutes desc, transactional_id",
        "No transaction is open for longer than it may be.",
        ("transactional_id", "producer_id", "producer_epoch", "state", "started", "minutes", "timeout_minutes"),
    ),
    Shown(
        "drift",
        CHANGES,
        "How does the cluster differ from what the file declares?",
        "kind, name, field",
        "The cluster is as the file declares it.",
        ("kind", "name", "field", "before", "after", "action"),
    ),
    Shown(
        "changes",
        CHANGES,
        "What changed, when, and from what to what?",
        "offset desc, kind, resource, sentence",
        "Nothing has changed.",
        ("time", "sentence", "kind", "offset", "exact"),
        limit=200,
    ),
    Shown(
        "config_history",
        CHANGES,
        "Which value did each setting have before and after each change?",
        "offset desc, resource_type, resource_name, name",
        "No setting was ever changed.",
        ("time", "resource_type", "resource_name", "name", "before", "after", "epoch", "offset", "exact"),
        limit=200,
    ),
    Shown(
        "leader_changes",
        LEADERS,
        "Which partitions changed their leader, and why?",
        "cause = 'unclean election' desc, offset desc, topic_name, partition",
        "No partition ever changed its leader.",
        ("time", "topic_name", "partition", "leader_before", "leader", "cause", "leader_epoch", "offset"),
    ),
    Shown(
        "isr_flaps",
        LEADERS,
        "Which replicas left the set of those in sync, and how often?",
        "times desc, shortest_minutes nulls last, topic_name, partition, broker_id",
        "No replica ever left the set of those in sync.",
        ("topic_name", "partition", "broker_id", "times", "shortest_minutes", "last_time", "first_time"),
    ),
    Shown(
        "quorum_leaders",
        QUORUM,
        "Who led the quorum, and for how long?",
        "epoch desc",
        "The log names no leader of the quorum.",
        ("epoch", "leader_id", "began", "until", "minutes", "is_over", "voters", "granting_voters"),
    ),
    Shown(
        "quorum_health",
        QUORUM,
        "Which nodes lag behind the leader of the quorum, and how long ago had they caught up?",
        "is_there, lag desc nulls last, most_lag desc nulls last, replica_id",
        "The quorum was not watched (lake run --observe).",
        (
            "replica_id",
            "role",
            "lag",
            "most_lag",
            "seconds_since_caught_up",
            "most_seconds_since_caught_up",
            "times_leader",
            "observations",
            "last_seen",
            "is_there",
        ),
    ),
    Shown(
        "broker_balance",
        BALANCE,
        "How many replicas and leaders has each broker, and how far is that from even?",
        "greatest(abs(leader_skew - 1), abs(replica_skew - 1)) desc nulls last, broker_id",
        "No broker is registered.",
        ("broker_id", "rack", "fenced", "leaders", "leader_skew", "preferred_leaders", "replicas", "replica_skew"),
    ),
    Shown(
        "disk_balance",
        BALANCE,
        "How many bytes has each log dir, and how full is its disk?",
        "used_share >= 0.85 desc nulls last, skew desc nulls last, broker_id, log_dir",
        "No log dir was looked at (lake run --observe).",
        (
            "broker_id",
            "log_dir",
            "bytes",
            "skew",
            "replicas",
            "used_share",
            "usable_bytes",
            "volume_bytes",
            "bytes_per_day",
            "observed_at",
        ),
    ),
    Shown(
        "rack_violations",
        BALANCE,
        "Which partitions have replicas on fewer racks than they could?",
        "size(racks), topic_name, partition",
        "Every partition is on as many racks as it can be, or not every broker has a rack.",
        ("topic_name", "partition", "replicas", "racks", "possible_racks"),
    ),
    Shown(
        "reassignments",
        BALANCE,
        "Which partitions were moved, how long did it take, and how did it end?",
        "outcome = 'running' desc, minutes desc, topic_name, partition, valid_from_offset",
        "No partition was ever moved.",
        (
            "topic_name",
            "partition",
            "began",
            "until",
            "minutes",
            "outcome",
            "adding_replicas",
            "removing_replicas",
            "added_in_sync",
        ),
    ),
    Shown(
        "topic_traffic",
        TRAFFIC,
        "How much is written to each topic, and when most?",
        "bytes desc, topic",
        "No record of a topic was seen: the lake was not run with --traffic, or its topics are empty.",
        (
            "topic",
            "bytes",
            "records",
            "partitions",
            "mean_record_bytes",
            "mean_bytes_per_second",
            "peak_bytes_per_second",
            "peak_hour",
            "last_time",
        ),
    ),
    Shown(
        "partition_plan",
        TRAFFIC,
        "How many partitions should each topic have, and why?",
        "recommended - partitions desc, peak_bytes_per_second desc nulls last, topic",
        "No topic has both records and partitions.",
        ("topic", "partitions", "recommended", "reason", "peak_bytes_per_second", "most_members"),
        source="topic_traffic",
    ),
    Shown(
        "hot_partitions",
        TRAFFIC,
        "Which partitions get much more than their share?",
        "times_even desc, bytes desc, topic, partition",
        "No partition gets much more than its share.",
        ("topic", "partition", "times_even", "share", "bytes"),
        source="topic_traffic",
    ),
    Shown(
        "key_skew",
        TRAFFIC,
        "Which keys make a large part of a topic?",
        "share desc, records desc, topic, key",
        "No key makes a large part of a topic.",
        ("topic", "key", "share", "records"),
        source="topic_traffic",
    ),
    Shown(
        "acl_findings",
        ACCESS,
        "Which ACLs are wide, never match, say the same twice, or speak of what is not there?",
        "finding in ('wildcard', 'never-denies', 'denied') desc, finding, size(entries) desc, message",
        "Nothing is odd about the ACLs.",
        ("finding", "message", "entries", "because"),
    ),
    Shown(
        "acl_grants",
        ACCESS,
        "Who may do what, on which resource?",
        "resource_name = '*' desc, size(allowed) desc, principal, resource_type, resource_name, pattern_type",
        "There are no ACLs.",
        ("principal", "resource_type", "pattern_type", "resource_name", "allowed", "denied", "hosts", "since"),
    ),
    Shown(
        "broker_inventory",
        INVENTORY,
        "Which brokers are there, and with which settings?",
        "broker_id",
        "No broker is registered.",
        ("broker_id", "rack", "endpoints", "fenced", "log_dirs", "replicas", "leaders", "settings", "since"),
    ),
    Shown(
        "topic_inventory",
        INVENTORY,
        "Which topics are there, with which settings, ACLs and readers?",
        "replication_factor < 2 desc, partitions desc, topic",
        "There is no topic.",
        (
            "topic",
            "partitions",
            "replication_factor",
            "min_insync_replicas",
            "settings",
            "acl_entries",
            "groups",
            "created",
        ),
    ),
)
SHOWN = {shown.table: shown for shown in _DECLARED}
"""The tables that the page knows, in the order of the page within their chapters. Others are shown too, at its end."""


DRIFT = (
    Column("cluster_id", "string", "The cluster."),
    Column("action", "string", "What would mend it: create, alter or delete."),
    Column("kind", "string", "topic, broker, acl, quota or user."),
    Column("name", "string", "What differs."),
    Column("field", "string", "In what it differs."),
    Column("before", "string", "What it is; null: nothing."),
    Column("after", "string", "What the file declares; null: nothing."),
)
"""Of `drift`, which is no table of the lake: it depends on a file."""


def shown(table: str, rows: Rows | None = None) -> Shown:
    """How a table is shown, whether or not it is known."""
    question = (rows.question if rows else "") or table.replace("_", " ").capitalize()
    return SHOWN.get(table) or Shown(table, OTHER, question, "cluster_id", "It has no rows.")


def top_sql(table: str) -> str:
    """The top rows of a table, of each cluster."""
    declared = shown(table)
    ranked = f"row_number() over (partition by cluster_id order by {declared.order})"
    return (
        f"select * except (`_rank`) from (select *, {ranked} as `_rank` from `{table}`)"
        f" where `_rank` <= {declared.limit} order by cluster_id, `_rank`"
    )


def totals_sql(tables: Iterable[str]) -> str:
    """How many rows each cluster has in each table: cluster_id, name, total."""
    return " union all ".join(
        f"select cluster_id, '{table}' as name, count(*) as total from `{table}` group by cluster_id"
        for table in tables
    )


RANGE_TABLE = "metadata_records"
RANGE_SQL = (
    "select cluster_id, min(offset) as first_offset, max(offset) as last_offset,"
    f" min(append_time) as first_time, max(append_time) as last_time from {RANGE_TABLE} group by cluster_id"
)
"""The fields of `LogRange`, for each cluster."""


def assemble(
    ranges: Iterable[Row],
    tables: Mapping[str, Rows],
    totals: Iterable[Row],
    answers: Mapping[str, Iterable[Row]],
) -> ReportContent:
    """What the queries gave for all clusters, taken apart by cluster.

    `ranges` is the answer of `RANGE_SQL`, `tables` has the rows of `top_sql` by table, `totals` is the answer of
    `totals_sql`, and `answers` has those of `QUERIES` by name.
    """
    clusters = []
    counts = {(row["cluster_id"], row["name"]): row["total"] for row in totals}
    for log in sorted(ranges, key=lambda row: str(row["cluster_id"])):
        mine = str(log["cluster_id"])
        clusters.append(
            ClusterContent(
                mine,
                LogRange(log["first_offset"], log["last_offset"], log["first_time"], log["last_time"]),
                {
                    name: Rows(
                        table.columns, _of(table.rows, mine), counts.get((mine, name), 0), table.file, table.question
                    )
                    for name, table in tables.items()
                },
                {name: _of(rows, mine) for name, rows in answers.items()},
            )
        )
    return ReportContent(tuple(clusters))


def _of(rows: Iterable[Row], cluster_id: str) -> list[Row]:
    return [row for row in rows if row["cluster_id"] == cluster_id]
