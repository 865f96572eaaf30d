"""Replay of the records of consumer groups.

Kafka writes the tombstones of a member in a fixed order. Replay handles each of them on its own, so that it can read
what compaction left of a log. A record of a consumer group replaces a classic group of the same name.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.groups.consumer_group import (
    LEAVE_EPOCH,
    NO_ASSIGNMENT_EPOCH,
    ClassicMetadata,
    ConsumerGroup,
    Member,
    MemberState,
    PartitionEpochs,
    assignment_bytes,
    expression_bytes,
    with_member_in_slices,
    with_regular_expression_in_slices,
    without_member_in_slices,
)
from barnabas.groups.hash_tables import HashTable, copied, number_hash, topic_order_in_slices
from barnabas.groups.image import GroupsImage, RecordPosition, Replay
from barnabas.groups.regular_expressions import ResolvedRegularExpression
from barnabas.steps import Slices, at_once, result_of, stepwise
from barnabas.wire import Message, Uuid
from barnabas.wire.records.group import (
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupPartitionMetadataKey,
    ConsumerGroupPartitionMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMemberKey,
    ConsumerGroupTargetAssignmentMemberValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)

Change = Callable[[ConsumerGroup, Any, Any], ConsumerGroup | Slices[ConsumerGroup] | None]


def replayed(group: ConsumerGroup | None, key: Any, value: Any) -> ConsumerGroup | None:
    """Return a group after one of its records, or None if it does not exist then."""
    return at_once(_replayed(group, key, value))


def _replayed(group: ConsumerGroup | None, key: Any, value: Any) -> Slices[ConsumerGroup | None]:
    if group is None:
        if value is None:
            return None
        group = ConsumerGroup(key.group_id)
    return (yield from result_of(_CHANGES[type(key)](group, key, value)))


def _replay(image: GroupsImage, key: Any, value: Any, place: RecordPosition) -> Slices[GroupsImage]:
    known = image.groups.get(key.group_id)
    group = known if isinstance(known, ConsumerGroup) else None
    changed = yield from _replayed(group, key, value)
    if changed is None:
        return image if group is None else image.with_group(key.group_id, None)
    if group is None:
        return image.with_group(key.group_id, changed)
    return image.with_group(key.group_id, changed, _bytes_of(changed, key) - _bytes_of(group, key))


def _bytes_of(group: ConsumerGroup, key: Any) -> int:
    """The part of `group.held_bytes` that a record with this key may change."""
    if isinstance(key, ConsumerGroupMemberMetadataKey | ConsumerGroupCurrentMemberAssignmentKey):
        member = group.members.get(key.member_id)
        return 0 if member is None else member.held_bytes
    if isinstance(key, ConsumerGroupTargetAssignmentMemberKey):
        return assignment_bytes(group.target_assignment.get(key.member_id, {}))
    if isinstance(key, ConsumerGroupRegularExpressionKey):
        return expression_bytes(key.regular_expression, group.regular_expressions.get(key.regular_expression))
    return 0


# --- one function for each type of record


def _group(
    group: ConsumerGroup, key: ConsumerGroupMetadataKey, value: ConsumerGroupMetadataValue | None
) -> ConsumerGroup | None:
    return None if value is None else group._replace(group_epoch=value.epoch, metadata_hash=value.metadata_hash)


def _subscription_metadata(
    group: ConsumerGroup, key: ConsumerGroupPartitionMetadataKey, value: ConsumerGroupPartitionMetadataValue | None
) -> ConsumerGroup:
    return group._replace(has_subscription_metadata=value is not None)


def _member(
    group: ConsumerGroup, key: ConsumerGroupMemberMetadataKey, value: ConsumerGroupMemberMetadataValue | None
) -> Slices[ConsumerGroup]:
    if value is None:
        known = key.member_id in group.members
        return (yield from without_member_in_slices(group, key.member_id)) if known else group
    classic = value.classic_member_metadata
    member = (group.members.get(key.member_id) or Member(key.member_id))._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        subscribed_topic_names=frozenset(value.subscribed_topic_names),
        subscribed_topic_regex=value.subscribed_topic_regex,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        server_assignor=value.server_assignor,
        classic=None
        if classic is None
        else ClassicMetadata(
            classic.session_timeout_ms,
            tuple((protocol.name, protocol.metadata) for protocol in classic.supported_protocols),
        ),
    )
    return (yield from with_member_in_slices(group, member))


def _target_epoch(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMetadataKey,
    value: ConsumerGroupTargetAssignmentMetadataValue | None,
) -> ConsumerGroup:
    if value is None:
        return group._replace(assignment_epoch=NO_ASSIGNMENT_EPOCH, assignment_timestamp_ms=0)
    return group._replace(assignment_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp)


def _target(
    group: ConsumerGroup,
    key: ConsumerGroupTargetAssignmentMemberKey,
    value: ConsumerGroupTargetAssignmentMemberValue | None,
) -> Slices[ConsumerGroup]:
    targets = group.target_assignment
    if value is not None:
        found: dict[Uuid, tuple[int, ...]] = {}
        for some in stepwise(value.topic_partitions):
            found |= ((topic.topic_id, tuple(copied(number_hash, topic.partitions))) for topic in some)
            yield
        assignment = {topic_id: found[topic_id] for topic_id in (yield from topic_order_in_slices(found))}
        return group._replace(target_assignment=targets.set(key.member_id, assignment))
    return group._replace(target_assignment=targets.delete(key.member_id)) if key.member_id in targets else group


def _current(
    group: ConsumerGroup,
    key: ConsumerGroupCurrentMemberAssignmentKey,
    value: ConsumerGroupCurrentMemberAssignmentValue | None,
) -> Slices[ConsumerGroup]:
    member = group.members.get(key.member_id)
    if value is None:
        if member is None:
            return group
        gone = member._replace(
            member_epoch=LEAVE_EPOCH, previous_member_epoch=LEAVE_EPOCH, assigned={}, pending_revocation={}
        )
        return (yield from with_member_in_slices(group, gone))
    known_states = (MemberState.STABLE, MemberState.UNREVOKED_PARTITIONS, MemberState.UNRELEASED_PARTITIONS)
    current = (member or Member(key.member_id))._replace(
        member_epoch=value.member_epoch,
        previous_member_epoch=value.previous_member_epoch,
        state=MemberState(value.state) if value.state in known_states else MemberState.UNKNOWN,
        assigned=(yield from _partition_epochs(value.assigned_partitions, value.member_epoch)),
        pending_revocation=(yield from _partition_epochs(value.partitions_pending_revocation, value.member_epoch)),
    )
    return (yield from with_member_in_slices(group, current))


def _partition_epochs(
    topics: list[ConsumerGroupCurrentMemberAssignmentValue.TopicPartitions], member_epoch: int
) -> Slices[PartitionEpochs]:
    found = {}
    for topic in topics:
        yield
        epochs = topic.assignment_epochs
        if epochs is None or len(epochs) != len(topic.partitions):
            epochs = [max(member_epoch, 0)] * len(topic.partitions)  # records before Kafka 4.3 have no epochs
        by_partition = dict(zip(topic.partitions, epochs, strict=True))
        order = HashTable(number_hash, members=topic.partitions)
        found[topic.topic_id] = {partition: by_partition[partition] for partition in order}
    return {topic_id: found[topic_id] for topic_id in (yield from topic_order_in_slices(found))}


def _regular_expression(
    group: ConsumerGroup,
    key: ConsumerGroupRegularExpressionKey,
    value: ConsumerGroupRegularExpressionValue | None,
) -> Slices[ConsumerGroup]:
    resolved = (
        None if value is None else ResolvedRegularExpression(frozenset(value.topics), value.version, value.timestamp)
    )
    return (yield from with_regular_expression_in_slices(group, key.regular_expression, resolved))


_CHANGES: dict[type[Message], Change] = {
    ConsumerGroupMetadataKey: _group,
    ConsumerGroupPartitionMetadataKey: _subscription_metadata,
    ConsumerGroupMemberMetadataKey: _member,
    ConsumerGroupTargetAssignmentMetadataKey: _target_epoch,
    ConsumerGroupTargetAssignmentMemberKey: _target,
    ConsumerGroupCurrentMemberAssignmentKey: _current,
    ConsumerGroupRegularExpressionKey: _regular_expression,
}
REPLAY: dict[type[Message], Replay] = dict.fromkeys(_CHANGES, _replay)
