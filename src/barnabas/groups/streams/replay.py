"""Replay of the records of streams groups. Each tombstone is handled on its own, as for consumer groups."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from barnabas.groups.consumer_group import LEAVE_EPOCH, NO_ASSIGNMENT_EPOCH
from barnabas.groups.image import GroupsImage, RecordPosition, Replay
from barnabas.groups.streams.group import Endpoint, Member, MemberState, StreamsGroup, with_member, without_member
from barnabas.groups.streams.tasks import NO_TARGET, NOTHING_OWNED, AssignedTasks, Tasks, task_sets
from barnabas.groups.streams.topology import topology_of_record
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
    StreamsGroupTopologyValue,
)

Change = Callable[[StreamsGroup, Any, Any], StreamsGroup | None]
_KNOWN_STATES = (MemberState.STABLE, MemberState.UNREVOKED_TASKS, MemberState.UNRELEASED_TASKS)


def _replay(image: GroupsImage, key: Any, value: Any, place: RecordPosition) -> GroupsImage:
    known = image.groups.get(key.group_id)
    group = known if isinstance(known, StreamsGroup) else None
    if group is None and value is None:
        return image
    changed = _CHANGES[type(key)](group or StreamsGroup(key.group_id), key, value)
    if changed is None or group is None:
        return image.with_group(key.group_id, changed)
    return image.with_group(key.group_id, changed, _bytes_of(changed, key) - _bytes_of(group, key))


def _bytes_of(group: StreamsGroup, key: Any) -> int:
    """The part of `group.held_bytes` that a record with this key may change."""
    if isinstance(key, StreamsGroupMemberMetadataKey | StreamsGroupCurrentMemberAssignmentKey):
        member = group.members.get(key.member_id)
        return 0 if member is None else member.held_bytes
    if isinstance(key, StreamsGroupTargetAssignmentMemberKey):
        return group.target_assignment.get(key.member_id, NO_TARGET).held_bytes
    if isinstance(key, StreamsGroupTopologyKey):
        return 0 if group.topology is None else group.topology.held_bytes
    return 0


# --- one function for each type of record


def _group(
    group: StreamsGroup, key: StreamsGroupMetadataKey, value: StreamsGroupMetadataValue | None
) -> StreamsGroup | None:
    if value is None:
        return None
    return group._replace(
        group_epoch=value.epoch,
        metadata_hash=value.metadata_hash,
        validated_topology_epoch=value.validated_topology_epoch,
        assignment_configs={config.key: config.value for config in value.last_assignment_configs or ()},
    )


def _topology(
    group: StreamsGroup, key: StreamsGroupTopologyKey, value: StreamsGroupTopologyValue | None
) -> StreamsGroup:
    return group._replace(topology=None if value is None else topology_of_record(value))


def _member(
    group: StreamsGroup, key: StreamsGroupMemberMetadataKey, value: StreamsGroupMemberMetadataValue | None
) -> StreamsGroup:
    if value is None:
        return without_member(group, key.member_id) if key.member_id in group.members else group
    endpoint = value.user_endpoint
    member = (group.members.get(key.member_id) or Member(key.member_id))._replace(
        instance_id=value.instance_id,
        rack_id=value.rack_id,
        client_id=value.client_id,
        client_host=value.client_host,
        rebalance_timeout_ms=value.rebalance_timeout_ms,
        topology_epoch=value.topology_epoch,
        process_id=value.process_id,
        user_endpoint=None if endpoint is None else Endpoint(endpoint.host, endpoint.port),
        client_tags={tag.key: tag.value for tag in value.client_tags},
    )
    return with_member(group, member)


def _target_epoch(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMetadataKey,
    value: StreamsGroupTargetAssignmentMetadataValue | None,
) -> StreamsGroup:
    if value is None:
        return group._replace(assignment_epoch=NO_ASSIGNMENT_EPOCH, assignment_timestamp_ms=0)
    return group._replace(assignment_epoch=value.assignment_epoch, assignment_timestamp_ms=value.assignment_timestamp)


def _target(
    group: StreamsGroup,
    key: StreamsGroupTargetAssignmentMemberKey,
    value: StreamsGroupTargetAssignmentMemberValue | None,
) -> StreamsGroup:
    targets = group.target_assignment
    if value is not None:
        tasks = Tasks(task_sets(value.active_tasks), task_sets(value.standby_tasks), task_sets(value.warmup_tasks))
        return group._replace(target_assignment=targets.set(key.member_id, tasks))
    return group._replace(target_assignment=targets.delete(key.member_id)) if key.member_id in targets else group


def _current(
    group: StreamsGroup,
    key: StreamsGroupCurrentMemberAssignmentKey,
    value: StreamsGroupCurrentMemberAssignmentValue | None,
) -> StreamsGroup:
    member = group.members.get(key.member_id)
    if value is None:
        if member is None:
            return group
        gone = member._replace(
            member_epoch=LEAVE_EPOCH,
            previous_member_epoch=LEAVE_EPOCH,
            assigned=NOTHING_OWNED,
            pending_revocation=NOTHING_OWNED,
        )
        return with_member(group, gone)
    return with_member(
        group,
        (member or Member(key.member_id))._replace(
            member_epoch=value.member_epoch,
            previous_member_epoch=value.previous_member_epoch,
            state=MemberState(value.state) if value.state in _KNOWN_STATES else MemberState.UNKNOWN,
            assigned=AssignedTasks(
                _task_epochs(value.active_tasks, value.member_epoch),
                task_sets(value.standby_tasks),
                task_sets(value.warmup_tasks),
            ),
            pending_revocation=AssignedTasks(
                _task_epochs(value.active_tasks_pending_revocation, value.member_epoch),
                task_sets(value.standby_tasks_pending_revocation),
                task_sets(value.warmup_tasks_pending_revocation),
            ),
        ),
    )


def _task_epochs(
    rows: list[StreamsGroupCurrentMemberAssignmentValue.TaskIds], member_epoch: int
) -> dict[str, dict[int, int]]:
    found = {}
    for row in rows:
        epochs = row.assignment_epochs
        if epochs is None or len(epochs) != len(row.partitions):
            epochs = [member_epoch] * len(row.partitions)  # records of earlier versions have no epochs
        found[row.subtopology_id] = dict(zip(row.partitions, epochs, strict=True))
    return found


_CHANGES: dict[type[Message], Change] = {
    StreamsGroupMetadataKey: _group,
    StreamsGroupTopologyKey: _topology,
    StreamsGroupMemberMetadataKey: _member,
    StreamsGroupTargetAssignmentMetadataKey: _target_epoch,
    StreamsGroupTargetAssignmentMemberKey: _target,
    StreamsGroupCurrentMemberAssignmentKey: _current,
}
REPLAY: dict[type[Message], Replay] = dict.fromkeys(_CHANGES, _replay)
