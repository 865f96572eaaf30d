"""The records of share groups, in the versions and the order in which Kafka writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.groups.assignors import Assignment
from barnabas.groups.hash_tables import copied, number_hash, timeline_order, topic_order
from barnabas.replicated.decision import KeyValue
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

if TYPE_CHECKING:
    from barnabas.groups.share.group import Member, ShareGroup, StateTopics

Record = tuple[KeyValue, int]
VERSION = 0


def _record(key: Message, value: Message | None) -> Record:
    return KeyValue(key, value), VERSION


def member_record(group_id: str, member: Member) -> Record:
    """Return the record of the identity and subscription of a member."""
    value = ShareGroupMemberMetadataValue(
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
    )
    return _record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of all records of a member, in the order that replay needs."""
    return [make(group_id, member_id) for make in (_current_tombstone, _target_tombstone, _member_tombstone)]


def _member_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ShareGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Record:
    value = ShareGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return _record(ShareGroupMetadataKey(group_id=group_id), value)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> Record:
    value = ShareGroupTargetAssignmentMemberValue(
        topic_partitions=[
            ShareGroupTargetAssignmentMemberValue.TopicPartition(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in assignment.items()
        ]
    )
    return _record(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def _target_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ShareGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    value = ShareGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return _record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> Record:
    """Return the record of the current assignment of a member."""
    value = ShareGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=[
            ShareGroupCurrentMemberAssignmentValue.TopicPartitions(topic_id=topic_id, partitions=list(partitions))
            for topic_id, partitions in member.assigned.items()
        ],
    )
    return _record(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _current_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ShareGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def state_partitions_record(
    group_id: str, initializing: StateTopics, initialized: StateTopics, deleting: Mapping[Uuid, str]
) -> Record:
    """Return the record of the share partitions that have a state. `deleting` are names by topic id."""
    value = ShareGroupStatePartitionMetadataValue(
        initializing_topics=_topics(initializing),
        initialized_topics=_topics(initialized),
        deleting_topics=[
            ShareGroupStatePartitionMetadataValue.TopicInfo(topic_id=topic_id, topic_name=deleting[topic_id])
            for topic_id in topic_order(deleting)
        ],
    )
    return _record(ShareGroupStatePartitionMetadataKey(group_id=group_id), value)


def _topics(topics: StateTopics) -> list[ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo]:
    return [
        ShareGroupStatePartitionMetadataValue.TopicPartitionsInfo(
            topic_id=topic_id,
            topic_name=topics[topic_id].name,
            partitions=list(copied(number_hash, sorted(topics[topic_id].partitions))),
        )
        for topic_id in topic_order(topics)
    ]


def group_tombstones(group: ShareGroup) -> list[Record]:
    """Return the tombstones of all records of a group."""
    group_id, member_ids = group.group_id, timeline_order(group.members)
    return [
        *(_current_tombstone(group_id, member_id) for member_id in member_ids),
        *(_target_tombstone(group_id, member_id) for member_id in member_ids),
        _record(ShareGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in member_ids),
        _record(ShareGroupStatePartitionMetadataKey(group_id=group_id), None),
        _record(ShareGroupMetadataKey(group_id=group_id), None),
    ]
