"""Plausible values for the fields of requests: some that mean something from the start, and those that the node answered.

A value is remembered under the name of its field, and under the names that the same thing has in requests.
"""

from __future__ import annotations

from collections import defaultdict, deque
from random import Random
from typing import Any

from barnabas import wire
from barnabas.batches import Compression, Record, build_batch
from barnabas.wire.messages.consumer_protocol_subscription import ConsumerProtocolSubscription
from barnabas.wire.schema import FieldSchema

REMEMBERED = 24
TOPICS = ("known", "other", "compacted", "txn")
INTERNAL = ("__consumer_offsets", "__transaction_state", "__cluster_metadata")
GROUPS = ("group", "new-group", "manual")
TRANSACTIONAL_IDS = ("tx-1", "tx-2")
MEMBERS = ("", "member")
EXTREMES = {
    "int8": (0, 1, -1, 127, -128),
    "int16": (0, 1, -1, -2, 2**15 - 1, -(2**15)),
    "uint16": (0, 1, 2**16 - 1),
    "int32": (0, 1, -1, -2, 2**31 - 1, -(2**31)),
    "uint32": (0, 1, 2**32 - 1),
    "int64": (0, 1, -1, -2, -3, -4, 2**63 - 1, -(2**63)),
    "float64": (0.0, -1.0, 1e308, float("inf"), float("nan"), 1e-300),
}
SUBSCRIPTION = b"\0\1" + wire.encode(ConsumerProtocolSubscription(topics=["known"]), 1)

# The name of a field in a response, and in requests.
ALIASES = {
    "partition_index": ("partition", "partition_id", "index"),
    "broker_id": ("broker_ids", "replicas", "leader_id", "node_id", "voter_id", "candidate_id", "replica_id"),
    "leader": ("member_id",),
    "member_epoch": ("generation_id", "generation_id_or_member_epoch"),
    "generation_id": ("generation_id_or_member_epoch",),
    "session_id": ("fetch_session_id",),
    "high_watermark": ("fetch_offset", "offset", "committed_offset"),
    "leader_epoch": ("current_leader_epoch", "last_fetched_epoch", "partition_leader_epoch", "committed_leader_epoch"),
    "offset": ("fetch_offset", "committed_offset"),
}
# Names that stand for a thing of another name in some API.
STATIC: dict[str, tuple[Any, ...]] = {
    "topic": TOPICS,
    "name": TOPICS,
    "topic_name": TOPICS,
    "topics": TOPICS,
    "topic_names": TOPICS,
    "subscribed_topic_names": TOPICS,
    "subscribed_topic_regex": ("know.*", "(", "", "(a+)+b"),
    "resource_name": (*TOPICS, "1", "", "group"),
    "resource_type": (2, 4, 8, 16, 32, 1, 3),
    "group_id": GROUPS,
    "groups_names": GROUPS,
    "group_ids": GROUPS,
    "groups": GROUPS,
    "coordinator_keys": (*GROUPS, *TRANSACTIONAL_IDS),
    "key": (*GROUPS, *TRANSACTIONAL_IDS, "retention.ms"),
    "key_type": (0, 1, 2),
    "transactional_id": TRANSACTIONAL_IDS,
    "transactional_ids": TRANSACTIONAL_IDS,
    "v3_and_below_transactional_id": TRANSACTIONAL_IDS,
    "member_id": MEMBERS,
    "group_instance_id": ("instance", "other-instance"),
    "protocol_type": ("consumer", "consumer", "connect"),
    "protocol_name": ("range", "roundrobin"),
    "server_assignor": ("uniform", "range", "unknown"),
    "metadata": (SUBSCRIPTION, b"", b"\xff"),
    "assignment": (b"", b"\0\1\0\0\0\0\xff\xff\xff\xff"),
    "session_timeout_ms": (6000, 10000, 45000),
    "rebalance_timeout_ms": (10, 100, 1000),
    "timeout_ms": (1000, 100, 0, -1, 30000),
    "transaction_timeout_ms": (1000, 60000),
    "max_wait_ms": (0, 1, 10, -1),
    "min_bytes": (0, 1, -1),
    "max_bytes": (1 << 20, 1, 0),
    "partition_max_bytes": (1 << 20, 1, 0),
    "session_epoch": (0, -1, 1, 2, 3),
    "isolation_level": (0, 1),
    "acks": (-1, 1, 0),
    "producer_id": (-1, 0, 1, 2),
    "producer_epoch": (-1, 0, 1, 2),
    "num_partitions": (1, 2, -1, 0, 40),
    "count": (1, 3, 5, 2**31 - 1),
    "replication_factor": (1, -1, 2),
    "partition_index": (0, 1, 2),
    "partition": (0, 1),
    "partition_id": (0, 1),
    "partition_indexes": (0, 1, 2),
    "partitions": (0, 1, 2),
    "index": (0, 1),
    "replica_id": (-1, -1, 1, 2),
    "broker_id": (1, 1, 2),
    "broker_ids": (1, 1, 2),
    "replicas": (1, 1, 2),
    "cluster_id": (None,),
    "config_name": ("retention.ms", "cleanup.policy", "segment.bytes", "num.io.threads"),
    "configs_name": (
        "retention.ms",
        "cleanup.policy",
        "max.message.bytes",
        "segment.bytes",
        "min.insync.replicas",
        "x",
    ),
    "value": ("1", "0", "-1", "compact", "delete", "true", "x" * 300, "100000"),
    "config_operation": (0, 1, 2, 3),
    "operation": (2, 3, 4, 8, 1, 0),
    "permission_type": (2, 3, 1),
    "pattern_type": (3, 4, 1, 2),
    "pattern_type_filter": (3, 4, 1, 2),
    "resource_pattern_type": (3, 4),
    "principal": ("User:alice", "User:*", "nobody", "User:ANONYMOUS"),
    "host": ("*", "127.0.0.1"),
    "entity_type": ("user", "client-id", "ip"),
    "entity_name": ("alice", "127.0.0.1", None),
    "match_type": (0, 1, 2),
    "mechanism": (1, 2, 0),
    "user": ("alice", "bob"),
    "iterations": (4096, 8192, 1),
    "feature": ("metadata.version", "group.version", "transaction.version", "x"),
    "max_version_level": (30, 0, 1, 2),
    "log_dir": ("/nowhere", ""),
    "path": ("/nowhere", ""),
    "protocols_name": ("range", "roundrobin"),
    "committed_metadata": ("", "m" * 5000, None),
    "retention_time_ms": (-1, 0),
    "timestamp": (-1, -2, -3, -4, 0, 2**62),
    "client_instance_id": (wire.Uuid(bytes([1]) * 16),),
    "compression_type": (0, 1, 2, 4, 5),
    "states_filter": ("Stable", "Empty", "x"),
    "types_filter": ("classic", "consumer", "x"),
    "state_filters": ("Ongoing", "Empty", "x"),
    "duration_filter": (-1, 0, 10**9),
    "transactional_id_pattern": ("tx.*", "(", ""),
    "election_type": (0, 1, 2),
    "topic_partitions": (0, 1),
    "auth_bytes": (b"\0user\0password", b""),
    "hmac": (b"", b"x" * 64),
    "renew_period_ms": (-1, 1000),
    "expiry_time_period_ms": (-1, 1000),
    "owner_principal_type": ("User", None),
}


class World:
    """What is plausible now."""

    def __init__(self, draw: Random) -> None:
        self.draw = draw
        self._seen: dict[str, deque[Any]] = defaultdict(lambda: deque(maxlen=REMEMBERED))
        self._sequences: dict[tuple[int, int], int] = {}

    def learn(self, message: wire.Struct) -> None:
        """Remember the values of a response."""
        for name in message.__slots__:
            value = getattr(message, name)
            if isinstance(value, wire.Struct):
                self.learn(value)
            elif isinstance(value, list):
                for each in value[:5]:
                    if isinstance(each, wire.Struct):
                        self.learn(each)
                    else:
                        self._remember(name, each)
            else:
                self._remember(name, value)

    def _remember(self, name: str, value: Any) -> None:
        if value is None or name in ("error_code", "error_message", "throttle_time_ms", "records"):
            return
        if isinstance(value, str | bytes) and len(value) > 300:
            return
        for each in (name, *ALIASES.get(name, ())):
            self._seen[each].append(value)

    def value(self, owner: str, field: FieldSchema) -> Any:
        """A plausible value of a field, or of one element of an array."""
        draw, name = self.draw, field.name
        if field.type == "records":
            return self.batch()
        static = STATIC.get(f"{owner}_{name}") or STATIC.get(name, ())
        seen = [each for each in self._seen.get(name, ()) if fits(each, field.type)]
        pool = [each for each in static if each is None or fits(each, field.type)]
        if seen and (not pool or draw.random() < 0.6):
            return draw.choice(seen)
        if pool:
            return draw.choice(pool)
        return self.anything(field.type)

    def anything(self, kind: str) -> Any:
        draw = self.draw
        if kind in ("int8", "int16", "int32", "int64", "uint16", "uint32"):
            return draw.choice((0, 0, 1, 1, 2, 5)) if draw.random() < 0.9 else draw.choice(EXTREMES[kind])
        match kind:
            case "bool":
                return draw.random() < 0.5
            case "float64":
                return draw.choice((0.0, 1.0, 1000.5))
            case "string":
                return draw.choice(("known", "a", "group", "1", ""))
            case "bytes":
                return draw.choice((b"", b"x", SUBSCRIPTION))
            case "uuid":
                return draw.choice((wire.ZERO_UUID, wire.Uuid(draw.randbytes(16)), *list(self._seen["topic_id"])[-3:]))
        raise AssertionError(kind)

    def batch(self) -> bytes:
        """A batch as a producer would send it next, or almost."""
        draw = self.draw
        count = draw.choice((1, 1, 3, 20))
        records = [
            Record(n, draw.choice((1_700_000_000_000, -1)), draw.choice((b"k", b"j", None)), draw.randbytes(20))
            for n in range(count)
        ]
        producer: dict[str, Any] = {}
        if draw.random() < 0.5:
            ids = [*self._seen["producer_id"], 0]
            epochs = [*self._seen["producer_epoch"], 0]
            key = (draw.choice(ids), draw.choice(epochs))
            sequence = self._sequences.get(key, 0)
            if draw.random() < 0.8:
                self._sequences[key] = (sequence + count) % 2**31
            producer = {
                "producer_id": key[0],
                "producer_epoch": key[1],
                "base_sequence": max(sequence, 0),
                "is_transactional": draw.random() < 0.6,
            }
        return build_batch(records, compression=draw.choice(list(Compression)), **producer)


def fits(value: Any, kind: str) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "bytes":
            return isinstance(value, bytes)
        case "uuid":
            return isinstance(value, wire.Uuid)
        case "bool":
            return isinstance(value, bool)
        case "float64":
            return isinstance(value, float)
    limits = EXTREMES.get(kind)
    return limits is not None and type(value) is int and min(limits) <= value <= max(limits)
