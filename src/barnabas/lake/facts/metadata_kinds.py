"""Kinds of facts from the metadata log: their columns, and the conversion between values of the image and rows.

Its one rule: row -> value -> row is the identity, so that open rows are all that a later run needs. `facts.metadata` decides
which facts there are, and when they start and end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import lru_cache
from typing import Any, Final, NamedTuple

from barnabas.config.resource_type import ConfigResourceType
from barnabas.lake.declared_column import Column
from barnabas.lake.facts.acl_entries import code_of
from barnabas.lake.facts.schema import Kind, key_text
from barnabas.metadata.brokers import Broker, Controller, Endpoint, VersionRange
from barnabas.metadata.pmap import PMap
from barnabas.metadata.quotas import QuotaEntity
from barnabas.metadata.scram import SCRAM_MECHANISMS, ScramUser
from barnabas.metadata.tokens import DelegationToken
from barnabas.metadata.topics import RECOVERED, RECOVERING, Partition
from barnabas.security.acl import AclEntry, AclOperation, AclPermissionType, PatternType, ResourceType
from barnabas.security.sasl.scram import ScramCredential
from barnabas.wire.primitives import Uuid

_ENDPOINTS: Final = "array<struct<name: string, host: string, port: int, security_protocol: int>>"
_RANGES: Final = "array<struct<name: string, min: int, max: int>>"
_NODES: Final = "array<int>"

TOPICS: Final = Kind(
    "topics",
    "Which topics existed?",
    (Column("topic_id", "string", "The topic's id; a topic that is re-created under the same name has another."),),
    (Column("name", "string", "The name."),),
)
PARTITIONS: Final = Kind(
    "partitions",
    "Who led each partition, where were its replicas, and which of them were in sync?",
    (
        Column("topic_id", "string", "The topic's id."),
        Column("topic_name", "string", "The topic's name."),
        Column("partition", "int", "The partition."),
    ),
    (
        Column("leader", "int", "The broker that leads it; -1: none."),
        Column("leader_epoch", "int", "The leader epoch, which grows with every election."),
        Column("partition_epoch", "int", "The partition epoch, which grows with every change."),
        Column("replicas", _NODES, "The brokers with a replica, the preferred leader first."),
        Column("directories", "array<string>", "The log directory of each replica, in the same order."),
        Column("isr", _NODES, "The in-sync replicas."),
        Column("elr", _NODES, "Eligible leader replicas: not in sync, but known to have all committed records."),
        Column("last_known_elr", _NODES, "Eligible leader replicas that were shut down uncleanly."),
        Column("adding_replicas", _NODES, "Replicas that a reassignment adds."),
        Column("removing_replicas", _NODES, "Replicas that a reassignment removes."),
        Column("leader_recovery_state", "string", "RECOVERED, or RECOVERING after an unclean election."),
    ),
)
CONFIGS: Final = Kind(
    "configs",
    "Which settings did each resource have?",
    (
        Column(
            "resource_type", "string", "TOPIC, BROKER, BROKER_LOGGER, CLIENT_METRICS or GROUP; otherwise the number."
        ),
        Column("resource_name", "string", "The name of the resource; empty: the default of its type."),
        Column("name", "string", "The name of the setting."),
    ),
    (Column("value", "string", "The value; masked if the source masks it."),),
)
ACLS: Final = Kind(
    "acls",
    "Which ACLs allowed or denied what?",
    (Column("acl_id", "string", "The id of the entry."),),
    (
        Column("resource_type", "string", "TOPIC, GROUP, CLUSTER, TRANSACTIONAL_ID, DELEGATION_TOKEN or USER."),
        Column("resource_name", "string", "The name, or the prefix; * for all."),
        Column("pattern_type", "string", "LITERAL or PREFIXED."),
        Column("principal", "string", "The principal, as type:name."),
        Column("host", "string", "The host; * for any host."),
        Column("operation", "string", "The operation, e.g. READ."),
        Column("permission", "string", "ALLOW or DENY."),
    ),
)
BROKERS: Final = Kind(
    "brokers",
    "Which brokers were registered, with which endpoints, and were they fenced?",
    (Column("broker_id", "int", "The broker."),),
    (
        Column("epoch", "bigint", "The epoch of its registration."),
        Column("incarnation_id", "string", "The id of the process that registered."),
        Column("rack", "string", "The rack; null: none."),
        Column("fenced", "boolean", "Whether it was fenced: its session expired, or it was not ready yet."),
        Column("in_controlled_shutdown", "boolean", "Whether it was in controlled shutdown."),
        Column("is_migrating_zk_broker", "boolean", "Whether it was migrating from ZooKeeper."),
        Column("listeners", _ENDPOINTS, "Its endpoints, by listener name."),
        Column("features", _RANGES, "The supported levels of each feature."),
        Column("log_dirs", "array<string>", "The ids of its online log directories."),
        Column(
            "cordoned_log_dirs", "array<string>", "Log directories that accept no new replicas; null: not reported."
        ),
    ),
)
CONTROLLERS: Final = Kind(
    "controllers",
    "Which controllers were registered, and with which endpoints?",
    (Column("controller_id", "int", "The controller."),),
    (
        Column("incarnation_id", "string", "The id of the process that registered."),
        Column("zk_migration_ready", "boolean", "Whether it was ready for a migration from ZooKeeper."),
        Column("listeners", _ENDPOINTS, "Its endpoints, by listener name."),
        Column("features", _RANGES, "The supported levels of each feature."),
    ),
)
FEATURES: Final = Kind(
    "features",
    "At which level was each feature, including metadata.version and kraft.version?",
    (Column("name", "string", "The feature."),),
    (Column("level", "int", "The finalized level."),),
)
QUOTAS: Final = Kind(
    "quotas",
    "Which quotas were set, for which entities?",
    (
        Column(
            "entity",
            "array<struct<type: string, name: string>>",
            "The entity: pairs of type (user, client-id, ip) and name, sorted by type; a null name: the default of the type.",
        ),
        Column("name", "string", "The quota, e.g. producer_byte_rate."),
    ),
    (Column("value", "double", "The limit."),),
)
USERS: Final = Kind(
    "users",
    "Which SCRAM users existed?",
    (
        Column("name", "string", "The user."),
        Column("mechanism", "string", "SCRAM-SHA-256 or SCRAM-SHA-512."),
    ),
    (
        Column("iterations", "int", "Number of hash iterations."),
        Column("salt", "binary", "The salt; empty if the source masks it."),
        Column("stored_key", "binary", "The stored key; empty if the source masks it."),
        Column("server_key", "binary", "The server key; empty if the source masks it."),
    ),
)
TOKENS: Final = Kind(
    "tokens",
    "Which delegation tokens were valid, and who owned them?",
    (Column("token_id", "string", "The token."),),
    (
        Column("owner", "string", "The principal that it authenticates, as type:name."),
        Column("requester", "string", "The principal that requested it."),
        Column("renewers", "array<string>", "Principals that may renew it besides the owner."),
        Column("issued_at", "timestamp", "When it was issued."),
        Column("max_lifetime_until", "timestamp", "The latest time to which it can be renewed."),
        Column("expires_at", "timestamp", "When it expires unless it is renewed."),
    ),
)
PRODUCER_IDS: Final = Kind(
    "producer_ids",
    "Which blocks of producer ids were allocated, and to which broker?",
    (Column("next_producer_id", "bigint", "The first producer id after the block."),),
    (
        Column("broker_id", "int", "The broker that got the block; -1: unknown, from a snapshot."),
        Column("broker_epoch", "bigint", "The broker's epoch at that time."),
    ),
)
VOTERS: Final = Kind(
    "voters",
    "Which voters did the quorum have, according to the log (kraft.version 1)?",
    (
        Column("voter_id", "int", "The controller."),
        Column(
            "directory_id", "string", "The id of its metadata log directory: with another disk it is another voter."
        ),
    ),
    (
        Column("endpoints", "array<struct<name: string, host: string, port: int>>", "Its endpoints."),
        Column("min_kraft_version", "int", "The lowest kraft.version that it supports."),
        Column("max_kraft_version", "int", "The highest kraft.version that it supports."),
    ),
)
LEADER_EPOCHS: Final = Kind(
    "leader_epochs",
    "Who was the active controller, in which epoch, and who voted for it?",
    (Column("epoch", "int", "The epoch."),),
    (
        Column("leader_id", "int", "The leader."),
        Column("voters", _NODES, "The voters."),
        Column("granting_voters", _NODES, "The voters that voted for the leader."),
    ),
)

KINDS: Final = (
    TOPICS,
    PARTITIONS,
    CONFIGS,
    ACLS,
    BROKERS,
    CONTROLLERS,
    FEATURES,
    QUOTAS,
    USERS,
    TOKENS,
    PRODUCER_IDS,
    VOTERS,
    LEADER_EPOCHS,
)


class Voter(NamedTuple):
    endpoints: tuple[tuple[str, str, int], ...]
    min_kraft_version: int
    max_kraft_version: int


class ProducerIdBlock(NamedTuple):
    next_producer_id: int
    broker_id: int
    broker_epoch: int


class LeaderEpoch(NamedTuple):
    epoch: int
    leader_id: int
    voters: tuple[int, ...]
    granting_voters: tuple[int, ...]


_RESOURCE_TYPES: Final = {int(kind): kind.name for kind in ConfigResourceType}
_RESOURCE_NUMBERS: Final = {name: number for number, name in _RESOURCE_TYPES.items()}
_RECOVERY: Final = {RECOVERED: "RECOVERED", RECOVERING: "RECOVERING"}
_RECOVERY_NUMBERS: Final = {name: number for number, name in _RECOVERY.items()}
_MECHANISM_NUMBERS: Final = {name: number for number, name in SCRAM_MECHANISMS.items()}
_texts_of_directories: dict[tuple[Uuid, ...], tuple[str, ...]] = {}


def resource_type_name(number: int) -> str:
    return _RESOURCE_TYPES.get(number) or str(number)


def _directory_texts(directories: tuple[Uuid, ...]) -> tuple[str, ...]:
    """Return directories as texts, cached: a cluster has many partitions, but few placements."""
    found = _texts_of_directories.get(directories)
    if found is None:
        if len(_texts_of_directories) > 100_000:
            _texts_of_directories.clear()
        found = _texts_of_directories[directories] = tuple(map(str, directories))
    return found


def partition_row(topic_id: str, topic_name: str, index: int, partition: Partition) -> tuple[Any, ...]:
    replicas, directories, isr, removing, adding, leader, recovery, leader_epoch, partition_epoch, elr, last = partition
    return (
        topic_id,
        topic_name,
        index,
        leader,
        leader_epoch,
        partition_epoch,
        replicas,
        _directory_texts(directories),
        isr,
        elr,
        last,
        adding,
        removing,
        _RECOVERY[recovery],
    )


def partition_of(row: tuple[Any, ...]) -> tuple[tuple[Uuid, int], Partition]:
    topic_id, _, index, leader, leader_epoch, partition_epoch, replicas, directories, isr, elr, last, add, rm, state = (
        row
    )
    partition = Partition(
        tuple(replicas),
        _uuids(directories),
        tuple(isr),
        tuple(rm),
        tuple(add),
        leader,
        _RECOVERY_NUMBERS[state],
        leader_epoch,
        partition_epoch,
        tuple(elr),
        tuple(last),
    )
    return (_uuid(topic_id), index), partition


def _listeners(listeners: PMap[str, Endpoint]) -> tuple[Endpoint, ...]:
    return tuple(listeners[name] for name in sorted(listeners))


def _ranges(features: PMap[str, VersionRange]) -> tuple[tuple[str, int, int], ...]:
    return tuple((name, *features[name]) for name in sorted(features))


def _listeners_of(rows: Iterable[dict[str, Any]]) -> PMap[str, Endpoint]:
    return PMap({row["name"]: Endpoint(**row) for row in rows})


def _ranges_of(rows: Iterable[dict[str, Any]]) -> PMap[str, VersionRange]:
    return PMap({row["name"]: VersionRange(row["min"], row["max"]) for row in rows})


_uuid = lru_cache(100_000)(Uuid.parse)
uuid_text = lru_cache(100_000)(str)
"""`str` of a Uuid, cached: the same ids occur again and again."""


def _uuids(texts: Iterable[str]) -> tuple[Uuid, ...]:
    return tuple(map(_uuid, texts))


def broker_row(broker_id: int, broker: Broker) -> tuple[Any, ...]:
    cordoned = broker.cordoned_log_dirs
    return (
        broker_id,
        broker.epoch,
        str(broker.incarnation_id),
        broker.rack,
        broker.fenced,
        broker.in_controlled_shutdown,
        broker.is_migrating_zk_broker,
        _listeners(broker.listeners),
        _ranges(broker.features),
        tuple(map(str, broker.log_dirs)),
        None if cordoned is None else tuple(map(str, cordoned)),
    )


def broker_of(row: tuple[Any, ...]) -> tuple[int, Broker]:
    broker_id, epoch, incarnation, rack, fenced, leaving, migrating, listeners, features, dirs, cordoned = row
    broker = Broker(
        broker_id,
        epoch,
        Uuid.parse(incarnation),
        _listeners_of(listeners),
        _ranges_of(features),
        rack,
        fenced,
        leaving,
        migrating,
        _uuids(dirs),
        None if cordoned is None else _uuids(cordoned),
    )
    return broker_id, broker


def controller_row(controller_id: int, controller: Controller) -> tuple[Any, ...]:
    return (
        controller_id,
        str(controller.incarnation_id),
        controller.zk_migration_ready,
        _listeners(controller.listeners),
        _ranges(controller.features),
    )


def controller_of(row: tuple[Any, ...]) -> tuple[int, Controller]:
    controller_id, incarnation, ready, listeners, features = row
    controller = Controller(
        controller_id, Uuid.parse(incarnation), ready, _listeners_of(listeners), _ranges_of(features)
    )
    return controller_id, controller


def config_row(key: tuple[int, str, str], value: str) -> tuple[Any, ...]:
    return resource_type_name(key[0]), key[1], key[2], value


def config_of(row: tuple[Any, ...]) -> tuple[tuple[int, str, str], str]:
    kind, resource, name, value = row
    number = _RESOURCE_NUMBERS.get(kind)
    return (int(kind) if number is None else number, resource, name), value


def acl_row(acl_id: Uuid, entry: AclEntry) -> tuple[Any, ...]:
    return (
        str(acl_id),
        entry.resource_type.name,
        entry.resource_name,
        entry.pattern_type.name,
        entry.principal,
        entry.host,
        entry.operation.name,
        entry.permission.name,
    )


def acl_of(row: tuple[Any, ...]) -> tuple[Uuid, AclEntry]:
    acl_id, resource_type, resource_name, pattern, principal, host, operation, permission = row
    entry = AclEntry(
        code_of(ResourceType, resource_type),
        resource_name,
        code_of(PatternType, pattern),
        principal,
        host,
        code_of(AclOperation, operation),
        code_of(AclPermissionType, permission),
    )
    return Uuid.parse(acl_id), entry


def quota_row(key: tuple[QuotaEntity, str], value: float) -> tuple[Any, ...]:
    return key[0], key[1], value


def quota_of(row: tuple[Any, ...]) -> tuple[tuple[QuotaEntity, str], float]:
    entity, name, value = row
    return (tuple((part["type"], part["name"]) for part in entity), name), value


def user_row(user: ScramUser, credential: ScramCredential) -> tuple[Any, ...]:
    mechanism = SCRAM_MECHANISMS.get(user.mechanism) or str(user.mechanism)
    salt, stored_key, server_key, iterations = credential
    return user.name, mechanism, iterations, salt, stored_key, server_key


def user_of(row: tuple[Any, ...]) -> tuple[ScramUser, ScramCredential]:
    name, mechanism, iterations, salt, stored_key, server_key = row
    number = _MECHANISM_NUMBERS.get(mechanism)
    user = ScramUser(int(mechanism) if number is None else number, name)
    return user, ScramCredential(salt, stored_key, server_key, iterations)


def token_row(token_id: str, token: DelegationToken) -> tuple[Any, ...]:
    _, owner, requester, renewers, *times_ms = token
    return token_id, owner, requester, renewers, *(time_ms * 1000 for time_ms in times_ms)


def token_of(row: tuple[Any, ...]) -> tuple[str, DelegationToken]:
    token_id, owner, requester, renewers, *times_us = row
    return token_id, DelegationToken(token_id, owner, requester, tuple(renewers), *(us // 1000 for us in times_us))


def voter_row(key: tuple[int, Uuid], voter: Voter) -> tuple[Any, ...]:
    return key[0], str(key[1]), *voter


def voter_of(row: tuple[Any, ...]) -> tuple[tuple[int, Uuid], Voter]:
    voter_id, directory, endpoints, low, high = row
    return (voter_id, Uuid.parse(directory)), Voter(
        tuple((e["name"], e["host"], e["port"]) for e in endpoints), low, high
    )


class Form(NamedTuple):
    """Conversions for the facts of a kind: key to text, key and value to row, and row to key and value."""

    kind: Kind
    key_text: Callable[[Any], str]
    row: Callable[[Any, Any], tuple[Any, ...]]
    of_row: Callable[[tuple[Any, ...]], tuple[Any, Any]]


FORMS: Final = {
    form.kind.name: form
    for form in (
        Form(
            TOPICS,
            lambda key: key_text(str(key)),
            lambda key, name: (str(key), name),
            lambda r: (Uuid.parse(r[0]), r[1]),
        ),
        Form(CONFIGS, lambda key: key_text(resource_type_name(key[0]), *key[1:]), config_row, config_of),
        Form(ACLS, lambda key: key_text(str(key)), acl_row, acl_of),
        Form(BROKERS, key_text, broker_row, broker_of),
        Form(CONTROLLERS, key_text, controller_row, controller_of),
        Form(FEATURES, key_text, lambda key, level: (key, level), lambda row: row),
        Form(QUOTAS, lambda key: key_text(*(text for part in key[0] for text in part), key[1]), quota_row, quota_of),
        Form(USERS, lambda key: key_text(key.name, key.mechanism), user_row, user_of),
        Form(TOKENS, key_text, token_row, token_of),
        Form(
            PRODUCER_IDS,
            lambda key: key_text(),
            lambda key, block: tuple(block),
            lambda row: ((), ProducerIdBlock(*row)),
        ),
        Form(VOTERS, lambda key: key_text(key[0], str(key[1])), voter_row, voter_of),
        Form(
            LEADER_EPOCHS,
            lambda key: key_text(),
            lambda key, epoch: tuple(epoch),
            lambda row: ((), LeaderEpoch(row[0], row[1], tuple(row[2]), tuple(row[3]))),
        ),
    )
}
"""All kinds except partitions, whose rows also need the name of the topic."""
