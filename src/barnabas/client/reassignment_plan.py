"""Where replicas should go: rebalance, add brokers, drain brokers, change the number of replicas. Pure.

The one rule: nothing moves that need not. What must move (from a drained broker, to another number of replicas) is placed
first, by `client.replication_factor`: in the rack that the partition uses least, on the broker with least to do. Only then,
and only if asked for, are replicas moved to level the brokers: one at a time, from a broker to one that has at least two
fewer, never at the cost of racks. At last leaders are levelled by the order of replicas, which moves no bytes, in partitions
that the plan touches anyway (or in all, if asked to rebalance). Another number of replicas alone levels nothing. Replicas that
stay keep their order, unless one of them is to lead.

>>> plan({("orders", 0): (1, 2), ("orders", 1): (2, 1)}, {1: None, 2: None, 3: None}, drain={2}).targets
{('orders', 0): (1, 3), ('orders', 1): (3, 1)}

A replica on a broker that is not among `brokers`, because it is not running, stays there unless that broker is drained. With
fewer replicas, none that is in sync is dropped in favour of one that is out of sync, drained or not. It does not know sizes of
disks: it counts replicas and leaders, and prefers small partitions to move.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from barnabas.client.replication_factor import (
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
    """What is asked for cannot be: too few brokers, or brokers that are not there."""


class Load(NamedTuple):
    """What a broker has before and after; bytes are those of its replicas."""

    replicas_before: int
    replicas_after: int
    leaders_before: int
    leaders_after: int
    bytes_in: int


@dataclass(frozen=True, slots=True)
class Plan:
    """`targets` has the partitions that change, with the replicas they should have; `current` what all of them have now."""

    current: Mapping[Key, Replicas]
    targets: Mapping[Key, Replicas]
    sizes: Mapping[Key, int]

    def adding(self, key: Key) -> Replicas:
        return tuple(each for each in self.targets[key] if each not in self.current[key])

    def removing(self, key: Key) -> Replicas:
        return tuple(each for each in self.current[key] if each not in self.targets[key])

    def bytes_to_copy(self, key: Key) -> int | None:
        """What new replicas have to copy; None where the size of the partition is not known."""
        added, size = len(self.adding(key)), self.sizes.get(key)
        return 0 if not added else None if size is None else size * added

    def loads(self, broker_ids: Iterable[int]) -> dict[int, Load]:
        """For each of these brokers, and those that have a replica before or after, what it has."""
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
) -> Plan:
    """The changes that make `current` as it is asked for; `brokers` are those that run, with their racks.

    `drain` takes everything from these brokers; `add` gives brokers their share, and moves replicas only to them;
    `replication_factor` adds or removes replicas; `rebalance` levels all brokers and mends racks. They can be combined.
    `sizes` are bytes of partitions, `others` how many replicas of other topics each broker has: both only break ties among
    brokers that have as many replicas of the topic.
    `isr` and `leaders` decide which replicas stay if there are to be fewer; a partition without an ISR counts as in sync.
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
    return Plan(before, {key: each for key, each in targets.items() if each != before[key]}, dict(sizes or {}))


def _check(
    current: Mapping[Key, Sequence[int]],
    brokers: Mapping[int, str | None],
    drain: Collection[int],
    add: Collection[int],
    replication_factor: int | None,
) -> None:
    if missing := sorted(set(add) - set(brokers)):
        raise PlanError(f"{_names(missing)} to be added: not running, or not there")
    if both := sorted(set(add) & set(drain)):
        raise PlanError(f"{_names(both)}: to be added and to be drained at once")
    known = set(brokers).union(*current.values())
    if missing := sorted(set(drain) - known):
        raise PlanError(f"{_names(missing)} to be drained: not running, and without any replica")
    if replication_factor is not None and replication_factor < 1:
        raise PlanError(f"a replication factor of {replication_factor}: it must be at least 1")
    remaining = set(brokers) - set(drain)
    for (topic, index), replicas in current.items():
        wanted = replication_factor or len(replicas)
        if wanted > max_replicas(replicas, brokers, drain):
            raise PlanError(
                f"{topic}-{index} needs {wanted} replicas, and only {len(remaining)} broker"
                f"{'s are' if len(remaining) != 1 else ' is'} left to have them"
            )


def _names(broker_ids: Sequence[int]) -> str:
    return f"broker{'s' if len(broker_ids) != 1 else ''} {', '.join(map(str, broker_ids))}"


class _State:
    """The assignment as it is being made, with what is counted about it."""

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
        self.on_the_way: dict[int, set[Key]] = defaultdict(set)  # what this plan has put there, and may put elsewhere
        self.had_to_move: set[Key] = set()
        self.barred: dict[Key, frozenset[int]] = {}
        """Brokers whose out-of-sync replicas were dropped: in-sync replicas must not be moved there."""
        self.changes: Counter[int] = Counter()
        self.nothing: dict[
            tuple[int, int], int
        ] = {}  # between these nothing can move, as long as the giver's changes stay
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
        """Give a partition other replicas, and count them."""
        old = self.replicas[key]
        for each in set(old) - set(replicas):
            self._count(key, each, -1)
        for each in set(replicas) - set(old):
            self._count(key, each, 1)
        self.leads[old[0]] -= 1
        self.leads[replicas[0]] += 1
        self.changes.update({*old, *replicas})
        self.replicas[key] = replicas

    # --- what must be

    def place(self, key: Key, count: int) -> None:
        """Without replicas on drained brokers, and as many as there should be; who comes takes the place of who goes."""
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
        """How far from being spread over racks; as low as it can be when they are."""
        return sum(count * count for count in Counter(map(self._rack, replicas)).values())

    def _would_crowd(self, replicas: Iterable[int], giver: int, taker: int) -> bool:
        """Whether to replace one by the other, of another rack, makes them less spread."""
        racks = [self._rack(each) for each in replicas]
        return racks.count(self._rack(taker)) >= racks.count(self._rack(giver))

    def mend_racks(self, key: Key) -> None:
        """Replace one replica after the other by one of another rack, as long as that spreads them."""
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

    # --- what should be level

    def level_replicas(self) -> None:
        """As many replicas on each broker, as far as those may move that are not where they were, or go where `onto` says."""

        def carry(key: Key, giver: int, taker: int) -> None:
            self._put(key, [taker if each == giver else each for each in self.replicas[key]])

        _level(self.load, sorted(self.usable), self._movable, carry)

    def _movable(self, giver: int, taker: int) -> Key | None:
        """The partition whose replica had best go from one broker to the other; None if there is none."""
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
        """Who stays is where it was, who comes takes the place of who goes: some have left and come back meanwhile."""
        now = self.replicas[key]
        coming = iter([each for each in now if each not in before])
        places = [each if each in now else next(coming, None) for each in before]
        self._put(key, [*(each for each in places if each is not None), *coming])

    def level_leaders(self, keys: Iterable[Key]) -> None:
        """As many first replicas on each broker, by the order of replicas in these partitions."""
        led: dict[int, set[Key]] = defaultdict(set)
        in_order = {key: list(self.replicas[key]) for key in keys}
        for key, replicas in in_order.items():
            led[replicas[0]].add(key)

        def find(giver: int, taker: int) -> Key | None:
            return min((key for key in led[giver] if taker in self.replicas[key]), default=None)

        def carry(key: Key, giver: int, taker: int) -> None:
            led[giver].discard(key)
            led[taker].add(key)
            self._put(key, [taker, *(each for each in in_order[key] if each != taker)])

        _level(self.leads, sorted(self.usable), find, carry)


def _level(
    load: Counter[int],
    broker_ids: Sequence[int],
    find: Callable[[int, int], Key | None],
    carry: Callable[[Key, int, int], None],
) -> None:
    """Carry one thing after the other from who has most to who has least, until no two brokers differ by more than one, or
    nothing can be carried between those that do. Where it cannot go directly it goes by way of others, whose load stays.
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
    """The shortest way from a broker to the one with least to do; each step carries another partition."""
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
