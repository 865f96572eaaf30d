"""The records of consumer groups, in the versions and the order in which Kafka writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.groups.assignors import Assignment
from barnabas.groups.hash_tables import timeline_order, timeline_order_in_slices
from barnabas.groups.regular_expressions import ResolvedRegularExpression
from barnabas.replicated.decision import KeyValue
from barnabas.steps import Slices, at_once, mapped, stepwise
from barnabas.wire import Message
from barnabas.wire.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

if TYPE_CHECKING:
    from barnabas.groups.consumer_group import ConsumerGroup, Member, PartitionEpochs

Record = tuple[KeyValue, int]
VERSION = 0


def _record(key: Message, value: Message | None) -> Record:
    return KeyValue(key, value), VERSION


def member_record(group_id: str, member: Member) -> Record:
    """Return the record of the identity and subscription of a member."""
    classic = member.classic
    metadata = ConsumerGroupMemberMetadataValue
    value = ConsumerGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        subscribed_topic_names=sorted(member.subscribed_topic_names),
        subscribed_topic_regex=member.subscribed_topic_regex,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        server_assignor=member.server_assignor,
        classic_member_metadata=None
        if classic is None
        else metadata.ClassicMemberMetadata(
            session_timeout_ms=classic.session_timeout_ms,
            supported_protocols=[
                metadata.ClassicProtocol(name=name, metadata=content) for name, content in classic.protocols
            ],
        ),
    )
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of all records of a member, in the order that replay needs."""
    return [make(group_id, member_id) for make in (_current_tombstone, _target_tombstone, _member_tombstone)]


def _member_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ConsumerGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def epoch_record(group_id: str, group_epoch: int, metadata_hash: int) -> Record:
    value = ConsumerGroupMetadataValue(epoch=group_epoch, metadata_hash=metadata_hash)
    return _record(ConsumerGroupMetadataKey(group_id=group_id), value)


def subscription_metadata_tombstone(group_id: str) -> Record:
    return _record(ConsumerGroupPartitionMetadataKey(group_id=group_id), None)


def target_record(group_id: str, member_id: str, assignment: Assignment) -> Record:
    """Return the record of the target assignment of a member, in the order of the assignor."""
    return at_once(target_record_in_slices(group_id, member_id, assignment))


def target_record_in_slices(group_id: str, member_id: str, assignment: Assignment) -> Slices[Record]:
    """Return `target_record`."""
    row = ConsumerGroupTargetAssignmentMemberValue.TopicPartition
    topics = []
    for some in stepwise(assignment.items()):
        yield
        topics += [row(topic_id=topic_id, partitions=list(partitions)) for topic_id, partitions in some]
    key = ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id)
    return _record(key, ConsumerGroupTargetAssignmentMemberValue(topic_partitions=topics))


def _target_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ConsumerGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    value = ConsumerGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> Record:
    """Return the record of the current assignment and state of a member."""
    return at_once(current_record_in_slices(group_id, member))


def current_record_in_slices(group_id: str, member: Member) -> Slices[Record]:
    """Return `current_record`."""
    value = ConsumerGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        assigned_partitions=(yield from _with_epochs(member.assigned)),
        partitions_pending_revocation=(yield from _with_epochs(member.pending_revocation)),
    )
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _with_epochs(
    partitions: PartitionEpochs,
) -> Slices[list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions]]:
    row = ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions
    rows = []
    for some in stepwise(partitions.items()):
        yield
        rows += [
            row(topic_id=topic_id, partitions=list(epochs), assignment_epochs=list(epochs.values()))
            for topic_id, epochs in some
        ]
    return rows


def _current_tombstone(group_id: str, member_id: str) -> Record:
    return _record(ConsumerGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def regular_expression_record(group_id: str, pattern: str, resolved: ResolvedRegularExpression) -> Record:
    value = ConsumerGroupRegularExpressionValue(
        topics=sorted(resolved.topics), version=resolved.version, timestamp=resolved.timestamp_ms
    )
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), value)


def regular_expression_tombstone(group_id: str, pattern: str) -> Record:
    return _record(ConsumerGroupRegularExpressionKey(group_id=group_id, regular_expression=pattern), None)


def group_tombstones(group: ConsumerGroup, renamed: Mapping[str, str] | None = None) -> list[Record]:
    """Return the tombstones of all records of a group. Members that earlier records `renamed` have their new ids."""
    group_id = group.group_id
    member_ids = [(renamed or {}).get(member_id, member_id) for member_id in timeline_order(group.members)]
    return [
        *(_current_tombstone(group_id, member_id) for member_id in member_ids),
        *(_target_tombstone(group_id, member_id) for member_id in member_ids),
        _record(ConsumerGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in member_ids),
        *(regular_expression_tombstone(group_id, pattern) for pattern in timeline_order(group.regular_expressions)),
        subscription_metadata_tombstone(group_id),
        _record(ConsumerGroupMetadataKey(group_id=group_id), None),
    ]


def group_records(group: ConsumerGroup) -> list[Record]:
    """Return all records of a new group."""
    return at_once(group_records_in_slices(group))


def group_records_in_slices(group: ConsumerGroup) -> Slices[list[Record]]:
    """Return `group_records`."""
    group_id = group.group_id
    members = [group.members[member_id] for member_id in (yield from timeline_order_in_slices(group.members))]
    records = yield from mapped(lambda member: member_record(group_id, member), members)
    records.append(epoch_record(group_id, group.group_epoch, group.metadata_hash))
    for member in members:
        target = group.target(member.member_id)
        records.append((yield from target_record_in_slices(group_id, member.member_id, target)))
    records.append(target_epoch_record(group_id, group.assignment_epoch, group.assignment_timestamp_ms))
    for member in members:
        records.append((yield from current_record_in_slices(group_id, member)))
    return records
