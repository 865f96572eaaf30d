"""The uniform assignor for members that subscribe to different topics: as even as subscriptions allow, then as sticky.

First, members lose topics that they no longer subscribe to. Then, topic by topic, unassigned partitions go to the
members with the fewest partitions. At last partitions move from the members with the most to those with the fewest,
until that gains nothing or `MAX_ROUNDS` are over.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from barnabas.groups.assignors.drafts import Draft, finished
from barnabas.groups.assignors.specification import Assignment, GroupSpecification
from barnabas.groups.hash_tables import HashTable, room_for, uuid_hash
from barnabas.steps import ROWS_PER_STEP, Slices, mapped, stepwise
from barnabas.wire import Uuid

MAX_ROUNDS = 16  # each about halves the imbalance
NOBODY = -1


def assign(group: GroupSpecification) -> Slices[dict[str, Assignment]]:
    work = _Work(group)
    yield from work.find_subscribers()
    if not work.subscribers:
        return {}
    yield from work.keep_subscribed()
    yield from work.assign_unassigned()
    yield from work.balance()
    return (yield from finished(zip(group.members, work.drafts, strict=True)))


class _Work:
    """The assignment while it is built. Members are numbers here: their index in the group."""

    def __init__(self, group: GroupSpecification) -> None:
        self._group = group
        self._members = list(group.members.values())
        self.drafts: list[Draft] = []
        self.subscribers: dict[Uuid, list[int]] = {}
        self._counts: dict[Uuid, int] = {}
        self._owners: dict[Uuid, list[int]] = {}
        self._sizes = [0] * len(self._members)

    def find_subscribers(self) -> Slices[None]:
        for number, member in enumerate(self._members):
            self.drafts.append(Draft(member.assignment))
            yield
            for some in stepwise(member.topic_ids):
                yield
                for topic_id in some:
                    if topic_id not in self._counts:
                        count = self._counts[topic_id] = self._group.count(topic_id)
                        self._owners[topic_id] = [NOBODY] * count
                    self.subscribers.setdefault(topic_id, []).append(number)

    def keep_subscribed(self) -> Slices[None]:
        for number, (member, draft) in enumerate(zip(self._members, self.drafts, strict=True)):
            subscribed = set(member.topic_ids)
            for place, topic_id in enumerate((yield from draft.topics())):
                if place % ROWS_PER_STEP == 0:
                    yield
                if topic_id not in subscribed:
                    draft.remove_topic(topic_id)
                    continue
                owners = self._owners[topic_id]
                for partition in draft.partitions(topic_id):
                    owners[partition] = number
                    self._sizes[number] += 1

    def assign_unassigned(self) -> Slices[None]:
        unassigned: dict[Uuid, list[int]] = {}
        for number, (topic_id, owners) in enumerate(self._owners.items()):
            if number % ROWS_PER_STEP == 0:
                yield
            if free := [partition for partition, owner in enumerate(owners) if owner == NOBODY]:
                unassigned[topic_id] = free
        for topic_id in (yield from self._sorted(unassigned)):
            yield
            balancer = _Balancer(self.subscribers[topic_id], self._sizes)
            for some in stepwise(unassigned[topic_id]):
                yield
                for partition in some:
                    self._give(topic_id, partition, balancer.next_least_loaded())

    def balance(self) -> Slices[None]:
        """Balance one topic after the other, until a whole round moves nothing or `MAX_ROUNDS` are over."""
        shared = [topic_id for topic_id, members in self.subscribers.items() if len(members) >= 2]
        topic_ids = yield from self._sorted(shared)
        last_moved = None
        for _ in range(MAX_ROUNDS):
            for place, topic_id in enumerate(topic_ids):
                yield
                if place == last_moved:
                    return
                if (yield from self._balance_topic(topic_id)) or last_moved is None:
                    last_moved = place

    def _balance_topic(self, topic_id: Uuid) -> Slices[int]:
        """Move partitions of a topic from members with more to members with fewer. Returns how many moved."""
        members = self.subscribers[topic_id]
        sizes = [self._sizes[number] for number in members]
        if max(sizes) - min(sizes) <= 1:
            return 0
        balancer = _Balancer(members, self._sizes)
        owners = self._owners[topic_id]
        by_owner = sorted(range(len(owners)), key=owners.__getitem__)
        to_give = {owner: list(partitions) for owner, partitions in groupby(by_owner, owners.__getitem__)}
        moved = 0
        yield
        while not balancer.is_balanced:
            yield
            giver = balancer.next_most_loaded()
            while giver is not None and not to_give.get(giver):
                balancer.exclude_most_loaded()
                giver = balancer.next_most_loaded()
            if giver is None:
                break
            partition = to_give[giver].pop()
            taker = balancer.next_least_loaded()
            if balancer.is_balanced:
                break
            self._give(topic_id, partition, taker)
            moved += 1
        return moved

    def _give(self, topic_id: Uuid, partition: int, number: int) -> None:
        owner = self._owners[topic_id][partition]
        if owner != NOBODY:
            self.drafts[owner].remove(topic_id, partition)
            self._sizes[owner] -= 1
        subscribers = len(self.subscribers[topic_id])
        share = (self._counts[topic_id] + subscribers - 1) // subscribers
        self.drafts[number].add(topic_id, partition, room_for(share))
        self._owners[topic_id][partition] = number
        self._sizes[number] += 1

    def _sorted(self, topic_ids: Iterable[Uuid]) -> Slices[list[Uuid]]:
        """Sort topics: those with the most partitions per subscriber first."""

        def key(topic_id: Uuid) -> tuple[float, int, int, int]:
            subscribers = len(self.subscribers[topic_id])
            high = int.from_bytes(topic_id[:8], signed=True)
            low = int.from_bytes(topic_id[8:], signed=True)
            return -self._counts[topic_id] / subscribers, subscribers, high, low

        order = yield from HashTable(uuid_hash, members=topic_ids).in_order()
        keys = yield from mapped(key, order)
        return [order[index] for index in sorted(range(len(order)), key=keys.__getitem__)]


class _Balancer:
    """Chooses which subscriber of a topic gets the next partition, and which one loses one.

    Members are sorted by the number of partitions that they have. The range of members with the fewest is at one end:
    each of them gets one partition, then its level rises and the range grows towards the middle. The range of members
    with the most is at the other end; its level falls, and it grows likewise.
    """

    def __init__(self, members: Sequence[int], sizes: list[int]) -> None:
        self._sizes = sizes
        self._sorted = sorted(members, key=lambda number: (sizes[number], number))
        self._least_end = 0
        self._least_level = sizes[self._sorted[0]] - 1
        self._next_least = 0
        self._most_start = self._most_end = len(self._sorted)
        self._most_level = sizes[self._sorted[-1]] + 1
        self._next_most = len(self._sorted) - 1

    def next_least_loaded(self) -> int:
        if self._next_least >= self._least_end:
            self._least_level += 1
            while self._least_end < len(self._sorted) and self._size_at(self._least_end) == self._least_level:
                self._least_end += 1
            self._next_least = 0
        number = self._sorted[self._next_least]
        self._next_least += 1
        return number

    def next_most_loaded(self) -> int | None:
        if self._next_most < self._most_start:
            if self._most_end <= self._most_start and self._most_start > 0:
                self._most_level = self._size_at(self._most_start - 1)  # all members in the range were excluded
            else:
                self._most_level -= 1
            while self._most_start > 0 and self._size_at(self._most_start - 1) == self._most_level:
                self._most_start -= 1
            self._next_most = self._most_end - 1
        if self._next_most < 0:
            return None
        number = self._sorted[self._next_most]
        self._next_most -= 1
        return number

    def exclude_most_loaded(self) -> None:
        """Exclude the member that was returned last from the range: it has no partition of the topic to lose."""
        place, end = self._next_most + 1, self._most_end - 1
        self._sorted[place], self._sorted[end] = self._sorted[end], self._sorted[place]
        self._most_end -= 1

    @property
    def is_balanced(self) -> bool:
        return self._most_level - self._least_level <= 1

    def _size_at(self, place: int) -> int:
        return self._sizes[self._sorted[place]]
