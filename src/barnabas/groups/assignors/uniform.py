"""The uniform assignor: partitions of all topics are spread evenly, and members keep as many of theirs as possible.

The numbers of partitions of any two members differ by at most one. This file is for groups whose members subscribe to
the same topics; other groups are in `uniform_heterogeneous`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.assignors import uniform_heterogeneous
from barnabas.groups.assignors.drafts import Draft
from barnabas.groups.assignors.specification import Assignment, AssignorError, GroupSpecification
from barnabas.groups.hash_tables import MIN_CAPACITY, HashTable, room_for, uuid_hash
from barnabas.wire import Uuid


def assign(group: GroupSpecification) -> dict[str, Assignment]:
    if not group.members:
        return {}
    if not group.is_homogeneous:
        return uniform_heterogeneous.assign(group)
    first = next(iter(group.members.values()))
    topic_ids = HashTable(uuid_hash, max(room_for(first.subscription_size), MIN_CAPACITY), first.topic_ids)
    if not len(topic_ids):
        return {}
    unassigned = [
        (topic_id, partition)
        for topic_id in topic_ids
        for partition in range(group.count(topic_id))
        if not group.is_assigned(topic_id, partition)
    ]
    quotas = _Quotas(sum(group.count(topic_id) for topic_id in topic_ids), len(group.members))
    drafts: dict[str, Draft] = {}
    unfilled: list[tuple[Draft, int]] = []
    for member_id, member in group.members.items():
        draft = drafts[member_id] = Draft(member.assignment)
        room = quotas.largest
        for topic_id in draft.topics():
            if topic_id not in topic_ids:
                draft.remove_topic(topic_id)
                continue
            kept = list(draft.partitions(topic_id))
            for partition in kept[room:]:
                draft.remove(topic_id, partition)
                unassigned.append((topic_id, partition))
            room -= min(room, len(kept))
        room = quotas.take(room)
        if room:
            unfilled.append((draft, room))
    _fill(unfilled, unassigned)
    return {member_id: draft.finish() for member_id, draft in drafts.items()}


class _Quotas:
    """The number of partitions of each member, in turn. If they cannot be equal, some members get one more."""

    def __init__(self, partition_count: int, member_count: int) -> None:
        self._least, self._extras = divmod(partition_count, member_count)
        self._members = member_count  # members that had no turn yet

    @property
    def largest(self) -> int:
        return self._least + (1 if self._extras else 0)

    def take(self, room: int) -> int:
        """Return the number of partitions to add to the next member. `room` is what it lacks to the largest quota."""
        takes_extra = self._extras > 0
        if room and takes_extra and self._members > self._extras:
            # Leave the extra partition to another member: enough of them have no turn yet.
            room -= 1
            takes_extra = False
        self._members -= 1
        self._extras -= takes_extra
        return room


def _fill(unfilled: Iterable[tuple[Draft, int]], unassigned: list[tuple[Uuid, int]]) -> None:
    place = 0
    for draft, room in unfilled:
        draft.touch()
        for topic_id, partition in unassigned[place : place + room]:
            draft.add(topic_id, partition)
        place += room
    if place < len(unassigned):
        raise AssignorError("Partitions were left unassigned")
