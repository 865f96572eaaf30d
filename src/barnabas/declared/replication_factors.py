"""Other numbers of replicas for partitions, with as little moved as can be. Pure.

Its one rule: what is there stays. Replicas are added on brokers whose rack has none yet, and among those where there are the
fewest; they are taken away where they serve least: on brokers that are gone, out of sync, in a rack that has another, and
with the most replicas. The preferred leader is never taken away while it is alive.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, MutableMapping, Sequence
from typing import NamedTuple


class Replicas(NamedTuple):
    """Where a partition is now."""

    replicas: Sequence[int]
    isr: Sequence[int] = ()


class NotEnoughBrokersError(ValueError):
    """There are fewer brokers than replicas were asked for."""


def replica_counts(partitions: Iterable[Replicas]) -> Counter[int]:
    """How many replicas each broker has."""
    return Counter(broker for each in partitions for broker in each.replicas)


def with_replication_factor(
    partitions: Mapping[int, Replicas],
    replication_factor: int,
    racks: Mapping[int, str | None],
    loads: MutableMapping[int, int] | None = None,
) -> dict[int, list[int]]:
    """The new replicas of those partitions that change. `racks` has the brokers that are alive.

    >>> with_replication_factor({0: Replicas([1]), 1: Replicas([2])}, 2, {1: "a", 2: "a", 3: "b", 4: "c"})
    {0: [1, 3], 1: [2, 4]}
    >>> with_replication_factor({0: Replicas([1, 2, 3], isr=[1, 3])}, 2, {1: None, 2: None, 3: None})
    {0: [1, 3]}
    """
    if replication_factor > len(racks):
        raise NotEnoughBrokersError(f"{replication_factor} replicas need as many brokers, and there are {len(racks)}")
    counts: MutableMapping[int, int] = replica_counts(partitions.values()) if loads is None else loads
    changed: dict[int, list[int]] = {}
    for number, partition in sorted(partitions.items()):
        replicas = list(partition.replicas)
        while len(replicas) > replication_factor:
            dropped = max(replicas, key=lambda broker: _least_useful(broker, replicas, partition.isr, racks, counts))
            replicas.remove(dropped)
            counts[dropped] = counts.get(dropped, 0) - 1
        while len(replicas) < replication_factor:
            used = {racks.get(broker) for broker in replicas}
            free = [broker for broker in racks if broker not in replicas]
            added = min(free, key=lambda broker: (_is_shared(racks[broker], used), counts.get(broker, 0), broker))
            replicas.append(added)
            counts[added] = counts.get(added, 0) + 1
        if replicas != list(partition.replicas):
            changed[number] = replicas
    return changed


def _is_shared(rack: str | None, used: set[str | None]) -> bool:
    return rack is not None and rack in used


def _least_useful(
    broker: int, replicas: Sequence[int], isr: Sequence[int], racks: Mapping[int, str | None], counts: Mapping[int, int]
) -> tuple[bool, bool, bool, bool, int, int]:
    others = {racks.get(other) for other in replicas if other != broker}
    return (
        broker not in racks,
        broker != replicas[0],
        bool(isr) and broker not in isr,
        _is_shared(racks.get(broker), others),
        counts.get(broker, 0),
        broker,
    )
