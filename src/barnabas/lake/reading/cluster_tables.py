"""The tables of `kafka_cluster`: their columns, and the options of the source. Pure.

Its one rule: no option is ignored. An unknown option or an invalid value is an error that names the valid ones.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.lake.declared_column import Column

OBSERVATION = (
    Column("cluster_id", "string", "The id of the cluster."),
    Column("observation_id", "string", "The observation; a stream that repeats one keeps its id."),
    Column("observed_at", "timestamp", "When the cluster was observed."),
    Column("previous_observation_id", "string", "In a stream, the observation before this one."),
    Column("seconds_since_previous", "double", "Seconds from the planning of the previous observation to this one."),
)
"""The first columns of every table."""

ERROR = Column("error", "string", "Why a row could not be read; only if the schema names this column.")

_TOPIC = (
    Column("topic_name", "string", "The topic."),
    Column("topic_id", "string", "The topic's id, as Kafka writes it; null if the broker is too old to report it."),
)
_MEMBER = (
    "struct<member_id: string, group_instance_id: string, client_id: string, client_host: string, member_epoch: int, "
    "rack_id: string, assignment: array<struct<topic_name: string, partition: int>>>"
)

TABLES: dict[str, tuple[Column, ...]] = {
    "topics": (
        *OBSERVATION,
        *_TOPIC,
        Column("is_internal", "boolean", "Whether the topic is internal to Kafka."),
        Column("num_partitions", "int", "Number of partitions."),
        Column("replication_factor", "int", "Number of replicas of the first partition."),
    ),
    "partitions": (
        *OBSERVATION,
        *_TOPIC,
        Column("partition", "int", "The partition."),
        Column("leader", "int", "The broker that leads it; -1 if none does."),
        Column("leader_epoch", "int", "The leader epoch."),
        Column("replicas", "array<int>", "The brokers with a replica, the preferred leader first."),
        Column("isr", "array<int>", "The in-sync replicas."),
        Column("offline_replicas", "array<int>", "The replicas that are offline."),
        Column("eligible_leader_replicas", "array<int>", "Eligible leader replicas (KIP-966); null if not reported."),
        Column("last_known_elr", "array<int>", "Last known eligible leader replicas (KIP-966); null if not reported."),
    ),
    "configs": (
        *OBSERVATION,
        Column("resource_type", "string", "TOPIC, BROKER, GROUP or CLIENT_METRICS."),
        Column("resource_name", "string", "The name of the resource; empty for the defaults of all brokers."),
        Column("name", "string", "The setting."),
        Column("value", "string", "The value; null if it is sensitive: brokers do not report those."),
        Column("source", "string", "Where the value was set, e.g. DYNAMIC_TOPIC_CONFIG or DEFAULT_CONFIG."),
        Column("type", "string", "The type, e.g. INT or PASSWORD; UNKNOWN if the broker does not report it."),
        Column("is_sensitive", "boolean", "Whether the value is a secret."),
        Column("is_read_only", "boolean", "Whether it can be set only in the broker's properties file."),
    ),
    "acls": (
        *OBSERVATION,
        Column("resource_type", "string", "The type of resource, e.g. TOPIC or GROUP."),
        Column("resource_name", "string", "The name, or the prefix of names."),
        Column("pattern_type", "string", "LITERAL or PREFIXED."),
        Column("principal", "string", "The principal."),
        Column("host", "string", "The host; * is any host."),
        Column("operation", "string", "The operation, e.g. READ."),
        Column("permission", "string", "ALLOW or DENY."),
    ),
    "log_dirs": (
        *OBSERVATION,
        Column("broker_id", "int", "The broker."),
        Column("log_dir", "string", "The path of one of its log dirs."),
        Column("topic_name", "string", "The topic of a replica in it; null in the one row of an empty log dir."),
        Column("partition", "int", "The partition."),
        Column("size_bytes", "bigint", "The size of its segments in bytes."),
        Column("offset_lag", "bigint", "The lag of the replica in records."),
        Column("is_future", "boolean", "Whether the replica is being moved into this log dir."),
        Column("total_bytes", "bigint", "The size of the volume of the log dir; null before Kafka 3.3."),
        Column("usable_bytes", "bigint", "Free bytes on the volume; null before Kafka 3.3."),
        Column("is_cordoned", "boolean", "Whether the log dir accepts no new replicas."),
    ),
    "quorum": (
        *OBSERVATION,
        Column("replica_id", "int", "A node that replicates the metadata log."),
        Column("directory_id", "string", "The id of its directory; null if it is unknown."),
        Column("role", "string", "leader, voter or observer."),
        Column("log_end_offset", "bigint", "The end offset of its log; -1 if the leader does not know it."),
        Column("lag", "bigint", "Number of records behind the leader."),
        Column("last_fetch_time", "timestamp", "Its last fetch, by the leader's clock."),
        Column("last_caught_up_time", "timestamp", "When it was last at the end of the log."),
        Column("leader_epoch", "int", "The leader epoch of the quorum."),
        Column("high_watermark", "bigint", "The high watermark of the metadata log."),
        Column("endpoints", "array<string>", "The endpoints of a voter; null before Kafka 3.9."),
    ),
    "groups": (
        *OBSERVATION,
        Column("group_id", "string", "The group."),
        Column("type", "string", "Classic, Consumer, Share or Streams; null if the broker is too old to report it."),
        Column("protocol_type", "string", "The protocol type of a classic group, e.g. consumer."),
        Column("state", "string", "The state, e.g. Stable or Empty."),
        Column("coordinator_id", "int", "The broker that coordinates it."),
        Column("assignor", "string", "The assignor of partitions."),
        Column("group_epoch", "int", "The group epoch, in a group of KIP-848."),
        Column("assignment_epoch", "int", "The assignment epoch, in a group of KIP-848."),
        Column("num_members", "int", "Number of members; null for share and streams groups."),
        Column("members", f"array<{_MEMBER}>", "The members; null for share and streams groups."),
    ),
    "group_lag": (
        *OBSERVATION,
        Column("group_id", "string", "The group."),
        Column("state", "string", "The state of the group."),
        Column("topic_name", "string", "A topic that the group has committed in, or that a member is assigned."),
        Column("partition", "int", "The partition."),
        Column("committed_offset", "bigint", "The committed offset; null if there is none."),
        Column("committed_leader_epoch", "int", "The leader epoch committed with it, if the client sent one."),
        Column("end_offset", "bigint", "The end of the partition for consumers; null if it could not be read."),
        Column("lag", "bigint", "The end minus the committed offset, at least 0."),
        Column(
            "lag_minutes",
            "double",
            "The age of the oldest unread record at the time of observation; 0 if nothing is unread, null if unknown. "
            "Takes one Fetch per lagging partition, which needs READ on the topic; none in a schema without this column.",
        ),
        Column("member_id", "string", "The member that is assigned the partition; null if none is."),
        Column("client_id", "string", "The client id of that member."),
    ),
    "brokers": (
        *OBSERVATION,
        Column("broker_id", "int", "The id of the node."),
        Column("role", "string", "broker; controller if bootstrap.controllers is set."),
        Column("host", "string", "Its host."),
        Column("port", "int", "Its port."),
        Column("rack", "string", "Its rack."),
        Column("is_fenced", "boolean", "Whether it is registered but fenced; null before Kafka 4.0."),
        Column(
            "is_controller", "boolean", "This node is the active controller; null if the quorum cannot be described."
        ),
    ),
    "features": (
        *OBSERVATION,
        Column("broker_id", "int", "The node that reported it."),
        Column("feature", "string", "The feature, e.g. metadata.version."),
        Column(
            "min_supported_level", "int", "The lowest level that the node supports; null if it has no such feature."
        ),
        Column("max_supported_level", "int", "The highest level that the node supports."),
        Column("finalized_level", "int", "The finalized level of the cluster; 0 is off."),
        Column("finalized_epoch", "bigint", "The metadata offset as of which the levels are finalized."),
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
    """The options of the source, checked."""

    table: str
    client: Mapping[str, str]
    client_config: str | None
    interval_ms: int
    is_failfast: bool

    @classmethod
    def of(cls, options: Mapping[str, str]) -> ClusterOptions:
        """Parse the options. Raises ValueError, which names the valid ones."""
        given = {name.lower(): value for name, value in options.items()}
        client = {name.removeprefix(_PREFIX): value for name, value in given.items() if name.startswith(_PREFIX)}
        client |= {name: given[name] for name in ("bootstrap.servers", "bootstrap.controllers") if name in given}
        known = {name.lower() for name in OPTIONS}
        unknown = [name for name in given if name not in known and not name.startswith(_PREFIX)]
        if unknown:
            raise ValueError(f"kafka_cluster has no option {', '.join(unknown)}; it has {', '.join(OPTIONS)}")
        table = given.get("table", "").lower()
        if table not in TABLES:
            raise ValueError(f"kafka_cluster needs the option table, one of {', '.join(TABLES)}, not {table!r}")
        mode = given.get("mode", _MODES[0]).upper()
        if mode not in _MODES:
            raise ValueError(f"mode must be {' or '.join(_MODES)}, not {mode!r}")
        interval_ms = _milliseconds(given.get("interval", _DEFAULT_INTERVAL))
        return cls(table, client, given.get("clientconfig"), interval_ms, mode == "FAILFAST")

    @property
    def where(self) -> str:
        """The addresses, for messages."""
        named = self.client.get("bootstrap.servers") or self.client.get("bootstrap.controllers")
        return named or self.client_config or "no address"


class Observation(NamedTuple):
    """One reading of a table, as it was planned."""

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
        raise ValueError(f"interval must be a duration such as '30 seconds', '500 ms' or '5m', not {text!r}")
    unit = found[2] if found[2] in _SECONDS else "ms" if found[2] == "millisecond" else found[2][0]
    return round(float(found[1]) * _SECONDS[unit] * 1000)
