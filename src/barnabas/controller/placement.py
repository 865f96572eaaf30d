"""Places the replicas of new partitions on brokers.

First, a partition is spread across racks. Second, partitions are spread across the brokers of a rack. Third, fenced
brokers are used only if a rack has no others left, and never as the first replica. Racks take turns, and so do the
brokers of a rack, from a random start and in an order that is shuffled after each round. Brokers that are shutting
down, or whose log directories are all cordoned, get no replicas. Existing replicas are not taken into account.
"""

from __future__ import annotations

from collections.abc import Iterable
from random import Random
from typing import NamedTuple, TypeVar

from barnabas.metadata.brokers import Broker
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import MIGRATING_DIR, UNASSIGNED_DIR
from barnabas.wire import ErrorCode, KafkaError, Uuid

T = TypeVar("T")


class UsableBroker(NamedTuple):
    """A broker that may get replicas."""

    broker_id: int
    rack: str | None = None
    fenced: bool = False


def usable_brokers(image: MetadataImage) -> list[UsableBroker]:
    return [
        UsableBroker(broker_id, broker.rack, broker.fenced)
        for broker_id, broker in sorted(image.brokers.items())
        if not broker.in_controlled_shutdown and _has_room(broker)
    ]


def _has_room(broker: Broker) -> bool:
    if not broker.log_dirs or broker.cordoned_log_dirs is None:
        return True
    return any(directory not in broker.cordoned_log_dirs for directory in broker.log_dirs)


def is_active(image: MetadataImage, broker_id: int) -> bool:
    """Whether the broker may lead and be in sync."""
    broker = image.brokers.get(broker_id)
    return broker is not None and not broker.fenced and not broker.in_controlled_shutdown


def default_directory(image: MetadataImage, broker_id: int) -> Uuid:
    """Return the log directory of a new replica: that of the broker if it has only one, else unassigned."""
    version = image.metadata_version
    if version is None or not version.is_directory_assignment_supported:
        return MIGRATING_DIR
    broker = image.brokers.get(broker_id)
    if broker is None:
        return UNASSIGNED_DIR
    if not broker.log_dirs:
        return MIGRATING_DIR
    return broker.log_dirs[0] if len(broker.log_dirs) == 1 else UNASSIGNED_DIR


def place(
    brokers: Iterable[UsableBroker], partitions: int, replication_factor: int, random: Random
) -> list[tuple[int, ...]]:
    """Return the replicas of each new partition, preferred leader first. Raises INVALID_REPLICATION_FACTOR."""
    usable = sorted(brokers)
    if replication_factor <= 0:
        raise _refused(f"Invalid replication factor {replication_factor}: the replication factor must be positive.")
    if all(broker.fenced for broker in usable):
        raise _refused("All brokers are currently fenced, or have all their log directories cordoned.")
    if replication_factor > len(usable):
        raise _refused(
            f"The target replication factor of {replication_factor} cannot be reached because only {len(usable)} "
            "broker(s) are registered or some brokers have all their log directories cordoned."
        )
    if len(usable) == 1:  # the common case, a single node
        return [(usable[0].broker_id,)] * partitions
    racks = _Racks(usable, random)
    return [racks.place(replication_factor) for _ in range(partitions)]


def _refused(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


class _Rack:
    """The brokers of a rack, and whose turn it is to lead, to follow, and to follow while fenced."""

    __slots__ = ("fenced", "fenced_turn", "follower_turn", "followers", "leader_turn", "random", "unfenced")

    def __init__(self, brokers: Iterable[UsableBroker], random: Random) -> None:
        by_fenced: tuple[list[int], list[int]] = [], []
        for broker in brokers:
            by_fenced[broker.fenced].append(broker.broker_id)
        self.unfenced, self.fenced = (_rotated(ids, random) for ids in by_fenced)
        self.followers = self.unfenced[::-1]  # the first leader is the last follower
        self.leader_turn = self.follower_turn = self.fenced_turn = 0
        self.random = random

    def leader(self) -> int:
        return self.unfenced[self.leader_turn]

    def follower(self, nth: int, *, leads: bool) -> int | None:
        """Return the nth follower of this rack in one partition.

        In the leader's rack, followers start right after it.
        """
        if leads and nth < len(self.unfenced) - 1:
            return self.unfenced[(self.leader_turn + 1 + nth) % len(self.unfenced)]
        if not leads and nth < len(self.unfenced):
            return self.followers[(self.follower_turn + nth) % len(self.followers)]
        nth -= len(self.unfenced) - leads
        return self.fenced[(self.fenced_turn + nth) % len(self.fenced)] if nth < len(self.fenced) else None

    def advance(self, took: int, *, leads: bool) -> None:
        """Advance the turns after a partition with `took` followers, and possibly the leader, in this rack."""
        unfenced = min(took, len(self.unfenced) - leads)
        if took > unfenced:
            self.fenced_turn = (self.fenced_turn + took - unfenced) % len(self.fenced)
        if not leads:
            self.follower_turn = (self.follower_turn + unfenced) % max(len(self.followers), 1)
            return
        self.leader_turn += 1
        if self.leader_turn == len(self.unfenced):
            # Everyone has led once: another order makes other pairs of leader and follower.
            self.random.shuffle(self.unfenced)
            self.leader_turn = 0


class _Racks:
    """All racks, in the order in which they take turns."""

    __slots__ = ("order", "random", "turn")

    def __init__(self, brokers: Iterable[UsableBroker], random: Random) -> None:
        by_rack: dict[str | None, list[UsableBroker]] = {}
        for broker in brokers:
            by_rack.setdefault(broker.rack, []).append(broker)
        names = sorted(by_rack, key=lambda name: (name is not None, name or ""))
        self.order = _rotated([_Rack(by_rack[name], random) for name in names], random)
        self.turn = 0
        self.random = random

    def place(self, replication_factor: int) -> tuple[int, ...]:
        order, count = self.order, len(self.order)
        first = at = self.turn
        while not order[first].unfenced:
            first = (first + 1) % count
        chosen = [order[first].leader()]
        took = {first: 0}
        passed_first = False
        while len(chosen) < replication_factor:
            if at == first and not passed_first:
                passed_first = True
            else:
                follower = order[at].follower(took.get(at, 0), leads=at == first)
                if follower is not None:
                    chosen.append(follower)
                    took[at] = took.get(at, 0) + 1
            at = (at + 1) % count
        for n, followers in took.items():
            order[n].advance(followers, leads=n == first)
        self._next_turn()
        return tuple(chosen)

    def _next_turn(self) -> None:
        self.turn += 1
        if self.turn == len(self.order):
            self.random.shuffle(self.order)
            self.turn = 0


def _rotated(items: list[T], random: Random) -> list[T]:
    start = random.randrange(len(items)) if items else 0
    return items[start:] + items[:start]
