"""The records of streams groups, in the versions and the order in which Kafka writes them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from barnabas.groups.hash_tables import timeline_order
from barnabas.groups.streams.tasks import TaskEpochs, Tasks, TaskSets
from barnabas.groups.streams.topology import Topology
from barnabas.replicated.decision import KeyValue
from barnabas.wire import Message
from barnabas.wire.records.group import (
    StreamsGroupCurrentMemberAssignmentKey,
    StreamsGroupCurrentMemberAssignmentValue,
    StreamsGroupMemberMetadataKey,
    StreamsGroupMemberMetadataValue,
    StreamsGroupMetadataKey,
    StreamsGroupMetadataValue,
    StreamsGroupTargetAssignmentMemberKey,
    StreamsGroupTargetAssignmentMemberValue,
    StreamsGroupTargetAssignmentMetadataKey,
    StreamsGroupTargetAssignmentMetadataValue,
    StreamsGroupTopologyKey,
)

if TYPE_CHECKING:
    from barnabas.groups.streams.group import Member, StreamsGroup

Record = tuple[KeyValue, int]
VERSION = 0


def _record(key: Message, value: Message | None) -> Record:
    return KeyValue(key, value), VERSION


def member_record(group_id: str, member: Member) -> Record:
    metadata = StreamsGroupMemberMetadataValue
    endpoint = member.user_endpoint
    value = StreamsGroupMemberMetadataValue(
        instance_id=member.instance_id,
        rack_id=member.rack_id,
        client_id=member.client_id,
        client_host=member.client_host,
        rebalance_timeout_ms=member.rebalance_timeout_ms,
        topology_epoch=member.topology_epoch,
        process_id=member.process_id,
        user_endpoint=None if endpoint is None else metadata.Endpoint(host=endpoint.host, port=endpoint.port),
        client_tags=[metadata.KeyValue(key=key, value=tag) for key, tag in sorted(member.client_tags.items())],
    )
    return _record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member.member_id), value)


def member_tombstones(group_id: str, member_id: str) -> list[Record]:
    """Return the tombstones of all records of a member, in the order that replay needs."""
    return [make(group_id, member_id) for make in (_current_tombstone, _target_tombstone, _member_tombstone)]


def _member_tombstone(group_id: str, member_id: str) -> Record:
    return _record(StreamsGroupMemberMetadataKey(group_id=group_id, member_id=member_id), None)


def epoch_record(
    group_id: str,
    group_epoch: int,
    metadata_hash: int,
    validated_topology_epoch: int,
    assignment_configs: Mapping[str, str],
) -> Record:
    value = StreamsGroupMetadataValue(
        epoch=group_epoch,
        metadata_hash=metadata_hash,
        validated_topology_epoch=validated_topology_epoch,
        last_assignment_configs=[
            StreamsGroupMetadataValue.LastAssignmentConfig(key=key, value=text)
            for key, text in sorted(assignment_configs.items())
        ],
    )
    return _record(StreamsGroupMetadataKey(group_id=group_id), value)


def topology_record(group_id: str, topology: Topology) -> Record:
    return _record(StreamsGroupTopologyKey(group_id=group_id), topology.record_value())


def target_record(group_id: str, member_id: str, tasks: Tasks) -> Record:
    value = StreamsGroupTargetAssignmentMemberValue(
        active_tasks=_target_tasks(tasks.active),
        standby_tasks=_target_tasks(tasks.standby),
        warmup_tasks=_target_tasks(tasks.warmup),
    )
    return _record(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), value)


def _target_tasks(tasks: TaskSets) -> list[StreamsGroupTargetAssignmentMemberValue.TaskIds]:
    return [
        StreamsGroupTargetAssignmentMemberValue.TaskIds(subtopology_id=each, partitions=sorted(partitions))
        for each, partitions in sorted(tasks.items())
    ]


def _target_tombstone(group_id: str, member_id: str) -> Record:
    return _record(StreamsGroupTargetAssignmentMemberKey(group_id=group_id, member_id=member_id), None)


def target_epoch_record(group_id: str, assignment_epoch: int, timestamp_ms: int) -> Record:
    value = StreamsGroupTargetAssignmentMetadataValue(
        assignment_epoch=assignment_epoch, assignment_timestamp=timestamp_ms
    )
    return _record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), value)


def current_record(group_id: str, member: Member) -> Record:
    """Return the record of the current tasks and state of a member."""
    assigned, pending = member.assigned, member.pending_revocation
    value = StreamsGroupCurrentMemberAssignmentValue(
        member_epoch=member.member_epoch,
        previous_member_epoch=member.previous_member_epoch,
        state=member.state,
        active_tasks=_with_epochs(assigned.active),
        standby_tasks=_current_tasks(assigned.standby),
        warmup_tasks=_current_tasks(assigned.warmup),
        active_tasks_pending_revocation=_with_epochs(pending.active),
        standby_tasks_pending_revocation=_current_tasks(pending.standby),
        warmup_tasks_pending_revocation=_current_tasks(pending.warmup),
    )
    return _record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member.member_id), value)


def _current_tasks(tasks: TaskSets) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=each, partitions=sorted(partitions), assignment_epochs=[]
        )
        for each, partitions in sorted(tasks.items())
    ]


def _with_epochs(tasks: TaskEpochs) -> list[StreamsGroupCurrentMemberAssignmentValue.TaskIds]:
    return [
        StreamsGroupCurrentMemberAssignmentValue.TaskIds(
            subtopology_id=each,
            partitions=sorted(epochs),
            assignment_epochs=[epochs[partition] for partition in sorted(epochs)],
        )
        for each, epochs in sorted(tasks.items())
    ]


def _current_tombstone(group_id: str, member_id: str) -> Record:
    return _record(StreamsGroupCurrentMemberAssignmentKey(group_id=group_id, member_id=member_id), None)


def group_tombstones(group: StreamsGroup) -> list[Record]:
    """Return the tombstones of all records of a group."""
    group_id, member_ids = group.group_id, timeline_order(group.members)
    return [
        *(_current_tombstone(group_id, member_id) for member_id in member_ids),
        *(_target_tombstone(group_id, member_id) for member_id in member_ids),
        _record(StreamsGroupTargetAssignmentMetadataKey(group_id=group_id), None),
        *(_member_tombstone(group_id, member_id) for member_id in member_ids),
        _record(StreamsGroupMetadataKey(group_id=group_id), None),
        _record(StreamsGroupTopologyKey(group_id=group_id), None),
    ]
