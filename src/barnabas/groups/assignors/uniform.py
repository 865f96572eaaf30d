"""The uniform assignor: partitions of all topics are spread evenly, and members keep as many of theirs as possible.

The numbers of partitions of any two members differ by at most one. This file is for groups whose members subscribe to
the same topics; other groups are in `uniform_heterogeneous`.
"""

from __future__ import annotations

from collections.abc import Iterable

from barnabas.groups.assignors import uniform_heterogeneous
from barnabas.groups.assignors.drafts import Draft, finished
from barnabas.groups.assignors.specification import Assignment, AssignorError, GroupSpecification
from barnabas.groups.hash_tables import MIN_CAPACITY, HashTable, room_for, uuid_hash
from barnabas.steps import ROWS_PER_STEP, Slices, stepwise
from barnabas.wire import Uuid


def assign(group: GroupSpecification) -> Slices[dict[str, Assignment]]:
    if not group.members:
        return {}
    if not group.is_homogeneous:
        return (yield from uniform_heterogeneous.assign(group))
    first = next(iter(group.members.values()))
    topic_ids = HashTable(uuid_hash, max(room_for(first.subscription_size), MIN_CAPACITY), first.topic_ids)
    if not len(topic_ids):
        return {}
    order = yield from topic_ids.in_order()
    partition_count = 0
    unassigned: list[tuple[Uuid, int]] = []
    for some in stepwise((topic_id, partition) for topic_id in order for partition in range(group.count(topic_id))):
        partition_count += len(some)
        unassigned += [each for each in some if not group.is_assigned(*each)]
        yield
    quotas = _Quotas(partition_count, len(group.members))
    drafts: dict[str, Draft] = {}
    unfilled: list[tuple[Draft, int]] = []
    for member_id, member in group.members.items():
        yield
        draft = drafts[member_id] = Draft(member.assignment)
        room = quotas.largest
        for number, topic_id in enumerate((yield from draft.topics())):
            if number % ROWS_PER_STEP == 0:
                yield
            if topic_id not in topic_ids:
                draft.remove_topic(topic_id)
                continue
            kept = list(draft.partitions(topic_id))
            for some_kept in stepwise(kept[room:]):
                yield
                for partition in some_kept:
                    draft.remove(topic_id, partition)
                    unassigned.append((topic_id, partition))
            room -= min(room, len(kept))
        room = quotas.take(room)
        if room:
            unfilled.append((draft, room))
    yield from _fill(unfilled, unassigned)
    return (yield from finished(drafts.items()))


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


def _fill(unfilled: Iterable[tuple[Draft, int]], unassigned: list[tuple[Uuid, int]]) -> Slices[None]:
    place = 0
    for draft, room in unfilled:
        yield
        draft.touch()
        for some in stepwise(unassigned[place : place + room]):
            yield
            for topic_id, partition in some:
                draft.add(topic_id, partition)
        place += room
    if place < len(unassigned):
        raise AssignorError("Partitions were left unassigned")
