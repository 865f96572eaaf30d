"""The assignor "simple" of share groups. A partition may have several members, and a member several partitions.

Pure. Members get the same partitions as from Kafka, so members, topics and partitions are walked in the order of Kafka's
hash tables. Balance comes first: all partitions have about as many members. Then as little as possible is moved. If
members subscribe to different topics, each topic is balanced on its own. Partitions whose state is not initialized are
not assigned. The work pauses, because clients decide how much it is.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Final, Generic, NamedTuple, TypeVar

from barnabas.groups.assignors import Assignment
from barnabas.groups.hash_tables import HashTable, copied, number_hash, uuid_hash
from barnabas.steps import Slices
from barnabas.wire import Uuid

K = TypeVar("K")

NAME: Final = "simple"
TopicPartition = tuple[Uuid, int]


class MemberSpecification(NamedTuple):
    subscription_size: int  # number of subscribed topics, also of those that do not exist
    topic_ids: Sequence[Uuid]  # subscribed topics that exist
    assignment: Assignment  # its last target assignment


class ShareSpecification(NamedTuple):
    members: Mapping[str, MemberSpecification]
    is_homogeneous: bool  # all members subscribe to the same topics
    partitions: Callable[[Uuid], Sequence[int]]  # the partitions of a topic that may be assigned


def assign(specification: ShareSpecification) -> Slices[dict[str, Assignment]]:
    """Return the new assignment of every member. Members that are left out have none."""
    given = list(specification.members.values())
    if not given:
        return {}
    drafts = [_Draft(member.assignment) for member in given]
    if specification.is_homogeneous:
        if not given[0].subscription_size:
            return {}
        topics = {topic_id: specification.partitions(topic_id) for topic_id in given[0].topic_ids}
        yield from _Homogeneous(topics, drafts).assign()
    else:
        topic_ids = HashTable(uuid_hash)
        subscribed: dict[Uuid, list[int]] = {}
        for index, member in enumerate(given):
            for topic_id in member.topic_ids:
                topic_ids.add(topic_id)
                subscribed.setdefault(topic_id, []).append(index)
            yield
        if not subscribed:
            return {}
        for topic_id in topic_ids:
            partitions = specification.partitions(topic_id)
            yield from _OneTopic(topic_id, partitions, subscribed[topic_id], drafts).assign()
    return {member_id: draft.finish() for member_id, draft in zip(specification.members, drafts, strict=True)}


class _Draft:
    """The assignment of one member, which is copied when it is first changed."""

    def __init__(self, old: Assignment) -> None:
        self.old = old
        self._topics: HashTable[Uuid] | None = None
        self._partitions: dict[Uuid, HashTable[int]] = {}

    def copy(self) -> HashTable[Uuid]:
        if self._topics is None:
            self._topics = HashTable(uuid_hash, len(self.old), self.old)
            self._partitions = {topic_id: copied(number_hash, numbers) for topic_id, numbers in self.old.items()}
        return self._topics

    def add(self, topic_id: Uuid, partition: int) -> None:
        topics = self.copy()
        topics.compute(topic_id)
        if topic_id not in self._partitions:
            self._partitions[topic_id] = HashTable(number_hash)
        self._partitions[topic_id].add(partition)

    def remove(self, topic_id: Uuid, partition: int) -> bool:
        """Remove a partition. Return whether it was there. The topic stays, as in Kafka."""
        self.copy()
        numbers = self._partitions.get(topic_id)
        if numbers is None or partition not in numbers:
            return False
        numbers.remove(partition)
        return True

    def remove_topic(self, topic_id: Uuid) -> None:
        self.copy().remove(topic_id)
        self._partitions.pop(topic_id, None)

    def finish(self) -> Assignment:
        if self._topics is None:
            return self.old
        return {topic_id: tuple(self._partitions[topic_id]) for topic_id in self._topics}


class _Sets(Generic[K]):
    """Sets of partitions or members by key, in the order of a table with room for `count` keys."""

    def __init__(self, hash_of: Callable[[K], int], count: int) -> None:
        self._keys = HashTable(hash_of, _room_for(count))
        self._sets: dict[K, HashTable[int]] = {}

    def of(self, key: K, room: int = 0) -> HashTable[int]:
        self._keys.compute(key)
        found = self._sets.get(key)
        if found is None:
            found = self._sets[key] = HashTable(number_hash, room) if room else HashTable(number_hash)
        return found

    def __iter__(self) -> Iterator[tuple[K, HashTable[int]]]:
        return ((key, self._sets[key]) for key in self._keys)


def _room_for(count: int) -> int:
    return int((count + 1) / 0.75 + 1)


def _topic_partition_hash(key: TopicPartition) -> int:
    return (31 * uuid_hash(key[0]) + key[1]) & 0xFFFFFFFF


def _sharing(partition_count: int, member_count: int) -> int:
    """Return how many members a partition should have."""
    return -(-member_count // partition_count) if partition_count else 0


def _desired(total: int, member_count: int) -> list[int]:
    """Return how many partitions each member should have, `total` in all, rounded as in Kafka."""
    each = total / member_count
    return [math.ceil(each * (index + 1)) - math.ceil(each * index) for index in range(member_count)]


class _Homogeneous:
    """All members subscribe to the same topics, and all of these are balanced together."""

    def __init__(self, topics: Mapping[Uuid, Sequence[int]], drafts: Sequence[_Draft]) -> None:
        self._topics = topics
        self._drafts = drafts
        self._targets = [(topic_id, number) for topic_id, numbers in topics.items() for number in numbers]
        self._sharing = _sharing(len(self._targets), len(drafts))
        self._desired = _desired(self._sharing * len(self._targets), len(drafts))
        self._by_partition = _Sets(_topic_partition_hash, len(self._targets))
        self._by_member = [HashTable(_topic_partition_hash) for _ in drafts]
        self._unfilled: set[int] = set()
        self._overfilled: set[int] = set()

    def assign(self) -> Slices[None]:
        yield from self._keep_subscribed()
        yield from self._revoke_overfilled()
        yield from self._revoke_overshared()
        for place in self._targets:
            self._by_partition.of(place)
            yield
        if self._unfilled:
            yield from self._assign_rest()

    def _keep_subscribed(self) -> Slices[None]:
        for index, draft in enumerate(self._drafts):
            count = 0
            for topic_id, numbers in draft.old.items():
                if topic_id not in self._topics:
                    draft.remove_topic(topic_id)
                    continue
                for number in numbers:
                    count += 1
                    self._by_partition.of((topic_id, number)).add(index)
                    self._by_member[index].add((topic_id, number))
                    if count >= self._desired[index]:
                        draft.copy()
                    yield
            if count < self._desired[index]:
                self._unfilled.add(index)
            elif count > self._desired[index]:
                self._overfilled.add(index)
            yield

    def _revoke_overshared(self) -> Slices[None]:
        for (topic_id, number), members in self._by_partition:
            yield
            if len(members) > self._sharing:
                for index in members:
                    if self._drafts[index].remove(topic_id, number):
                        members.remove(index)
                        self._by_member[index].remove((topic_id, number))
                        self._unfilled.add(index)
                    if len(members) <= self._sharing:
                        break

    def _revoke_overfilled(self) -> Slices[None]:
        for index in sorted(self._overfilled):
            has = self._by_member[index]
            for topic_id, number in has if len(has) > self._desired[index] else ():
                self._drafts[index].remove(topic_id, number)
                self._by_partition.of((topic_id, number)).remove(index)
                has.remove((topic_id, number))
                yield
                if len(has) == self._desired[index]:
                    break

    def _assign_rest(self) -> Slices[None]:
        def give(index: int, place: TopicPartition) -> bool:
            self._drafts[index].add(*place)
            self._by_member[index].add(place)
            return len(self._by_member[index]) >= self._desired[index]

        yield from _assign_rest(self._by_partition, sorted(self._unfilled), self._sharing, give)


class _OneTopic:
    """One topic, balanced among the members that subscribe to it."""

    def __init__(
        self, topic_id: Uuid, targets: Sequence[int], subscribed: Sequence[int], drafts: Sequence[_Draft]
    ) -> None:
        self._topic_id = topic_id
        self._targets = targets
        self._subscribed = subscribed
        self._drafts = drafts
        self._sharing = _sharing(len(targets), len(subscribed))
        self._desired = dict.fromkeys(range(len(drafts)), 0)
        self._desired.update(zip(subscribed, _desired(self._sharing * len(targets), len(subscribed)), strict=True))
        self._by_partition = _Sets(number_hash, len(targets))
        self._by_member = _Sets(number_hash, len(subscribed))

    def assign(self) -> Slices[None]:
        for index, draft in enumerate(self._drafts):
            for number in draft.old.get(self._topic_id, ()):
                self._by_partition.of(number).add(index)
                self._by_member.of(index).add(number)
            yield
        yield from self._revoke_overfilled()
        yield from self._revoke_overshared()
        for number in self._targets:
            self._by_partition.of(number, _room_for(len(self._subscribed)))
            yield
        yield from self._assign_rest()

    def _revoke_overfilled(self) -> Slices[None]:
        for index, has in self._by_member:
            yield
            for number in has:
                if len(has) <= self._desired[index]:
                    break
                self._by_partition.of(number).remove(index)
                has.remove(number)
                self._drafts[index].remove(self._topic_id, number)

    def _revoke_overshared(self) -> Slices[None]:
        for number, members in self._by_partition:
            yield
            if len(members) > self._sharing:
                for index in members:
                    if self._drafts[index].remove(self._topic_id, number):
                        members.remove(index)
                        self._by_member.of(index).remove(number)
                    if len(members) <= self._sharing:
                        break

    def _assign_rest(self) -> Slices[None]:
        def give(index: int, number: int) -> bool:
            self._drafts[index].add(self._topic_id, number)
            has = self._by_member.of(index)
            has.add(number)
            return len(has) >= self._desired[index]

        counts = {index: len(has) for index, has in self._by_member}
        unfilled = [index for index in sorted(self._subscribed) if counts.get(index, 0) < self._desired[index]]
        yield from _assign_rest(self._by_partition, unfilled, self._sharing, give)


def _assign_rest(
    by_partition: _Sets[K], unfilled: list[int], sharing: int, give: Callable[[int, K], bool]
) -> Slices[None]:
    """Give partitions that have too few members to those that have too few partitions, in turn.

    `give` returns whether the member has enough then. A partition that all members in need have already stays as it is.
    """
    place, has_given = 0, False
    for key, members in by_partition:
        while len(members) < sharing:
            yield
            if place >= len(unfilled):
                if not has_given or not unfilled:
                    break
                place, has_given = 0, False
            index = unfilled[place]
            place += 1
            if index not in members:
                members.add(index)
                has_given = True
                if give(index, key):
                    place -= 1
                    del unfilled[place]
        if not unfilled:
            break
