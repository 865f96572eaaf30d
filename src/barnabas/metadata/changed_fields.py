"""Changes between two images field by field, as rows for programs, and which of them every restart makes. Pure.

Its one rule: a row has the fields of `barnabas plan`: action, kind, name, field, before and after. Field names are camel case.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, Final, NamedTuple

from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.changes import (
    AclAdded,
    AclRemoved,
    BrokerChanged,
    BrokerFenced,
    BrokerRegistered,
    BrokerUnfenced,
    BrokerUnregistered,
    Change,
    ConfigChanged,
    ControllerChanged,
    FeatureChanged,
    PartitionAdded,
    PartitionChanged,
    ProducerIdsChanged,
    QuotaChanged,
    ScramCredentialChanged,
    TokenChanged,
    TopicCreated,
    TopicDeleted,
)
from barnabas.metadata.scram import SCRAM_MECHANISMS
from barnabas.security.acl_text import entry_text
from barnabas.wire.primitives import Uuid

CREATE, ALTER, DELETE = "create", "alter", "delete"
_HIDDEN = "[hidden]"


class ChangedField(NamedTuple):
    """One field that changed. `before` and `after` are values that JSON has; None: absent. Without fields, `field` is None."""

    action: str
    kind: str
    name: str
    field: str | None = None
    before: Any = None
    after: Any = None


def changed_fields(change: Change) -> list[ChangedField]:
    """Return the fields that a change changes, at least one."""
    match change:
        case TopicCreated(topic):
            return [ChangedField(CREATE, "topic", topic.name, "partitions", None, len(topic.partitions))]
        case TopicDeleted(topic):
            return [ChangedField(DELETE, "topic", topic.name, "partitions", len(topic.partitions), None)]
        case PartitionAdded(topic, partition_id):
            replicas = list(topic.partitions[partition_id].replicas)
            return [ChangedField(CREATE, "partition", f"{topic.name}-{partition_id}", "replicas", None, replicas)]
        case PartitionChanged(topic, partition_id, before, after):
            return _altered("partition", f"{topic.name}-{partition_id}", before, after)
        case ConfigChanged(resource, name, before, after):
            return [_set(_type_text(resource.type), resource.name or "(default)", name, before, after)]
        case AclAdded(acl):
            return [ChangedField(CREATE, "acl", entry_text(acl))]
        case AclRemoved(acl):
            return [ChangedField(DELETE, "acl", entry_text(acl))]
        case BrokerRegistered(broker, None):
            return [ChangedField(CREATE, "broker", str(broker.broker_id), "epoch", None, broker.epoch)]
        case BrokerRegistered(broker, before):
            return _altered("broker", str(broker.broker_id), before, broker)
        case BrokerUnregistered(broker):
            return [ChangedField(DELETE, "broker", str(broker.broker_id), "epoch", broker.epoch, None)]
        case BrokerFenced(broker) | BrokerUnfenced(broker):
            return [ChangedField(ALTER, "broker", str(broker.broker_id), "fenced", not broker.fenced, broker.fenced)]
        case BrokerChanged(before, after):
            return _altered("broker", str(after.broker_id), before, after)
        case ControllerChanged(controller_id, before, after):
            return _record("controller", str(controller_id), before, after)
        case FeatureChanged(name, before, after):
            return [_set("feature", name, "level", before, after)]
        case QuotaChanged(entity, key, before, after):
            return [_set("quota", ", ".join(f"{of} {name or '(default)'}" for of, name in entity), key, before, after)]
        case ScramCredentialChanged(user, before, after):
            mechanism = SCRAM_MECHANISMS.get(user.mechanism, f"mechanism {user.mechanism}")
            if before == after:
                return [ChangedField(ALTER, "user", user.name, f"{mechanism} password", _HIDDEN, _HIDDEN)]
            return [_set("user", user.name, f"{mechanism} iterations", before, after)]
        case TokenChanged(before, after):
            token = after or before
            return _record("token", token.token_id if token else "", before, after)
        case ProducerIdsChanged(before, after):
            return [ChangedField(ALTER, "producer_ids", "next", "nextProducerId", before, after)]
    raise TypeError(f"{type(change).__name__} has no fields")


def _set(kind: str, name: str, field: str, before: Any, after: Any) -> ChangedField:
    """Return a row for a value that was set, changed or unset. The resource itself stays, so this is always `alter`."""
    return ChangedField(ALTER, kind, name, field, before, after)


def _record(kind: str, name: str, before: Any, after: Any) -> list[ChangedField]:
    """Return one row for a resource that appeared or disappeared, else one per field."""
    if before is None or after is None:
        return [ChangedField(CREATE if before is None else DELETE, kind, name)]
    return _altered(kind, name, before, after)


def _altered(kind: str, name: str, before: Any, after: Any) -> list[ChangedField]:
    return [
        ChangedField(ALTER, kind, name, _camel_case(field), _value(was), _value(now))
        for field, was, now in _differing(before, after)
    ]


def _differing(before: Any, after: Any) -> Iterator[tuple[str, Any, Any]]:
    return (each for each in zip(type(before)._fields, before, after, strict=True) if each[1] != each[2])


def _camel_case(name: str) -> str:
    """Return a name as Kafka's JSON writes it.

    >>> _camel_case("leader_epoch")
    'leaderEpoch'
    """
    return re.sub("_([a-z])", lambda found: found[1].upper(), name)


def _value(value: Any) -> Any:
    if value is None or isinstance(value, str | int | float):
        return value
    if isinstance(value, Uuid):
        return str(value)
    if hasattr(value, "_asdict"):
        return {_camel_case(name): _value(each) for name, each in value._asdict().items()}
    if isinstance(value, Mapping):
        return {str(key): _value(each) for key, each in sorted(value.items())}
    return [_value(each) for each in value]


def _type_text(resource_type: int) -> str:
    try:
        return ConfigResourceType(resource_type).name.lower().replace("_", "-")
    except ValueError:
        return f"resource type {resource_type}"


# --- changes that every restart makes

_RESTARTED_BROKER: Final = frozenset(("epoch", "incarnation_id", "in_controlled_shutdown"))
_RESTARTED_CONTROLLER: Final = frozenset(("incarnation_id",))
_LED_AGAIN: Final = frozenset(
    ("leader", "isr", "leader_recovery_state", "leader_epoch", "partition_epoch", "elr", "last_known_elr")
)


def is_routine(change: Change) -> bool:
    """Return whether a restart of nodes alone makes this change, and nothing is left to do after it.

    A broker that was fenced, and a partition that lost its leader or has other replicas in sync than all, are not routine.
    """
    match change:
        case BrokerRegistered(broker, before) if before is not None:
            return _only(_RESTARTED_BROKER, before, broker)
        case BrokerChanged(before, after):
            return _only(_RESTARTED_BROKER, before, after)
        case ControllerChanged(_, before, after) if before is not None and after is not None:
            return _only(_RESTARTED_CONTROLLER, before, after)
        case PartitionChanged(_, _, before, after):
            is_well = after.leader in after.isr and set(after.isr) == set(after.replicas)
            is_as_before = (after.leader, after.isr) == (before.leader, before.isr)
            return _only(_LED_AGAIN, before, after) and (is_well or is_as_before)
        case ProducerIdsChanged():
            return True
    return False


def _only(fields: frozenset[str], before: Any, after: Any) -> bool:
    return all(field in fields for field, _, _ in _differing(before, after))


_SUMMARIES: Final = {
    BrokerRegistered: ("broker registered again", "brokers registered again"),
    BrokerChanged: ("broker changed its state of shutdown", "brokers changed their state of shutdown"),
    ControllerChanged: ("controller registered again", "controllers registered again"),
    PartitionChanged: (
        "partition with another leader, epoch or order of in-sync replicas",
        "partitions with another leader, epoch or order of in-sync replicas",
    ),
    ProducerIdsChanged: ("new block of producer ids", "new blocks of producer ids"),
}


def summary(routine: list[Change]) -> str:
    """Return one line for changes that are routine, with their numbers by kind."""
    parts = []
    for kind, (one, many) in _SUMMARIES.items():
        if count := sum(type(each) is kind for each in routine):
            parts.append(f"{count:,} {one if count == 1 else many}")
    return ", ".join(parts)
