"""Plan reassignments: rebalance, add brokers, drain brokers, change the replication factor. Pure.

Its one rule: a replica only moves if it must. Replicas that must move (from drained brokers, or to reach the replication
factor) are placed first, by `client.replica_choice`. Then, if asked for, replicas are moved one at a time from a broker
to one that has at least two fewer; racks never get more crowded by that. Last, preferred leaders are spread evenly by
reordering replicas, which copies nothing: in the partitions that change anyway, or in all partitions of a rebalance. A plan
that only changes the replication factor does not level. Replicas that stay keep their order, except for a new preferred
leader.

>>> plan({("orders", 0): (1, 2), ("orders", 1): (2, 1)}, {1: None, 2: None, 3: None}, drain={2}).targets
{('orders', 0): (1, 3), ('orders', 1): (3, 1)}

A replica on a broker that is not in `brokers`, because it is not running, stays there unless that broker is drained. With a
smaller replication factor, an in-sync replica is never dropped in favour of an out-of-sync one, not even from a drained broker
if there is a broker to move it to. Plans count replicas and leaders, not bytes on disk, and prefer to move small partitions.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from heapq import heappop, heappush
from typing import NamedTuple, TypeAlias

from barnabas.client.replica_choice import (
    BrokerLoad,
    Key,
    PartitionReplicas,
    max_replicas,
    new_replicas,
    next_replica,
    rack_of,
)
from barnabas.client.state import NO_LEADER

Replicas: TypeAlias = tuple[int, ...]


class PlanError(ValueError):
    """The goal cannot be reached: there are too few brokers, or unknown ones."""


class Load(NamedTuple):
    """Replicas and preferred leaders of a broker before and after, and the bytes to copy to it."""

    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_in: int


@dataclass(frozen=True, slots=True)
class ReassignmentPlan:
    """`targets` has the new replicas of the partitions that change; `current` has the present replicas of all partitions."""

    current: Mapping[Key, Replicas]
    targets: Mapping[Key, Replicas]
    sizes: Mapping[Key, int]

    def adding(self, key: Key) -> Replicas:
        return tuple(each for each in self.targets[key] if each not in self.current[key])

    def removing(self, key: Key) -> Replicas:
        return tuple(each for each in self.current[key] if each not in self.targets[key])

    def bytes_to_copy(self, key: Key) -> int | None:
        """Return the bytes that new replicas have to copy, or None if the size of the partition is unknown."""
        added, size = len(self.adding(key)), self.sizes.get(key)
        return 0 if not added else None if size is None else size * added

    def loads(self, broker_ids: Iterable[int]) -> dict[int, Load]:
        """Return the load of these brokers, and of all others that have a replica before or after."""
        after = {key: self.targets.get(key, replicas) for key, replicas in self.current.items()}
        counts = [Counter(each for replicas in side.values() for each in replicas) for side in (self.current, after)]
        leaders = [Counter(replicas[0] for replicas in side.values() if replicas) for side in (self.current, after)]
        incoming: Counter[int] = Counter()
        for key in self.targets:
            for each in self.adding(key):
                incoming[each] += self.sizes.get(key, 0)
        known = sorted({*broker_ids, *counts[0], *counts[1]})
        return {
            each: Load(counts[0][each], counts[1][each], leaders[0][each], leaders[1][each], incoming[each])
            for each in known
        }


def plan(
    current: Mapping[Key, Sequence[int]],
    brokers: Mapping[int, str | None],
    *,
    drain: Collection[int] = (),
    add: Collection[int] = (),
    replication_factor: int | None = None,
    rebalance: bool = False,
    sizes: Mapping[Key, int] | None = None,
    others: Mapping[int, int] | None = None,
    isr: Mapping[Key, Collection[int]] | None = None,
    leaders: Mapping[Key, int] | None = None,
) -> ReassignmentPlan:
    """Plan the moves that reach a goal. `brokers` are the running ones, with their racks. Raises `PlanError`.

    `drain` moves all replicas away from these brokers. `add` moves an even share of replicas to these brokers, and none
    between others. `replication_factor` adds or removes replicas. `rebalance` levels all brokers and spreads replicas over
    racks. Goals can be combined.

    `sizes` are partition sizes in bytes, `others` the number of replicas of other topics on each broker: both only break ties.
    `isr` and `leaders` decide which replicas are dropped; the replicas of a partition without an ISR count as in sync.
    """
    _check(current, brokers, drain, add, replication_factor)
    isr, leaders = isr or {}, leaders or {}
    known = {
        key: PartitionReplicas(replicas, isr.get(key, ()), leaders.get(key, NO_LEADER))
        for key, replicas in current.items()
    }
    state = _State(known, brokers, drain, sizes or {}, others or {})
    for key in sorted(state.replicas):
        state.place(key, replication_factor or len(state.replicas[key]))
    if rebalance:
        for key in sorted(state.replicas):
            state.mend_racks(key)
    if rebalance or drain or add:
        state.onto = state.usable if rebalance else frozenset(add) - frozenset(drain)
        state.level_replicas()
        for key, replicas in current.items():
            state.restore_order(key, replicas)
        state.level_leaders(state.replicas if rebalance else [key for key in state.replicas if state.is_touched(key)])
    targets = {key: tuple(state.replicas[key]) for key in sorted(state.replicas)}
    before = {key: tuple(replicas) for key, replicas in current.items()}
    return ReassignmentPlan(
        before, {key: each for key, each in targets.items() if each != before[key]}, dict(sizes or {})
    )


def _check(
    current: Mapping[Key, Sequence[int]],
    brokers: Mapping[int, str | None],
    drain: Collection[int],
    add: Collection[int],
    replication_factor: int | None,
) -> None:
    if missing := sorted(set(add) - set(brokers)):
        raise PlanError(f"cannot add {_names(missing)}: unknown or not running")
    if both := sorted(set(add) & set(drain)):
        raise PlanError(f"{_names(both)} cannot be both added and drained")
    known = set(brokers).union(*current.values())
    if missing := sorted(set(drain) - known):
        raise PlanError(f"cannot drain {_names(missing)}: not running, and without replicas")
    if replication_factor is not None and replication_factor < 1:
        raise PlanError(f"the replication factor must be at least 1, not {replication_factor}")
    remaining = set(brokers) - set(drain)
    for (topic, index), replicas in current.items():
        wanted = replication_factor or len(replicas)
        if wanted > max_replicas(replicas, brokers, drain):
            raise PlanError(
                f"{topic}-{index} needs {wanted} replicas, but only {len(remaining)} broker"
                f"{'s are' if len(remaining) != 1 else ' is'} available"
            )


def _names(broker_ids: Sequence[int]) -> str:
    return f"broker{'s' if len(broker_ids) != 1 else ''} {', '.join(map(str, broker_ids))}"


class _State:
    """The assignment while it is planned, with its counts.

    A broker is a home of a partition if it has a replica before the plan: moving a replica back there costs nothing.
    """

    def __init__(
        self,
        known: Mapping[Key, PartitionReplicas],
        brokers: Mapping[int, str | None],
        drain: Collection[int],
        sizes: Mapping[Key, int],
        others: Mapping[int, int],
    ) -> None:
        current = {key: each.replicas for key, each in known.items()}
        self.known = known
        self.racks, self.sizes, self.others = brokers, sizes, others
        self.drained = frozenset(drain)
        self.usable = frozenset(brokers) - self.drained
        self.onto: frozenset[int] = frozenset()
        self.homes = {key: frozenset(replicas) for key, replicas in current.items()}
        self.replicas = {key: list(replicas) for key, replicas in current.items()}
        self.load: Counter[int] = Counter(dict.fromkeys(self.usable, 0))
        self.topic_load: defaultdict[tuple[str, int], int] = defaultdict(int)
        self.leads: Counter[int] = Counter(dict.fromkeys(self.usable, 0))
        self.on: dict[int, set[Key]] = defaultdict(set)
        self.on_the_way: dict[int, set[Key]] = defaultdict(
            set
        )  # partitions placed there by this plan, which can still move for free
        self.had_to_move: set[Key] = set()
        self.barred: dict[Key, frozenset[int]] = {}
        """Brokers whose out-of-sync replicas were dropped: in-sync replicas must not be moved there."""
        self.changes: Counter[int] = Counter()
        self.nothing: dict[tuple[int, int], int] = {}
        """Cache of broker pairs between which nothing can move, until `changes` of the first one grows."""
        for key, replicas in current.items():
            self.leads.update(replicas[:1])
            for each in replicas:
                self._count(key, each, 1)

    def is_touched(self, key: Key) -> bool:
        return frozenset(self.replicas[key]) != self.homes[key]

    def _count(self, key: Key, broker_id: int, difference: int) -> None:
        self.load[broker_id] += difference
        self.topic_load[key[0], broker_id] += difference
        for there in (self.on, self.on_the_way) if broker_id not in self.homes[key] else (self.on,):
            (there[broker_id].add if difference > 0 else there[broker_id].discard)(key)

    def _put(self, key: Key, replicas: list[int]) -> None:
        """Set the replicas of a partition, and update the counts."""
        old = self.replicas[key]
        for each in set(old) - set(replicas):
            self._count(key, each, -1)
        for each in set(replicas) - set(old):
            self._count(key, each, 1)
        self.leads[old[0]] -= 1
        self.leads[replicas[0]] += 1
        self.changes.update({*old, *replicas})
        self.replicas[key] = replicas

    # --- moves that must be made

    def place(self, key: Key, count: int) -> None:
        """Choose `count` replicas, none on a drained broker. A new replica takes the place of the one it replaces."""
        partition = self.known[key]
        replicas = new_replicas(partition, count, self.racks, self._load_for(key), self.drained)
        if not self.homes[key].issuperset(replicas):
            self.had_to_move.add(key)
        dropped = self.homes[key].difference(replicas, self.drained)
        if barred := frozenset(each for each in dropped if not partition.is_in_sync(each)):
            self.barred[key] = barred
        self._put(key, replicas)

    def _load_for(self, key: Key) -> BrokerLoad:
        """Return a function that counts the replicas of a broker: of the topic, then of all topics."""

        def load(broker_id: int) -> tuple[int, ...]:
            return self.topic_load[key[0], broker_id], self.load[broker_id] + self.others.get(broker_id, 0)

        return load

    def _rack(self, broker_id: int) -> object:
        return rack_of(broker_id, self.racks)

    def _crowding(self, replicas: Iterable[int]) -> int:
        """Return a number that is lowest if the replicas are spread evenly over racks."""
        return sum(count * count for count in Counter(map(self._rack, replicas)).values())

    def _would_crowd(self, replicas: Iterable[int], giver: int, taker: int) -> bool:
        """Return whether moving a replica to a broker in another rack makes racks more crowded."""
        racks = [self._rack(each) for each in replicas]
        return racks.count(self._rack(taker)) >= racks.count(self._rack(giver))

    def mend_racks(self, key: Key) -> None:
        """Move replicas to other racks, one at a time, as long as that makes racks less crowded."""
        candidates, load = self.usable - self.barred.get(key, frozenset()), self._load_for(key)

        def home_first(broker_id: int) -> tuple[int, ...]:
            return broker_id not in self.homes[key], *load(broker_id)

        while True:
            replicas = self.replicas[key]
            used = Counter(map(self._rack, replicas))
            crowded = [each for each in replicas if used[self._rack(each)] > 1 and each in self.usable]
            if not crowded:
                return
            leaving = max(crowded, key=lambda each: (used[self._rack(each)], each != replicas[0], self.load[each]))
            staying = [each for each in replicas if each != leaving]
            coming = next_replica(staying, candidates, self.racks, home_first)
            if self._crowding([*staying, coming]) >= self._crowding(replicas):
                return
            self._put(key, [coming if each == leaving else each for each in replicas])

    # --- levelling

    def level_replicas(self) -> None:
        """Level the number of replicas per broker. Only replicas placed by this plan may move, and those that go to `onto`."""

        def carry(key: Key, giver: int, taker: int) -> None:
            self._put(key, [taker if each == giver else each for each in self.replicas[key]])

        _level(self.load, sorted(self.usable), self._movable, carry)

    def _movable(self, giver: int, taker: int) -> Key | None:
        """Return the best partition to move from one broker to the other, or None."""
        if self.nothing.get((giver, taker)) == self.changes[giver]:
            return None
        best: tuple[bool, bool, int, bool, int, Key] | None = None
        may_leave = taker in self.onto and (giver not in self.onto or self.onto == self.usable)
        anywhere = may_leave or taker in self.onto
        crosses = self._rack(giver) != self._rack(taker)
        for key in (self.on if may_leave else self.on_the_way)[giver]:
            replicas, homes = self.replicas[key], self.homes[key]
            goes_home = taker in homes
            if taker in replicas or not (anywhere or goes_home or key in self.had_to_move):
                continue
            if goes_home and taker in self.barred.get(key, ()):
                continue
            spread = self.topic_load[key[0], taker] - self.topic_load[key[0], giver]
            order = (not goes_home, giver in homes, spread, replicas[0] == giver, self.sizes.get(key, 0), key)
            if (best is None or order < best) and not (crosses and self._would_crowd(replicas, giver, taker)):
                best = order
        if best is None:
            self.nothing[giver, taker] = self.changes[giver]
            return None
        return best[-1]

    def restore_order(self, key: Key, before: Sequence[int]) -> None:
        """Put the replicas that stay back in their old order; new ones take the places of those that leave."""
        now = self.replicas[key]
        coming = iter([each for each in now if each not in before])
        places = [each if each in now else next(coming, None) for each in before]
        self._put(key, [*(each for each in places if each is not None), *coming])

    def level_leaders(self, keys: Iterable[Key]) -> None:
        """Level the number of preferred leaders per broker, by reordering the replicas of these partitions."""
        in_order = {key: list(self.replicas[key]) for key in keys}
        leader = {key: replicas[0] for key, replicas in in_order.items()}
        # For each leader and other replica: a heap of partitions. Those with another leader by now are dropped when met.
        heaps: defaultdict[tuple[int, int], list[Key]] = defaultdict(list)
        for key in sorted(in_order):  # a sorted list is a heap
            for each in in_order[key][1:]:
                heaps[leader[key], each].append(key)

        def find(giver: int, taker: int) -> Key | None:
            heap = heaps[giver, taker]
            while heap and leader[heap[0]] != giver:
                heappop(heap)
            return heap[0] if heap else None

        def carry(key: Key, giver: int, taker: int) -> None:
            leader[key] = taker
            for each in in_order[key]:
                if each != taker:
                    heappush(heaps[taker, each], key)
            self._put(key, [taker, *(each for each in in_order[key] if each != taker)])

        _level(self.leads, sorted(self.usable), find, carry)


def _level(
    load: Counter[int],
    broker_ids: Sequence[int],
    find: Callable[[int, int], Key | None],
    carry: Callable[[Key, int, int], None],
) -> None:
    """Move partitions one at a time from the brokers with the most to those with the fewest.

    Ends when no two brokers differ by more than one, or nothing more can move. If nothing can move directly between two
    brokers, partitions move along a chain of brokers; those in between keep their load.
    """
    stuck: set[int] = set()
    while True:
        givers = sorted((each for each in broker_ids if each not in stuck), key=lambda each: (-load[each], each))
        if not givers or load[givers[0]] - min(load[each] for each in broker_ids) < 2:
            return
        giver = givers[0]
        way = _way(load, broker_ids, find, giver)
        if way is None:
            stuck.add(giver)
            continue
        for key, from_id, to_id in reversed(way):
            carry(key, from_id, to_id)


def _way(
    load: Counter[int], broker_ids: Sequence[int], find: Callable[[int, int], Key | None], giver: int
) -> list[tuple[Key, int, int]] | None:
    """Return the shortest chain of moves from a broker to one with at least two fewer, or None. Each move has its own
    partition."""
    takers = sorted(broker_ids, key=lambda each: (load[each], each))
    for taker in takers:
        if load[giver] - load[taker] >= 2 and (key := find(giver, taker)) is not None:
            return [(key, giver, taker)]
    came: dict[int, list[tuple[Key, int, int]]] = {giver: []}
    reached = [giver]
    while reached:
        nearer, reached = reached, []
        for taker in takers:
            if taker in came:
                continue
            for via in nearer:
                key = find(via, taker)
                if key is not None and all(key != step[0] for step in came[via]):
                    came[taker] = [*came[via], (key, via, taker)]
                    reached.append(taker)
                    break
            if taker in came and load[giver] - load[taker] >= 2:
                return came[taker]
    return None
