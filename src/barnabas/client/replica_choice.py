"""Choose replicas for another replication factor. Pure.

Its one rule: an in-sync replica on a running broker is the last to be dropped. `apply`, `topics alter` and `reassign` all
decide here.

- To shrink, drop replicas on brokers that are not running first, then those that are out of sync, then those in the rack with
  the most replicas of the partition, then those on the brokers with the most replicas: of the topic, then of all topics. The
  leader stays if it is in sync and its broker runs; the preferred leader stays unless that crowds a rack. The only in-sync
  replica stays even if its broker is not running.
- To grow, keep all replicas, and add some in the racks that the partition uses least, then on the brokers with the fewest
  replicas: of the topic, then of all topics.

Replicas that stay keep their order, and new ones follow them. Sizes in bytes are not considered, nor eligible leader replicas.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from typing import NamedTuple, TypeAlias

from barnabas.client.state import NO_LEADER

Key: TypeAlias = tuple[str, int]
"""A topic and the index of a partition."""
BrokerLoad: TypeAlias = Callable[[int], tuple[int, ...]]
"""Maps a broker id to the broker's load. Loads are only compared with each other."""


class PartitionReplicas(NamedTuple):
    """Replicas of a partition. If `isr` is empty, it is not known, and all replicas count as in sync."""

    replicas: Sequence[int]
    isr: Collection[int] = ()
    leader_id: int = NO_LEADER

    def is_in_sync(self, broker_id: int) -> bool:
        return not self.isr or broker_id in self.isr


class NotEnoughBrokersError(ValueError):
    """The replication factor is larger than the number of brokers."""

    def __init__(self, replication_factor: int, broker_count: int) -> None:
        super().__init__(
            f"replication factor {replication_factor} needs {replication_factor} brokers, and there are {broker_count}"
        )


class ReplicaCounts:
    """Number of replicas on each broker: of each topic, and of all topics."""

    def __init__(self, replicas: Mapping[Key, Sequence[int]]) -> None:
        self.of_topic: Counter[tuple[str, int]] = Counter()
        self.overall: Counter[int] = Counter()
        for (topic, _), broker_ids in replicas.items():
            self.replace(topic, (), broker_ids)

    def replace(self, topic: str, before: Iterable[int], after: Iterable[int]) -> None:
        """Count the replicas of a partition on the brokers `after`, no longer on those `before`."""
        for broker_ids, difference in ((before, -1), (after, 1)):
            for each in broker_ids:
                self.of_topic[topic, each] += difference
                self.overall[each] += difference


def with_replication_factor(
    partitions: Mapping[Key, PartitionReplicas],
    replication_factor: int,
    brokers: Mapping[int, str | None],
    counts: ReplicaCounts | None = None,
) -> dict[Key, tuple[int, ...]]:
    """Return the new replicas of those partitions that change. `brokers` are the running ones, with their racks.

    `counts` has the replicas of all topics, including these; it is updated. Raises NotEnoughBrokersError.

    >>> nodes = {1: "a", 2: "a", 3: "b", 4: "c"}
    >>> with_replication_factor({("t", 0): PartitionReplicas([1]), ("t", 1): PartitionReplicas([2])}, 2, nodes)
    {('t', 0): (1, 3), ('t', 1): (2, 4)}
    >>> with_replication_factor({("t", 0): PartitionReplicas([1, 2, 3], isr=[1, 3])}, 2, {1: None, 2: None, 3: None})
    {('t', 0): (1, 3)}
    """
    if counts is None:
        counts = ReplicaCounts({key: each.replicas for key, each in partitions.items()})
    for partition in partitions.values():
        if replication_factor > max_replicas(partition.replicas, brokers):
            raise NotEnoughBrokersError(replication_factor, len(brokers))
    changed: dict[Key, tuple[int, ...]] = {}
    for key, partition in sorted(partitions.items()):
        topic = key[0]

        def load(broker_id: int, topic: str = topic) -> tuple[int, ...]:
            return counts.of_topic[topic, broker_id], counts.overall[broker_id]

        replicas = new_replicas(partition, replication_factor, brokers, load)
        if replicas != list(partition.replicas):
            changed[key] = tuple(replicas)
            counts.replace(topic, partition.replicas, replicas)
    return changed


def max_replicas(replicas: Iterable[int], brokers: Collection[int], drained: Collection[int] = ()) -> int:
    """Return the largest replication factor possible: replicas on brokers that are not running can stay there."""
    return len({*brokers, *replicas}.difference(drained))


def new_replicas(
    partition: PartitionReplicas,
    count: int,
    brokers: Mapping[int, str | None],
    load: BrokerLoad,
    drained: Collection[int] = (),
) -> list[int]:
    """Return `count` replicas for a partition, none of them on a drained broker. There must be enough brokers.

    If there are to be fewer, an in-sync replica on a drained broker is moved to another broker, as long as there is one without
    a replica, before an out-of-sync replica is kept in its place.
    """
    kept = _kept_replicas(partition, count, brokers, load, drained)
    replicas = [None if each in drained else each for each in kept] + [None] * (count - len(kept))
    unwanted = {each for each in partition.replicas if each not in kept}.union(drained)
    for place in [place for place, each in enumerate(replicas) if each is None]:
        staying = [each for each in replicas if each is not None]
        replicas[place] = next_replica(staying, set(brokers) - unwanted, brokers, load)
    return [each for each in replicas if each is not None]


def _kept_replicas(
    partition: PartitionReplicas,
    count: int,
    brokers: Mapping[int, str | None],
    load: BrokerLoad,
    drained: Collection[int],
) -> list[int]:
    """Return the replicas whose places are kept, at most `count`. Those on drained brokers are still to be moved."""
    kept = list(partition.replicas)
    if len(kept) <= count:
        return kept
    ranks = _ranks(partition, brokers, load, drained)
    while len(kept) > count:
        used = Counter(rack_of(each, brokers) for each in kept if each not in drained)
        kept.remove(
            max(kept, key=lambda each: (ranks[each], used[rack_of(each, brokers)], *_worth(partition, each, load)))
        )
    return kept


def next_replica(
    replicas: Iterable[int], candidates: Iterable[int], brokers: Mapping[int, str | None], load: BrokerLoad
) -> int:
    """Return the candidate to add: in the rack used least, then with the least load, then with the lowest id."""
    present = set(replicas)
    used = Counter(rack_of(each, brokers) for each in present)
    free = (each for each in candidates if each not in present)
    return min(free, key=lambda each: (used[rack_of(each, brokers)], load(each), each))


def rack_of(broker_id: int, brokers: Mapping[int, str | None]) -> object:
    """Return the rack of a broker. The rack of a broker that is not running is unknown, and counts as its own."""
    return brokers.get(broker_id, broker_id)


_KEPT, _COPIED, _OUT_OF_SYNC, _NOT_RUNNING, _NOT_RUNNING_OUT_OF_SYNC, _DRAINED = range(6)


def _ranks(
    partition: PartitionReplicas, brokers: Mapping[int, str | None], load: BrokerLoad, drained: Collection[int]
) -> dict[int, int]:
    """Map each replica to its rank: the highest is dropped first."""
    ranks = {}
    for each in partition.replicas:
        if each in drained:
            ranks[each] = _DRAINED
        elif each in brokers:
            ranks[each] = _KEPT if partition.is_in_sync(each) else _OUT_OF_SYNC
        else:
            ranks[each] = _NOT_RUNNING if partition.is_in_sync(each) else _NOT_RUNNING_OUT_OF_SYNC
    by_worth = sorted(ranks, key=lambda each: _worth(partition, each, load))
    leaving = [each for each in by_worth if each in drained and each in brokers and partition.is_in_sync(each)]
    for each in leaving[: len(set(brokers).difference(drained, partition.replicas))]:
        ranks[each] = _COPIED
    stranded = [each for each in by_worth if ranks[each] == _NOT_RUNNING]
    if stranded and not {_KEPT, _COPIED}.intersection(ranks.values()):
        # Only brokers that are not running have all committed records: one of them stays, or the records are lost.
        ranks[stranded[0]] = _KEPT
    return ranks


def _worth(partition: PartitionReplicas, broker_id: int, load: BrokerLoad) -> tuple[bool, bool, tuple[int, ...], int]:
    """Sort key of replicas with the same rank, in racks with as many replicas: the one with the largest key is dropped."""
    place = partition.replicas.index(broker_id)
    return broker_id != partition.leader_id, place > 0, load(broker_id), place
