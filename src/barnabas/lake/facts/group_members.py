"""Fields of groups and members from the records of a group, by the names of the columns of their facts. Pure.

A member consists of pieces from different records: its metadata, its target assignment, and its current assignment. Each piece
has its own fields; a tombstone leaves them null. The metadata creates the member: the other pieces wait for it.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Final

from barnabas.lake.facts.log_facts import known, time_us
from barnabas.lake.reading.decoding.coordinator_records import decode_member_bytes

Fields = dict[str, Any]

CLASSIC: Final = "classic"
CONSUMER: Final = "consumer"
SHARE: Final = "share"
STREAMS: Final = "streams"

_MEMBER_STATES: Final = {
    CONSUMER: {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"},
    SHARE: {0: "Stable", 1: "UnrevokedPartitions", 2: "UnreleasedPartitions"},
    STREAMS: {1: "Stable", 2: "UnrevokedTasks", 3: "UnreleasedTasks"},
}
_WHO: Final = (
    "instance_id",
    "rack_id",
    "client_id",
    "client_host",
    "rebalance_timeout_ms",
    "session_timeout_ms",
    "subscribed_topics",
    "subscribed_topic_regex",
    "server_assignor",
    "process_id",
    "topology_epoch",
)
_FIRST_EPOCH: Final = 1
_NO_EPOCH: Final = -1
_ROLES: Final = ("active", "standby", "warmup")


# --- classic groups --------------------------------------------------------------------------------------------------


def classic_group(value: Any) -> Fields:
    return {
        "group_type": CLASSIC,
        "protocol_type": value.protocol_type,
        "generation": value.generation,
        "protocol": value.protocol,
        "leader": value.leader,
        "state_time": time_us(value.current_state_timestamp),
    }


def classic_member(member: Any, protocol_type: str) -> Fields:
    is_consumer = protocol_type == "consumer"
    return {
        "group_type": CLASSIC,
        "instance_id": member.group_instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "rebalance_timeout_ms": known(member.rebalance_timeout),
        "session_timeout_ms": member.session_timeout,
        "subscribed_topics": _subscribed(member.subscription) if is_consumer else None,
        "assignment": _assigned(member.assignment) if is_consumer else None,
    }


@functools.lru_cache(maxsize=4096)
def _subscribed(data: bytes) -> tuple[str, ...] | None:
    opened = decode_member_bytes("subscription", data)
    return None if opened is None else tuple(sorted(opened.record.topics))


@functools.lru_cache(maxsize=4096)
def _assigned(data: bytes) -> tuple[Fields, ...] | None:
    opened = decode_member_bytes("assignment", data)
    if opened is None:
        return None
    topics = sorted(opened.record.assigned_partitions, key=lambda each: each.topic)
    return tuple(_partitions(each.partitions, topic=each.topic) for each in topics)


# --- the other groups ------------------------------------------------------------------------------------------------


def group(value: Any) -> Fields:
    return {
        "group_epoch": value.epoch,
        "metadata_hash": value.metadata_hash,
        "validated_topology_epoch": known(getattr(value, "validated_topology_epoch", -1)),
    }


def topology(value: Any | None) -> Fields:
    """Return the topics that a streams group reads, or keeps its state in."""
    if value is None:
        return {"topology_topics": None}
    names: set[str] = set()
    for each in value.subtopologies:
        names.update((*each.source_topics, *each.repartition_sink_topics))
        names.update(info.name for info in (*each.repartition_source_topics, *each.state_changelog_topics))
    return {"topology_topics": tuple(sorted(names))}


def target_assignment_metadata(value: Any | None) -> Fields:
    if value is None:
        return {"assignment_epoch": _NO_EPOCH, "assignment_time": None}
    time_ms = value.assignment_timestamp
    return {"assignment_epoch": value.assignment_epoch, "assignment_time": time_us(time_ms) if time_ms else None}


def member_metadata(value: Any | None) -> Fields:
    if value is None:
        return dict.fromkeys(_WHO)
    classic = getattr(value, "classic_member_metadata", None)
    topics = getattr(value, "subscribed_topic_names", None)
    return {
        "instance_id": getattr(value, "instance_id", None),
        "rack_id": value.rack_id,
        "client_id": value.client_id,
        "client_host": value.client_host,
        "rebalance_timeout_ms": known(getattr(value, "rebalance_timeout_ms", -1)),
        "session_timeout_ms": None if classic is None else classic.session_timeout_ms,
        "subscribed_topics": None if topics is None else tuple(sorted(topics)),
        "subscribed_topic_regex": getattr(value, "subscribed_topic_regex", None) or None,
        "server_assignor": getattr(value, "server_assignor", None),
        "process_id": getattr(value, "process_id", None),
        "topology_epoch": getattr(value, "topology_epoch", None),
    }


def target_assignment(group_type: str, value: Any | None) -> Fields:
    if group_type == STREAMS:
        return {"target_tasks": None if value is None else _tasks(value)}
    return {"target_assignment": None if value is None else _by_id(value.topic_partitions)}


def current_assignment(group_type: str, value: Any | None) -> Fields:
    fields: Fields = {
        "member_epoch": getattr(value, "member_epoch", None),
        "previous_member_epoch": getattr(value, "previous_member_epoch", None),
        "member_state": None if value is None else _MEMBER_STATES[group_type].get(value.state, str(value.state)),
    }
    if group_type == STREAMS:
        fields["tasks"] = None if value is None else _tasks(value)
        fields["pending_tasks"] = None if value is None else _tasks(value, "_pending_revocation")
    else:
        fields["assignment"] = None if value is None else _by_id(value.assigned_partitions)
        pending = getattr(value, "partitions_pending_revocation", None)
        fields["pending_revocation"] = None if pending is None else _by_id(pending)
    return fields


def _by_id(topics: Iterable[Any]) -> tuple[Fields, ...]:
    named = sorted((str(topic.topic_id), topic.partitions) for topic in topics)
    return tuple(_partitions(partitions, topic_id=topic_id) for topic_id, partitions in named)


def _partitions(numbers: Iterable[int], topic: str | None = None, topic_id: str | None = None) -> Fields:
    return {"topic": topic, "topic_id": topic_id, "partitions": tuple(sorted(numbers))}


def _tasks(value: Any, suffix: str = "") -> tuple[Fields, ...]:
    return tuple(
        {"role": role, "subtopology_id": subtopology_id, "partitions": tuple(sorted(partitions))}
        for role in _ROLES
        for subtopology_id, partitions in sorted(
            (tasks.subtopology_id, tasks.partitions) for tasks in getattr(value, f"{role}_tasks{suffix}")
        )
    )


# --- the state of a group --------------------------------------------------------------------------------------------


def group_state(fields: Fields, members: Iterable[Fields]) -> str:
    """Return the state of a group as its coordinator has it after replay. NotReady, of streams groups, is not in the log."""
    group_type, assignment_epoch = fields["group_type"], fields.get("assignment_epoch") or _FIRST_EPOCH
    visible = [member for member in members if member.get("client_id") is not None]
    if not visible:
        return "Empty"
    if group_type in (CLASSIC, SHARE):
        return "Stable"
    if (fields.get("group_epoch") or _FIRST_EPOCH) > assignment_epoch:
        return "Assigning"
    is_stable = all(
        member.get("member_state") in (None, "Stable") and (member.get("member_epoch") or 0) == assignment_epoch
        for member in visible
    )
    return "Stable" if is_stable else "Reconciling"
