"""The range assignor: each topic is divided into ranges of partitions, one per member in sorted order.

So a member gets the same partitions of topics that have the same number of them. Not sticky: the last assignment is
ignored. Static members come first, sorted by instance id.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from barnabas.groups.assignors.specification import Assignment, AssignorError, GroupSpecification
from barnabas.groups.hash_tables import HashTable, room_for, uuid_hash
from barnabas.steps import Slices, stepwise
from barnabas.wire import Uuid


def assign(group: GroupSpecification) -> Slices[dict[str, Assignment]]:
    if not group.members:
        return {}
    member_ids = sorted(group.members, key=lambda member_id: _sort_key(group.members[member_id].instance_id, member_id))
    topics: dict[Uuid, _Ranges] = {}
    if group.is_homogeneous:
        topic_ids = group.members[member_ids[0]].topic_ids
        for some in stepwise(topic_ids):
            topics |= {topic_id: _Ranges(_count(group, topic_id), len(member_ids)) for topic_id in some}
            yield
    else:
        for member_id in member_ids:
            for some in stepwise(group.members[member_id].topic_ids):
                yield
                for topic_id in some:
                    if topic_id not in topics:
                        topics[topic_id] = _Ranges(_count(group, topic_id), 0)
                    topics[topic_id].member_count += 1
    assignments: dict[str, dict[Uuid, Sequence[int]]] = {}
    for member_id in member_ids:
        member = group.members[member_id]
        ranges: dict[Uuid, range] = {}
        for some in stepwise(topics if group.is_homogeneous else member.topic_ids):
            ranges |= ((topic_id, taken) for topic_id in some if (taken := topics[topic_id].take()))
            yield
        size = len(topics) if group.is_homogeneous else member.subscription_size
        order = yield from HashTable(uuid_hash, room_for(size), ranges).in_order()
        found = assignments[member_id] = {}
        for some in stepwise(order):
            found.update((topic_id, tuple(ranges[topic_id])) for topic_id in some)
            yield
    return dict(assignments)


@dataclass(slots=True)
class _Ranges:
    """The partitions of a topic that are not assigned yet, and the number of members that subscribe to it."""

    partition_count: int
    member_count: int
    next_partition: int = 0
    turn: int = 0

    def take(self) -> range:
        quota, extra = divmod(self.partition_count, self.member_count)
        start = self.next_partition
        self.next_partition += quota + (1 if self.turn < extra else 0)
        self.turn += 1
        return range(start, self.next_partition)


def _count(group: GroupSpecification, topic_id: Uuid) -> int:
    count = group.partition_count(topic_id)
    if count is None:
        raise AssignorError("Member is subscribed to a non-existent topic")
    return count


def _sort_key(instance_id: str | None, member_id: str) -> tuple[bool, bytes]:
    text = member_id if instance_id is None else instance_id
    return instance_id is None, text.encode("utf-16-be", "surrogatepass")  # the order of strings in Java
