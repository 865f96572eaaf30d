"""A request of every API, which needs every permission of the API; for tests that withhold and grant them.

Each case has a `Cast` of its own: the names of a topic, a group, a transactional id and a user that no other case touches, so
that requests that change something do not disturb each other.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from itertools import combinations
from typing import Any, NamedTuple

from barnabas.batches import Record, build_batch
from barnabas.broker.served import served_apis, served_versions
from barnabas.config.resource_type import ConfigResourceType
from barnabas.security.acl import (
    CLUSTER_NAME,
    AclEntry,
    AclOperation,
    AclPermissionType,
    PatternType,
    ResourceType,
)
from barnabas.security.required_operations import REQUIRED, Listeners, Required
from barnabas.wire import APIS, ZERO_UUID, ApiKey, Message, Uuid, message_class

BROKER, CONTROLLER = "broker", "controller"
METADATA_ID = Uuid(bytes(15) + b"\x01")
OTHER_CLUSTER = "an-other-cluster-id-xx"
NOBODYS_ID = Uuid(b"\x7f" * 16)
RECORDS = build_batch([Record(0, int(time.time() * 1000), b"key", b"value")])  # not older than the retention


class Cast(NamedTuple):
    """The names of one case. `topic_id` is known once the topic exists."""

    principal: str
    topic: str
    group: str
    transactional_id: str
    topic_id: Uuid = ZERO_UUID

    @property
    def new_topic(self) -> str:
        return f"{self.topic}-new"

    @property
    def consumer_group(self) -> str:
        """A group of the consumer protocol."""
        return f"{self.group}-2"

    @property
    def new_user(self) -> str:
        return f"{self.principal}-new"


def cast(name: str) -> Cast:
    return Cast(name, f"topic-{name}", f"group-{name}", f"transactional-{name}")


class Case(NamedTuple):
    """A request of one API. `versions` are those to try beside the newest one."""

    api: str
    listener: str
    build: Callable[[Cast, int], Message]
    versions: tuple[int, ...] = ()
    what: str = ""

    @property
    def key(self) -> int:
        return next(key for key, api in APIS.items() if api.name == self.api)

    @property
    def all_versions(self) -> tuple[int, ...]:
        return tuple(sorted({served_versions(self.key).last, *self.versions}))

    @property
    def required(self) -> tuple[Required, ...]:
        """The permissions of the API on this listener, each once."""
        found = (each for each in REQUIRED[self.api] if each.on in (Listeners.ANY, self.listener))
        return tuple({(each.operation, each.resource_type): each for each in found}.values())

    @property
    def subsets(self) -> Iterator[tuple[Required, ...]]:
        """Every choice of permissions to grant, from none to all."""
        for count in range(len(self.required) + 1):
            yield from combinations(self.required, count)

    def __str__(self) -> str:
        return f"{self.api}-{self.listener}{'-' if self.what else ''}{self.what}"


def entry(given: Required, names: Cast) -> AclEntry:
    """The ACL entry that grants a permission."""
    name = {
        ResourceType.TOPIC: names.topic,
        ResourceType.GROUP: names.group,
        ResourceType.CLUSTER: CLUSTER_NAME,
        ResourceType.TRANSACTIONAL_ID: names.transactional_id,
        ResourceType.USER: f"User:{names.new_user}",
        ResourceType.DELEGATION_TOKEN: "*",
    }[given.resource_type]
    # A topic that a request creates, and a group of consumers, has a name with the same beginning.
    others = (AclOperation.CREATE, AclOperation.DESCRIBE, AclOperation.DESCRIBE_CONFIGS)
    is_prefix = given.resource_type in (ResourceType.TOPIC, ResourceType.GROUP) and given.operation in others
    pattern = PatternType.PREFIXED if is_prefix else PatternType.LITERAL
    who = f"User:{names.principal}"
    return AclEntry(given.resource_type, name, pattern, who, "*", given.operation, AclPermissionType.ALLOW)


def built(message: type[Message] | str, fields: dict[str, Any]) -> Message:
    """Build a message; the rows of its lists are dicts."""
    kind = message_class(message) if isinstance(message, str) else message
    schema = kind.schema()

    def made(struct: Any, content: dict[str, Any], into: type[Any]) -> Any:
        types = {field.name: field for field in struct.fields}
        values = {}
        for name, value in content.items():
            field = types[name]
            if field.is_struct and value is not None:
                inner = getattr(kind, field.type)
                rows = value if field.is_array else [value]
                found = [made(schema.structs[field.type], row, inner) for row in rows]
                values[name] = found if field.is_array else found[0]
            else:
                values[name] = value
        return into(**values)

    result: Message = made(schema.root, fields, kind)
    return result


def _case(
    api: str,
    fields: Callable[[Cast, int], dict[str, Any]],
    *versions: int,
    on: Sequence[str] = (BROKER, CONTROLLER),
    what: str = "",
) -> Iterator[Case]:
    key = next(key for key, each in APIS.items() if each.name == api)
    for listener in on:
        if key in served_apis(listener):
            yield Case(
                api, listener, lambda names, version: built(f"{api}Request", fields(names, version)), versions, what
            )


def _by_name_or_id(names: Cast, version: int, first_with_ids: int, name: str = "name") -> dict[str, Any]:
    return {"topic_id": names.topic_id} if version >= first_with_ids else {name: names.topic}


def _produce(names: Cast, version: int) -> dict[str, Any]:
    data = {**_by_name_or_id(names, version, 13), "partition_data": [{"index": 0, "records": RECORDS}]}
    return {"acks": -1, "timeout_ms": 5000, "topic_data": [data]}


def _produce_transactional(names: Cast, version: int) -> dict[str, Any]:
    batch = build_batch(
        [Record(0, 1, b"k", b"v")], producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True
    )
    data = {**_by_name_or_id(names, version, 13), "partition_data": [{"index": 0, "records": batch}]}
    return {"transactional_id": names.transactional_id, "acks": -1, "timeout_ms": 5000, "topic_data": [data]}


def _fetch(names: Cast, version: int, replica_id: int = -1) -> dict[str, Any]:
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1000, "current_leader_epoch": -1}
    topic = {**_by_name_or_id(names, version, 13, "topic"), "partitions": [partition]}
    replica = {"replica_state": {"replica_id": replica_id}} if version >= 15 else {"replica_id": replica_id}
    return {**replica, "max_wait_ms": 0, "min_bytes": 0, "max_bytes": 1000, "topics": [topic]}


def _fetch_metadata(names: Cast, version: int) -> dict[str, Any]:
    named = {"topic_id": METADATA_ID} if version >= 13 else {"topic": "__cluster_metadata"}
    partition = {"partition": 0, "fetch_offset": 0, "partition_max_bytes": 1, "current_leader_epoch": 99}
    replica = {"replica_state": {"replica_id": 9}} if version >= 15 else {"replica_id": 9}
    fetch = {**replica, "max_wait_ms": 0, "max_bytes": 1, "topics": [{**named, "partitions": [partition]}]}
    return {**fetch, "cluster_id": OTHER_CLUSTER} if version >= 12 else fetch


def _metadata(names: Cast, version: int, topics: list[dict[str, Any]] | None) -> dict[str, Any]:
    asked: dict[str, Any] = {"topics": topics}
    if version >= 4:
        asked["allow_auto_topic_creation"] = False
    if version >= 8:
        asked["include_topic_authorized_operations"] = True
        if version <= 10:
            asked["include_cluster_authorized_operations"] = True
    return asked


def _metadata_creating(names: Cast, version: int) -> dict[str, Any]:
    return {"topics": [{"name": names.new_topic}], "allow_auto_topic_creation": True}


def _offset_commit(names: Cast, version: int) -> dict[str, Any]:
    partition = {"partition_index": 0, "committed_offset": 0}
    topic = {**_by_name_or_id(names, version, 10), "partitions": [partition]}
    return {"group_id": names.group, "generation_id_or_member_epoch": -1, "topics": [topic]}


def _offset_fetch(names: Cast, version: int, topics: bool = True) -> dict[str, Any]:
    rows = [{**_by_name_or_id(names, version, 10), "partition_indexes": [0]}] if topics else None
    if version >= 8:
        return {"groups": [{"group_id": names.group, "topics": rows}]}
    return {"group_id": names.group, "topics": rows}


def _find(names: Cast, version: int, kind: int, key: str) -> dict[str, Any]:
    wanted: dict[str, Any] = {"coordinator_keys": [key]} if version >= 4 else {"key": key}
    return {**wanted, "key_type": kind} if version >= 1 else wanted


def _join(names: Cast, version: int) -> dict[str, Any]:
    protocols = [{"name": "range", "metadata": b""}]
    return {"group_id": names.group, "session_timeout_ms": 1, "protocol_type": "consumer", "protocols": protocols}


def _sync(names: Cast, version: int) -> dict[str, Any]:
    sync: dict[str, Any] = {"group_id": names.group, "generation_id": 1, "member_id": "nobody"}
    return {**sync, "protocol_type": "consumer", "protocol_name": "range"} if version >= 5 else sync


def _leave(names: Cast, version: int) -> dict[str, Any]:
    who: dict[str, Any] = {"members": [{"member_id": "nobody"}]} if version >= 3 else {"member_id": "nobody"}
    return {"group_id": names.group, **who}


def _create_topics(names: Cast, version: int) -> dict[str, Any]:
    topic = {"name": names.new_topic, "num_partitions": 1, "replication_factor": 1}
    return {"topics": [topic], "timeout_ms": 5000, **({"validate_only": True} if version >= 1 else {})}


def _delete_topics(names: Cast, version: int) -> dict[str, Any]:
    asked: dict[str, Any] = {"timeout_ms": 5000}
    if version >= 6:
        # Both the name of one topic and the id of another could not be compared: rows have no order.
        return {**asked, "topics": [{"name": names.topic}]}
    return {**asked, "topic_names": [names.topic]}


def _delete_topic_by_id(names: Cast, version: int) -> dict[str, Any]:
    return {"timeout_ms": 5000, "topics": [{"name": None, "topic_id": names.topic_id}]}


def _init_producer_id(names: Cast, version: int, transactional: bool) -> dict[str, Any]:
    # A timeout that is too long is refused after the permission was asked for, and leaves nothing behind.
    return {"transactional_id": names.transactional_id if transactional else None, "transaction_timeout_ms": 2**31 - 1}


def _epochs(names: Cast, version: int) -> dict[str, Any]:
    partition = {"partition": 0, "current_leader_epoch": -1, "leader_epoch": 0}
    asked: dict[str, Any] = {"topics": [{"topic": names.topic, "partitions": [partition]}]}
    return {**asked, "replica_id": -2} if version >= 3 else asked


def _add_partitions(names: Cast, version: int) -> dict[str, Any]:
    topics = [{"name": names.topic, "partitions": [0]}]
    if version >= 4:
        transaction = {"transactional_id": names.transactional_id, "producer_id": 7, "topics": topics}
        return {"transactions": [transaction]}
    return {
        "v3_and_below_transactional_id": names.transactional_id,
        "v3_and_below_producer_id": 7,
        "v3_and_below_topics": topics,
    }


def _txn_offset_commit(names: Cast, version: int) -> dict[str, Any]:
    topics = [{"name": names.topic, "partitions": [{"partition_index": 0, "committed_offset": 0}]}]
    return {"transactional_id": names.transactional_id, "group_id": names.group, "producer_id": 7, "topics": topics}


def _create_acls(names: Cast, version: int) -> dict[str, Any]:
    pattern = {"resource_pattern_type": 3} if version >= 1 else {}
    what = {"resource_type": 2, "resource_name": names.topic, "operation": 3, "permission_type": 3}
    return {"creations": [{**what, **pattern, "principal": f"User:{names.new_user}", "host": "*"}]}


def _acl_filter(names: Cast, version: int) -> dict[str, Any]:
    pattern = {"pattern_type_filter": 3} if version >= 1 else {}
    what = {"resource_type_filter": 2, "resource_name_filter": names.topic, "operation": 1, "permission_type": 1}
    return {**what, **pattern, "principal_filter": f"User:{names.new_user}-x", "host_filter": None}


def _configs(names: Cast, version: int, kinds: Sequence[ConfigResourceType]) -> list[dict[str, Any]]:
    of = {
        ConfigResourceType.TOPIC: names.topic,
        ConfigResourceType.GROUP: names.group,
        ConfigResourceType.BROKER: "1",
        ConfigResourceType.BROKER_LOGGER: "1",
        ConfigResourceType.CLIENT_METRICS: names.topic,
    }
    return [{"resource_type": int(kind), "resource_name": of[kind]} for kind in kinds]


DESCRIBED = (ConfigResourceType.TOPIC, ConfigResourceType.GROUP, ConfigResourceType.BROKER)
ALTERED = (ConfigResourceType.TOPIC, ConfigResourceType.GROUP, ConfigResourceType.CLIENT_METRICS)
SETTINGS = {
    ConfigResourceType.TOPIC: ("retention.ms", "86400000"),
    ConfigResourceType.GROUP: ("consumer.session.timeout.ms", "46000"),
    ConfigResourceType.CLIENT_METRICS: ("interval.ms", "1000"),
    ConfigResourceType.BROKER_LOGGER: ("kafka.server.KafkaConfig", "INFO"),
}


def _describe_configs(names: Cast, version: int, kinds: Sequence[ConfigResourceType] = DESCRIBED) -> dict[str, Any]:
    keys = ["retention.ms", "consumer.session.timeout.ms", "num.network.threads", "interval.ms"]
    return {"resources": [{**each, "configuration_keys": keys} for each in _configs(names, version, kinds)]}


def _alter_configs(
    names: Cast, version: int, kinds: Sequence[ConfigResourceType] = ALTERED, incremental: bool = False
) -> dict[str, Any]:
    rows = []
    for kind, each in zip(kinds, _configs(names, version, kinds), strict=True):
        name, value = SETTINGS[kind]
        setting: dict[str, Any] = {"name": name, "value": value}
        rows.append({**each, "configs": [{**setting, "config_operation": 0} if incremental else setting]})
    return {"resources": rows, "validate_only": kinds is ALTERED}


def _scram_upsertion(names: Cast, version: int) -> dict[str, Any]:
    # The iterations are refused after the permission was asked for.
    row = {"name": names.new_user, "mechanism": 1, "iterations": 1, "salt": b"s", "salted_password": b"p"}
    return {"deletions": [], "upsertions": [row]}


def _quota(names: Cast, version: int) -> dict[str, Any]:
    entity = [{"entity_type": "user", "entity_name": names.new_user}]
    ops = [{"key": "producer_byte_rate", "value": 1e6, "remove": False}]
    return {"entries": [{"entity": entity, "ops": ops}], "validate_only": True}


def _broker(names: Cast, version: int) -> dict[str, Any]:
    return {"broker_id": 77, "cluster_id": OTHER_CLUSTER, "incarnation_id": NOBODYS_ID}


def _raft(names: Cast, version: int) -> dict[str, Any]:
    return {"cluster_id": OTHER_CLUSTER, "topics": []}


def _describe_quorum(names: Cast, version: int) -> dict[str, Any]:
    return {"topics": [{"topic_name": "__cluster_metadata", "partitions": [{"partition_index": 0}]}]}


def _share_state(names: Cast, version: int) -> dict[str, Any]:
    return {"group_id": "shared", "topics": [{"topic_id": names.topic_id, "partitions": [{"partition": 0}]}]}


def _share_fetch(names: Cast, version: int) -> dict[str, Any]:
    topics = [{"topic_id": names.topic_id, "partitions": [{"partition_index": 0}]}]
    wanted = {"max_records": 1, "batch_size": 1, "max_bytes": 100, "topics": topics}
    return {"group_id": names.group, "member_id": "a-member", **wanted}


def _share_acknowledge(names: Cast, version: int) -> dict[str, Any]:
    partition = {"partition_index": 0, "acknowledgement_batches": []}
    topics = [{"topic_id": names.topic_id, "partitions": [partition]}]
    return {"group_id": names.group, "member_id": "a-member", "share_session_epoch": 1, "topics": topics}


def _consumer_groups(names: Cast, version: int) -> dict[str, Any]:
    return {"group_ids": [names.consumer_group], "include_authorized_operations": True}


def _topics(names: Cast, version: int) -> dict[str, Any]:
    return {"topics": [{"name": names.topic, "partition_indexes": [0]}]}


def token(names: Cast, version: int) -> dict[str, Any]:
    """The fields of a request for a token of somebody else, or before version 3 of the caller."""
    asked: dict[str, Any] = {"renewers": [], "max_lifetime_ms": -1}
    return {**asked, "owner_principal_type": "User", "owner_principal_name": names.new_user} if version >= 3 else asked


def _cluster(kind: int) -> Callable[[Cast, int], dict[str, Any]]:
    def fields(names: Cast, version: int) -> dict[str, Any]:
        asked: dict[str, Any] = {"include_cluster_authorized_operations": True}
        return {**asked, "endpoint_type": kind} if version >= 1 else asked

    return fields


def _heartbeat_of_consumer(names: Cast, version: int) -> dict[str, Any]:
    return {
        "group_id": f"{names.group}",
        "member_id": "member" if version >= 1 else "",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "subscribed_topic_names": [names.topic],
        "topic_partitions": [],
        "server_assignor": "an unknown assignor",  # refused after the permissions were asked for
    }


def _heartbeat_of_streams(names: Cast, version: int) -> dict[str, Any]:
    topology = {"epoch": 0, "subtopologies": [{"subtopology_id": "0", "source_topics": [names.topic]}]}
    return {
        "group_id": names.group,
        "member_id": "member",
        "member_epoch": 0,
        "rebalance_timeout_ms": 1000,
        "topology": topology,
        "task_offsets": [],  # refused after the permissions were asked for
    }


def cases() -> list[Case]:
    """All cases: at least one for every API and listener."""
    found: list[Iterator[Case]] = [
        _case("Produce", _produce, 12, on=(BROKER,)),
        _case("Produce", _produce_transactional, 11, on=(BROKER,), what="transactional"),
        _case("Fetch", _fetch, 4, 12, on=(BROKER,)),
        _case("Fetch", lambda n, v: _fetch(n, v, replica_id=5), 4, 12, 14, on=(BROKER,), what="follower"),
        _case("Fetch", _fetch_metadata, 12, on=(CONTROLLER,)),
        _case(
            "ListOffsets",
            lambda n, v: {
                "replica_id": -1,
                "topics": [{"name": n.topic, "partitions": [{"partition_index": 0, "timestamp": -1}]}],
            },
            1,
        ),
        _case("Metadata", lambda n, v: _metadata(n, v, [{"name": n.topic}, {"name": n.new_topic}]), 1, 8, 10),
        _case("Metadata", lambda n, v: _metadata(n, v, [{"name": None, "topic_id": n.topic_id}]), what="by id"),
        _case("Metadata", lambda n, v: _metadata(n, v, None), 8, what="of all"),
        _case("Metadata", _metadata_creating, 4, what="creating"),
        _case("OffsetCommit", _offset_commit, 2, 9),
        _case("OffsetFetch", _offset_fetch, 1, 2, 7, 9),
        _case("OffsetFetch", lambda n, v: _offset_fetch(n, v, topics=False), 2, what="of all topics"),
        _case("FindCoordinator", lambda n, v: _find(n, v, 0, n.group), 0, 3, what="of a group"),
        _case("FindCoordinator", lambda n, v: _find(n, v, 1, n.transactional_id), 3, what="of a transactional id"),
        _case("FindCoordinator", lambda n, v: _find(n, v, 2, f"g:{NOBODYS_ID}:0"), what="of a share partition"),
        _case("JoinGroup", _join, 0, 6),
        _case("Heartbeat", lambda n, v: {"group_id": n.group, "generation_id": 1, "member_id": "nobody"}, 0),
        _case("LeaveGroup", _leave, 0, 2),
        _case("SyncGroup", _sync, 0),
        _case(
            "DescribeGroups",
            lambda n, v: {"groups": [n.group], **({"include_authorized_operations": True} if v >= 3 else {})},
            0,
        ),
        _case("ListGroups", lambda n, v: {}, 0),
        _case("SaslHandshake", lambda n, v: {"mechanism": "PLAIN"}),
        _case("ApiVersions", lambda n, v: {"client_software_name": "test", "client_software_version": "1"}),
        _case("CreateTopics", _create_topics, 2, 4),
        _case("DeleteTopics", _delete_topics, 1, 5),
        _case("DeleteTopics", _delete_topic_by_id, what="by id"),
        _case(
            "DeleteRecords",
            lambda n, v: {
                "topics": [{"name": n.topic, "partitions": [{"partition_index": 0, "offset": 0}]}],
                "timeout_ms": 5000,
            },
            0,
        ),
        _case("InitProducerId", lambda n, v: _init_producer_id(n, v, True), 0, what="transactional"),
        _case("InitProducerId", lambda n, v: _init_producer_id(n, v, False), 0, what="idempotent"),
        _case("OffsetForLeaderEpoch", _epochs, 2),
        _case("AddPartitionsToTxn", _add_partitions, 0, 3),
        _case(
            "AddOffsetsToTxn",
            lambda n, v: {"transactional_id": n.transactional_id, "producer_id": 7, "group_id": n.group},
            0,
        ),
        _case("EndTxn", lambda n, v: {"transactional_id": n.transactional_id, "producer_id": 7}, 0),
        _case(
            "WriteTxnMarkers",
            lambda n, v: {"markers": [{"producer_id": 7, "topics": [{"name": n.new_topic, "partition_indexes": [0]}]}]},
            1,
        ),
        _case("TxnOffsetCommit", _txn_offset_commit, 0, 3),
        _case("DescribeAcls", _acl_filter, 1),
        _case("CreateAcls", _create_acls, 1),
        _case("DeleteAcls", lambda n, v: {"filters": [_acl_filter(n, v)]}, 1),
        _case("DescribeConfigs", _describe_configs, 1),
        _case("AlterConfigs", _alter_configs, 0),
        _case(
            "AlterReplicaLogDirs",
            lambda n, v: {"dirs": [{"path": "/x", "topics": [{"name": n.topic, "partitions": [0]}]}]},
            1,
        ),
        _case("DescribeLogDirs", lambda n, v: {"topics": [{"topic": n.topic, "partitions": [0]}]}, 1, 2),
        _case("SaslAuthenticate", lambda n, v: {"auth_bytes": b""}),
        _case(
            "CreatePartitions",
            lambda n, v: {"topics": [{"name": n.topic, "count": 2}], "timeout_ms": 5000, "validate_only": True},
            0,
        ),
        _case("CreateDelegationToken", token, 1),
        _case("RenewDelegationToken", lambda n, v: {"hmac": b"x", "renew_period_ms": 1}),
        _case("ExpireDelegationToken", lambda n, v: {"hmac": b"x", "expiry_time_period_ms": 1}),
        _case(
            "DescribeDelegationToken",
            lambda n, v: {"owners": [{"principal_type": "User", "principal_name": n.new_user}]},
        ),
        _case("DeleteGroups", lambda n, v: {"groups_names": [n.group]}, 0),
        _case(
            "ElectLeaders",
            lambda n, v: {"topic_partitions": [{"topic": n.topic, "partitions": [0]}], "timeout_ms": 5000},
            0,
        ),
        _case("IncrementalAlterConfigs", lambda n, v: _alter_configs(n, v, incremental=True), 0),
        _case(
            "IncrementalAlterConfigs",
            lambda n, v: _alter_configs(n, v, (ConfigResourceType.BROKER_LOGGER,), incremental=True),
            what="of loggers",
        ),
        _case(
            "AlterPartitionReassignments",
            lambda n, v: {
                "timeout_ms": 5000,
                "topics": [{"name": n.topic, "partitions": [{"partition_index": 0, "replicas": None}]}],
            },
        ),
        _case("ListPartitionReassignments", lambda n, v: {**_topics(n, v), "timeout_ms": 5000}),
        _case(
            "OffsetDelete",
            lambda n, v: {"group_id": n.group, "topics": [{"name": n.topic, "partitions": [{"partition_index": 0}]}]},
        ),
        _case(
            "DescribeClientQuotas",
            lambda n, v: {
                "components": [{"entity_type": "user", "match_type": 0, "match": n.new_user}],
                "strict": True,
            },
            0,
        ),
        _case("AlterClientQuotas", _quota, 0),
        _case("DescribeUserScramCredentials", lambda n, v: {"users": [{"name": n.new_user}]}),
        _case("AlterUserScramCredentials", _scram_upsertion),
        _case("Vote", _raft, 0),
        _case("BeginQuorumEpoch", _raft, 0),
        _case("EndQuorumEpoch", _raft, 0),
        _case("DescribeQuorum", _describe_quorum, 0),
        _case(
            "AlterPartition",
            lambda n, v: {"broker_id": 77, "broker_epoch": 5, "topics": [{"topic_id": n.topic_id, "partitions": []}]},
            2,
        ),
        _case(
            "UpdateFeatures",
            lambda n, v: {"feature_updates": [{"feature": "no.such.feature", "max_version_level": 1}]},
            0,
        ),
        _case("FetchSnapshot", _raft, 0),
        _case("DescribeCluster", _cluster(1), 0, on=(BROKER,)),
        _case("DescribeCluster", _cluster(2), on=(CONTROLLER,)),
        _case("DescribeProducers", _topics),
        _case("BrokerRegistration", _broker, 0),
        _case("Envelope", lambda n, v: {"request_data": b"", "request_principal": b"", "client_host_address": b""}),
        _case("BrokerHeartbeat", lambda n, v: {"broker_id": 77, "broker_epoch": 5}, 0),
        _case("UnregisterBroker", lambda n, v: {"broker_id": 77}),
        _case("DescribeTransactions", lambda n, v: {"transactional_ids": [n.transactional_id]}),
        _case("ListTransactions", lambda n, v: {}, 0),
        _case("AllocateProducerIds", lambda n, v: {"broker_id": 77, "broker_epoch": 5}),
        _case("ConsumerGroupHeartbeat", _heartbeat_of_consumer, 0),
        _case(
            "ConsumerGroupDescribe",
            lambda n, v: {"group_ids": [n.consumer_group], "include_authorized_operations": True},
            0,
        ),
        _case("ControllerRegistration", lambda n, v: {"controller_id": 77, "incarnation_id": NOBODYS_ID}),
        _case(
            "ShareGroupHeartbeat",
            lambda n, v: {
                "group_id": n.group,
                "member_id": "member",
                "member_epoch": 1,
                "subscribed_topic_names": [n.topic],
            },
        ),
        _case(
            "ShareGroupDescribe",
            lambda n, v: {"group_ids": [n.group], "include_authorized_operations": True},
        ),
        _case(
            "DescribeShareGroupOffsets",
            lambda n, v: {
                "groups": [{"group_id": n.group, "topics": [{"topic_name": n.topic, "partitions": [0]}]}],
            },
            0,
        ),
        _case(
            "AlterShareGroupOffsets",
            lambda n, v: {
                "group_id": n.group,
                "topics": [{"topic_name": n.topic, "partitions": [{"partition_index": 0, "start_offset": 1}]}],
            },
            0,
        ),
        _case("DeleteShareGroupOffsets", lambda n, v: {"group_id": n.group, "topics": [{"topic_name": n.topic}]}, 0),
        _case("InitializeShareGroupState", _share_state),
        _case("ReadShareGroupState", _share_state),
        _case("WriteShareGroupState", _share_state),
        _case("DeleteShareGroupState", _share_state),
        _case("ReadShareGroupStateSummary", _share_state),
        _case("ShareFetch", _share_fetch, 1),
        _case("ShareAcknowledge", _share_acknowledge, 1),
        _case("GetTelemetrySubscriptions", lambda n, v: {}),
        _case("PushTelemetry", lambda n, v: {"client_instance_id": NOBODYS_ID}),
        _case("AssignReplicasToDirs", lambda n, v: {"broker_id": 77, "broker_epoch": 5}),
        _case("ListConfigResources", lambda n, v: {"resource_types": [16]} if v >= 1 else {}, 0),
        _case("DescribeTopicPartitions", lambda n, v: {"topics": [{"name": n.topic}, {"name": n.new_topic}]}),
        _case("DescribeTopicPartitions", lambda n, v: {}, what="of all"),
        _case("AddRaftVoter", lambda n, v: {"cluster_id": OTHER_CLUSTER, "voter_id": 77}, 0),
        _case("RemoveRaftVoter", lambda n, v: {"cluster_id": OTHER_CLUSTER, "voter_id": 77}),
        _case("StreamsGroupHeartbeat", _heartbeat_of_streams, 0),
        _case(
            "StreamsGroupDescribe",
            lambda n, v: {"group_ids": [n.group], "include_authorized_operations": True},
            0,
        ),
        _case("UpdateRaftVoter", lambda n, v: {"cluster_id": OTHER_CLUSTER, "voter_id": 77}),
    ]
    return [case for some in found for case in some]


CASES = cases()
SASL = frozenset({ApiKey.SASL_HANDSHAKE, ApiKey.SASL_AUTHENTICATE})
"""Part of a login: what a logged-in client gets is a matter of logins, not of permissions."""
