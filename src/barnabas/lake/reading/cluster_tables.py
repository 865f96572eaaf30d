"""The tables of `kafka_cluster`: their columns, and the options that say which is read, where and how. Pure.

Its one rule: no option is ignored. One that is unknown, or whose value cannot be, is an error that names what can be.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.lake.declared_column import Column

OBSERVATION = (
    Column("cluster_id", "string", "The id of the cluster."),
    Column("observation_id", "string", "One reading of the table; a stream that repeats it gives it the same id."),
    Column("observed_at", "timestamp", "When it was read."),
    Column("previous_observation_id", "string", "In a stream, the observation before this one."),
    Column("seconds_since_previous", "double", "How long nobody looked: from the planning of the one before to this."),
)
"""What every table begins with."""

ERROR = Column("error", "string", "Why a row could not be read; only where it is asked for by the schema.")

_TOPIC = (
    Column("topic_name", "string", "The topic."),
    Column("topic_id", "string", "Its id, as Kafka writes it; null where the broker is too old to tell."),
)
_MEMBER = (
    "struct<member_id: string, group_instance_id: string, client_id: string, client_host: string, member_epoch: int, "
    "rack_id: string, assignment: array<struct<topic_name: string, partition: int>>>"
)

TABLES: dict[str, tuple[Column, ...]] = {
    "topics": (
        *OBSERVATION,
        *_TOPIC,
        Column("is_internal", "boolean", "Whether it is Kafka's own."),
        Column("num_partitions", "int", "How many partitions it has."),
        Column("replication_factor", "int", "How many replicas its first partition has."),
    ),
    "partitions": (
        *OBSERVATION,
        *_TOPIC,
        Column("partition", "int", "Its number."),
        Column("leader", "int", "The broker that leads it; -1 if none does."),
        Column("leader_epoch", "int", "The epoch of that."),
        Column("replicas", "array<int>", "The brokers that have it, first the preferred leader."),
        Column("isr", "array<int>", "Those in sync."),
        Column("offline_replicas", "array<int>", "Those that are not there."),
        Column("eligible_leader_replicas", "array<int>", "KIP-966; null where the broker does not tell."),
        Column("last_known_elr", "array<int>", "KIP-966; null where the broker does not tell."),
    ),
    "configs": (
        *OBSERVATION,
        Column("resource_type", "string", "TOPIC, BROKER, GROUP or CLIENT_METRICS."),
        Column("resource_name", "string", "Its name; empty for what holds for all brokers."),
        Column("name", "string", "The setting."),
        Column("value", "string", "Its value; null if it is sensitive: brokers do not tell those."),
        Column("source", "string", "Where the value was set, as DYNAMIC_TOPIC_CONFIG or DEFAULT_CONFIG."),
        Column("type", "string", "As INT or PASSWORD; UNKNOWN where the broker does not tell."),
        Column("is_sensitive", "boolean", "Whether its value is a secret."),
        Column("is_read_only", "boolean", "Whether it can be set only in the file of the broker."),
    ),
    "acls": (
        *OBSERVATION,
        Column("resource_type", "string", "As TOPIC or GROUP."),
        Column("resource_name", "string", "The name, or how names begin."),
        Column("pattern_type", "string", "LITERAL or PREFIXED."),
        Column("principal", "string", "Who."),
        Column("host", "string", "From where; * is from everywhere."),
        Column("operation", "string", "What, as READ."),
        Column("permission", "string", "ALLOW or DENY."),
    ),
    "log_dirs": (
        *OBSERVATION,
        Column("broker_id", "int", "The broker."),
        Column("log_dir", "string", "The path of a log dir of it."),
        Column("topic_name", "string", "The topic of a replica in it; null in the row of a log dir that has none."),
        Column("partition", "int", "The partition."),
        Column("size_bytes", "bigint", "What its segments take."),
        Column("offset_lag", "bigint", "How far the replica is behind."),
        Column("is_future", "boolean", "Whether it is on its way into this log dir."),
        Column("total_bytes", "bigint", "The size of the volume of the log dir; null before Kafka 3.3."),
        Column("usable_bytes", "bigint", "What of it is free; null before Kafka 3.3."),
        Column("is_cordoned", "boolean", "Whether the log dir takes no new replicas."),
    ),
    "quorum": (
        *OBSERVATION,
        Column("replica_id", "int", "A node that follows the metadata log."),
        Column("directory_id", "string", "The id of its directory; null where it is not known."),
        Column("role", "string", "leader, voter or observer."),
        Column("log_end_offset", "bigint", "How far its log goes; -1 where the leader does not know."),
        Column("lag", "bigint", "How many records it is behind the leader."),
        Column("last_fetch_time", "timestamp", "When it fetched last, by the clock of the leader."),
        Column("last_caught_up_time", "timestamp", "When it was last at the end of the log."),
        Column("leader_epoch", "int", "The epoch of the leader."),
        Column("high_watermark", "bigint", "Up to where the log is committed."),
        Column("endpoints", "array<string>", "Where a voter is reached; null before Kafka 3.9."),
    ),
    "groups": (
        *OBSERVATION,
        Column("group_id", "string", "The group."),
        Column("type", "string", "Classic, Consumer, Share or Streams; null where the broker is too old to tell."),
        Column("protocol_type", "string", "What a classic group is for, as consumer."),
        Column("state", "string", "As Stable or Empty."),
        Column("coordinator_id", "int", "The broker that coordinates it."),
        Column("assignor", "string", "By which partitions are assigned."),
        Column("group_epoch", "int", "Of a group of KIP-848."),
        Column("assignment_epoch", "int", "Of a group of KIP-848."),
        Column("num_members", "int", "How many members it has; null for share and streams groups."),
        Column("members", f"array<{_MEMBER}>", "Its members; null for share and streams groups."),
    ),
    "group_lag": (
        *OBSERVATION,
        Column("group_id", "string", "The group."),
        Column("state", "string", "The state of the group."),
        Column("topic_name", "string", "A topic that it has committed in or is assigned."),
        Column("partition", "int", "The partition."),
        Column("committed_offset", "bigint", "What it will read next; null if it has not committed."),
        Column("committed_leader_epoch", "int", "The epoch of the last record that it has read, where it told that."),
        Column("end_offset", "bigint", "The end of the partition for consumers; null if it is not to be had."),
        Column("lag", "bigint", "The end minus the committed offset, at least 0."),
        Column(
            "lag_minutes",
            "double",
            "The age of its oldest unread record when it was observed; 0 if nothing is unread, null if it is not known. "
            "One Fetch per partition that lags, which needs the right to read the topic; none in a schema without the column.",
        ),
        Column("member_id", "string", "The member that is assigned the partition, if one is."),
        Column("client_id", "string", "The client id of that member."),
    ),
    "brokers": (
        *OBSERVATION,
        Column("broker_id", "int", "The id of the node."),
        Column("role", "string", "broker; or controller where bootstrap.controllers is set."),
        Column("host", "string", "Where it is reached."),
        Column("port", "int", "Where it is reached."),
        Column("rack", "string", "Its rack."),
        Column("is_fenced", "boolean", "Whether it is registered but does not serve; null before Kafka 4.0."),
        Column("is_controller", "boolean", "Whether it is named as the controller, or stands for it."),
    ),
    "features": (
        *OBSERVATION,
        Column("broker_id", "int", "The node that was asked."),
        Column("feature", "string", "The feature, as metadata.version."),
        Column("min_supported_level", "int", "The lowest level that the node can do; null if it does not know it."),
        Column("max_supported_level", "int", "The highest level that the node can do."),
        Column("finalized_level", "int", "The level that the cluster has; 0 is off."),
        Column("finalized_epoch", "bigint", "As of which metadata offset."),
    ),
}
"""The columns of each table."""

OPTIONS = ("table", "bootstrap.servers", "bootstrap.controllers", "clientConfig", "interval", "mode", "kafka.*")
_MODES = ("PERMISSIVE", "FAILFAST")
_SECONDS = {"ms": 0.001, "s": 1, "m": 60, "h": 3600}
_INTERVAL = re.compile(r"\s*(\d+(?:\.\d+)?)\s*(ms|millisecond|s|second|m|minute|h|hour)s?\s*")
_DEFAULT_INTERVAL = "30 seconds"
_PREFIX = "kafka."


@dataclass(frozen=True, slots=True)
class ClusterOptions:
    """What was asked for, checked."""

    table: str
    client: Mapping[str, str]
    client_config: str | None
    interval_ms: int
    is_failfast: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ClusterOptions:
        """Raises ValueError, which names what can be said."""
        given = {name.lower(): value for name, value in options.items()}
        client = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
        client |= {name: given[name] for name in ("bootstrap.servers", "bootstrap.controllers") if name in given}
        known = {name.lower() for name in OPTIONS}
        unknown = [name for name in given if name not in known and not name.startswith(_PREFIX)]
        if unknown:
            raise ValueError(f"kafka_cluster has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}")
        table = given.get("table", "").lower()
        if table not in TABLES:
            raise ValueError(f"kafka_cluster needs the option table, one of {', '.join(TABLES)}; it is {table!r}")
        mode = given.get("mode", _MODES[0]).upper()
        if mode not in _MODES:
            raise ValueError(f"mode is {' or '.join(_MODES)}, not {mode!r}")
        interval_ms = _milliseconds(given.get("interval", _DEFAULT_INTERVAL))
        return cls(table, client, given.get("clientconfig"), interval_ms, mode == "FAILFAST")

    @property
    def where(self) -> str:
        """The addresses, for messages."""
        named = self.client.get("bootstrap.servers") or self.client.get("bootstrap.controllers")
        return named or self.client_config or "no address"


class Observation(NamedTuple):
    """One reading of a table; nothing in it comes from the cluster."""

    id: str
    previous_id: str | None = None
    previous_at_ms: int | None = None


def _milliseconds(text: str) -> int:
    """
    >>> _milliseconds("5 minutes"), _milliseconds("500ms"), _milliseconds("10")
    (300000, 500, 10000)
    """
    found = _INTERVAL.fullmatch(text.lower() if not text.strip().isdigit() else f"{text}s")
    if found is None:
        raise ValueError(f"interval is a time such as '30 seconds', '500 ms' or '5m', not {text!r}")
    unit = found[2] if found[2] in _SECONDS else "ms" if found[2] == "millisecond" else found[2][0]
    return round(float(found[1]) * _SECONDS[unit] * 1000)
