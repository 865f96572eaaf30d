"""The target assignment of a group: the partitions that each member should have in an epoch. An assignor computes it.

Changed assignments are written first, then the epoch, so that a partly written assignment does not count as the next
one.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from barnabas.config.hash_order import text_hash
from barnabas.groups.assignors import ASSIGNORS, Assignment, AssignorError, GroupSpecification, MemberSpecification
from barnabas.groups.consumer_group import ConsumerGroup, Member
from barnabas.groups.consumer_records import Record, target_epoch_record, target_record_in_slices
from barnabas.groups.hash_tables import (
    HashTable,
    name_order_in_slices,
    room_for,
    timeline_order,
    timeline_order_in_slices,
)
from barnabas.metadata.topics import Topics
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError, Uuid


class NewTarget(NamedTuple):
    records: list[Record]
    assignments: Mapping[str, Assignment]


def assign(
    group: ConsumerGroup,
    updated: Member,
    group_epoch: int,
    assignor: str,
    topics: Topics,
    now_ms: int,
    *,
    is_homogeneous: bool,
) -> Slices[NewTarget]:
    """Return a new target for the group with a new or changed member.

    Raises UNKNOWN_SERVER_ERROR if the assignor fails.
    """
    members = yield from _members(group, updated)
    specification = yield from _specification(group, members, topics, is_homogeneous=is_homogeneous)
    try:
        assignments = yield from ASSIGNORS[assignor](specification)
    except AssignorError as error:
        message = f"Failed to compute a new target assignment for epoch {group_epoch}: {error}"
        raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, message) from error
    records = []
    for member_id in members:
        yield
        before, after = group.target_assignment.get(member_id), assignments.get(member_id, {})
        if before is None or not (yield from _same(before, after)):
            records.append((yield from target_record_in_slices(group.group_id, member_id, after)))
    records.append(target_epoch_record(group.group_id, group_epoch, now_ms))
    return NewTarget(records, assignments)


def preferred_assignor(group: ConsumerGroup, old: Member | None = None, new: Member | None = None) -> str | None:
    """Return the assignor that most members prefer after the change of one member.

    If several have the same number of members, the first one in Kafka's table is returned; None if no member has one.
    """
    counts: dict[str, int] = {}
    for member in group.members.values():
        if member.server_assignor is not None:
            counts[member.server_assignor] = counts.get(member.server_assignor, 0) + 1
    names = timeline_order(counts)
    if old is None and new is None:
        return max(names, key=counts.__getitem__, default=None)
    table = HashTable(text_hash, room_for(len(names)), names)
    if old is not None and old.server_assignor in counts:
        counts[old.server_assignor] -= 1
        if not counts[old.server_assignor]:
            table.remove(old.server_assignor)
    if new is not None and new.server_assignor is not None:
        counts[new.server_assignor] = counts.get(new.server_assignor, 0) + 1
        table.compute(new.server_assignor)
    return max(table, key=counts.__getitem__, default=None)


def _members(group: ConsumerGroup, updated: Member) -> Slices[dict[str, Member]]:
    """Return all members with `updated`, in the order of Kafka's table. A static member replaces its instance."""
    table = HashTable(text_hash, members=(yield from timeline_order_in_slices(group.members)))
    table.add(updated.member_id)
    replaced = None if updated.instance_id is None else group.static_members.get(updated.instance_id)
    if replaced is not None and replaced != updated.member_id:
        table.remove(replaced)
    order = yield from table.in_order()
    return {member_id: updated if member_id == updated.member_id else group.members[member_id] for member_id in order}


def _specification(
    group: ConsumerGroup, members: Mapping[str, Member], topics: Topics, *, is_homogeneous: bool
) -> Slices[GroupSpecification]:
    known_ids: dict[frozenset[str], Sequence[Uuid]] = {}

    def partition_count(topic_id: Uuid) -> int | None:
        topic = topics.by_id.get(topic_id)
        return None if topic is None else len(topic.partitions)

    assigned: set[tuple[Uuid, int]] = set()
    for assignment in group.target_assignment.values():
        for some in stepwise((topic_id, each) for topic_id, partitions in assignment.items() for each in partitions):
            assigned.update(some)
            yield
    specifications: dict[str, MemberSpecification] = {}
    for member_id, member in members.items():
        yield
        names = group.topics_of(member)
        if names not in known_ids:
            order = yield from name_order_in_slices(sorted(names))
            known_ids[names] = [topics.ids[name] for name in order if name in topics.ids]
        target = group.target(member_id)
        if not target and member_id not in group.members:
            target = group.target(member_id, member.instance_id)
        specifications[member_id] = MemberSpecification(member.instance_id, known_ids[names], target, len(names))
    return GroupSpecification(
        specifications,
        is_homogeneous,
        lambda topic_id, partition: (topic_id, partition) in assigned,
        partition_count,
    )


def _same(before: Assignment, after: Assignment) -> Slices[bool]:
    if before.keys() != after.keys():
        return False
    for some in stepwise(before):
        if any(set(before[topic]) != set(after[topic]) for topic in some):
            return False
        yield
    return True
