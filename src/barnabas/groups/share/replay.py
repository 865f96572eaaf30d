"""Replay of the records of share groups. Each tombstone is handled on its own, as for consumer groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from barnabas.groups.assignors import Assignment
from barnabas.groups.consumer_group import LEAVE_EPOCH, NO_ASSIGNMENT_EPOCH, MemberState, assignment_bytes
from barnabas.groups.hash_tables import copied, number_hash, topic_order
from barnabas.groups.image import GroupsImage, RecordPosition, Replay
from barnabas.groups.share.group import (
    Member,
    ShareGroup,
    StatePartitions,
    TopicPartitions,
    with_member,
    without_member,
)
from barnabas.wire import Message, Uuid
from barnabas.wire.records.group import (
    ShareGroupCurrentMemberAssignmentKey,
    ShareGroupCurrentMemberAssignmentValue,
    ShareGroupMemberMetadataKey,
    ShareGroupMemberMetadataValue,
    ShareGroupMetadataKey,
    ShareGroupMetadataValue,
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    ShareGroupTargetAssignmentMemberKey,
    ShareGroupTargetAssignmentMemberValue,
    ShareGroupTargetAssignmentMetadataKey,
    ShareGroupTargetAssignmentMetadataValue,
)

Change = Callable[[ShareGroup, Any, Any], ShareGroup | None]
_KNOWN_STATES = (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)


def _replay(image: GroupsImage, key: Any, value: Any, place: RecordPosition) -> GroupsImage:
    known = image.groups.get(key.group_id)
    group = known if isinstance(known, ShareGroup) else None
    if group is None and value is None:
        return image
    changed = _CHANGES[type(key)](group or ShareGroup(key.group_id), key, value)
    if changed is None or group is None:
        return image.with_group(key.group_id, changed)
    return image.with_group(key.group_id, changed, _bytes_of(changed, key) - _bytes_of(group, key))


def _bytes_of(group: ShareGroup, key: Any) -> int:
    """The part of `group.held_bytes` that a record with this key may change."""
    if isinstance(key, ShareGroupMemberMetadataKey | ShareGroupCurrentMemberAssignmentKey):
        member = group.members.get(key.member_id)
        return 0 if member is None else member.held_bytes
    if isinstance(key, ShareGroupTargetAssignmentMemberKey):
        return assignment_bytes(group.target(key.member_id))
    if isinstance(key, ShareGroupStatePartitionMetadataKey):
        return 0 if group.state_partitions is None else group.state_partitions.held_bytes
    return 0


# --- one function for each type of record


def _group(group: ShareGroup, key: ShareGroupMetadataKey, value: ShareGroupMetadataValue | None) -> ShareGroup | None:
    return None if value is None else group._replace(group_epoch=value.epoch, metadata_hash=value.metadata_hash)


def _member(
    group: ShareGroup, key: ShareGroupMemberMetadataKey, value: ShareGroupMemberMetadataValue | None
) -> ShareGroup:
    if value is None:
        return without_member(group, key.member_id) if key.member_id in group.members else group
    member = (group.members.get(key.member_id) or Member(key.member_id))._replace(
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
    )
    return with_member(group, member)


def _target_epoch(
    group: ShareGroup,
    key: ShareGroupTargetAssignmentMetadataKey,
    value: ShareGroupTargetAssignmentMetadataValue | None,
) -> ShareGroup:
    if value is None:
        return group._replace(assignment_epoch=NO_ASSIGNMENT_EPOCH, assignment_timestamp_ms=0)
    return group._replace(assignment_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp)


def _target(
    group: ShareGroup, key: ShareGroupTargetAssignmentMemberKey, value: ShareGroupTargetAssignmentMemberValue | None
) -> ShareGroup:
    targets = group.target_assignment
    if value is not None:
        return group._replace(target_assignment=targets.set(key.member_id, _assignment(value.topic_partitions)))
    return group._replace(target_assignment=targets.delete(key.member_id)) if key.member_id in targets else group


def _current(
    group: ShareGroup,
    key: ShareGroupCurrentMemberAssignmentKey,
    value: ShareGroupCurrentMemberAssignmentValue | None,
) -> ShareGroup:
    member = group.members.get(key.member_id)
    if value is None:
        if member is None:
            return group
        gone = member._replace(member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={})
        return with_member(group, gone)
    return with_member(
        group,
        (member or Member(key.member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in _KNOWN_STATES else MemberState.UNKNOWN,
            assigned=_assignment(value.assigned_partitions),
        ),
    )


def _assignment(topics: Iterable[Any]) -> Assignment:
    found: dict[Uuid, tuple[int, ...]] = {
        topic.topic_id: tuple(copied(number_hash, topic.partitions)) for topic in topics
    }
    return {topic_id: found[topic_id] for topic_id in topic_order(found)}


def _state_partitions(
    group: ShareGroup,
    key: ShareGroupStatePartitionMetadataKey,
    value: ShareGroupStatePartitionMetadataValue | None,
) -> ShareGroup:
    if value is None:
        return group._replace(state_partitions=None)
    return group._replace(
        state_partitions=StatePartitions(
            _topics(value.initializing_topics),
            _topics(value.initialized_topics),
            frozenset(topic.topic_id for topic in value.deleting_topics),
        )
    )


def _topics(rows: Iterable[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]) -> dict[Uuid, TopicPartitions]:
    return {row.topic_id: TopicPartitions(row.topic_name, frozenset(row.partitions)) for row in rows}


_CHANGES: dict[type[Message], Change] = {
    ShareGroupMetadataKey: _group,
    ShareGroupMemberMetadataKey: _member,
    ShareGroupTargetAssignmentMetadataKey: _target_epoch,
    ShareGroupTargetAssignmentMemberKey: _target,
    ShareGroupCurrentMemberAssignmentKey: _current,
    ShareGroupStatePartitionMetadataKey: _state_partitions,
}
REPLAY: dict[type[Message], Replay] = dict.fromkeys(_CHANGES, _replay)
