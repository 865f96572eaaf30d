"""What a rehearsal comes to: the partitions that change, and the load of each broker before and after. Pure.

Its one rule: before and after are images; whatever is said about them is computed the same way for both.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from enum import Enum
from random import Random
from typing import NamedTuple

from barnabas.config.server_config import ServerConfig
from barnabas.controller.partition_change import PartitionChanges
from barnabas.controller.situation import Situation
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import NO_LEADER, Partition, Topic
from barnabas.operations.partitions import Key
from barnabas.wire import Uuid

Sizes = Mapping[Key, Mapping[int, int]]
"""Bytes of the replicas of partitions, by broker."""


class Health(Enum):
    """What clients notice of a partition, worst first."""

    OFFLINE = "offline"
    BELOW_MIN_ISR = "belowMinIsr"
    OK = "ok"
    DELETED = "deleted"


class PartitionState(NamedTuple):
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    elr: tuple[int, ...]
    health: Health
    is_reassigning: bool


ABSENT = PartitionState(None, (), (), (), Health.DELETED, False)


class PartitionOutcome(NamedTuple):
    """A partition that changes. `bytes_to_copy` is None if its size is not known."""

    topic: str
    partition: int
    before: PartitionState
    after: PartitionState
    may_lose_records: bool
    bytes_to_copy: int | None

    @property
    def is_worse(self) -> bool:
        return self.may_lose_records or _ORDER[self.after.health] > _ORDER[self.before.health]


_ORDER = {Health.DELETED: 0, Health.OK: 0, Health.BELOW_MIN_ISR: 1, Health.OFFLINE: 2}


class BrokerState(NamedTuple):
    status: str
    leaders: int
    replicas: int
    bytes: int | None


class BrokerOutcome(NamedTuple):
    """A broker before and after. `bytes_in` is what is copied to it. Bytes are None if they are not known."""

    broker_id: int
    rack: str | None
    before: BrokerState
    after: BrokerState
    bytes_in: int | None


class Outcome(NamedTuple):
    partitions: list[PartitionOutcome]
    brokers: list[BrokerOutcome]

    @property
    def bytes_to_copy(self) -> int:
        return sum(each.bytes_to_copy or 0 for each in self.partitions)

    @property
    def are_bytes_known(self) -> bool:
        return all(each.bytes_to_copy is not None for each in self.partitions)

    @property
    def worse(self) -> list[PartitionOutcome]:
        return [each for each in self.partitions if each.is_worse]


def compare(
    before: MetadataImage,
    after: MetadataImage,
    config: ServerConfig,
    sizes: Sizes | None = None,
    unclean: Collection[tuple[Uuid, int]] = (),
    dead: Collection[int] = (),
) -> Outcome:
    """Compare two images. Without `sizes`, nothing is known of bytes. `unclean` had unclean elections in between.

    The `dead` may still be leaders in the image, if nothing could be decided. Nobody reaches them.
    """
    partitions = list(_partitions(_States(before, config), _States(after, config, dead), sizes, unclean))
    moved_in: Counter[int] = Counter()
    moved_out: Counter[int] = Counter()
    unknown: set[int] = set()
    for each in partitions:
        size = _size(sizes, (each.topic, each.partition), each.before.leader)
        for broker_id in set(each.after.replicas) - set(each.before.replicas):
            if size is None and each.before is not ABSENT:
                unknown.add(broker_id)
            moved_in[broker_id] += size or 0
        for broker_id in set(each.before.replicas) - set(each.after.replicas):
            moved_out[broker_id] += (sizes or {}).get((each.topic, each.partition), {}).get(broker_id, 0)
    used: Counter[int] = Counter()
    for replicas in (sizes or {}).values():
        used.update(replicas)
    then, now = _counts(before), _counts(after)
    brokers = []
    for broker_id in sorted({*before.brokers, *after.brokers, *then.replicas, *now.replicas}):
        known = broker_id in used and broker_id not in unknown
        stays = used[broker_id] + moved_in[broker_id] - moved_out[broker_id]
        registered = after.brokers.get(broker_id) or before.brokers.get(broker_id)
        brokers.append(
            BrokerOutcome(
                broker_id,
                None if registered is None else registered.rack,
                _broker(before, then, broker_id, used.get(broker_id)),
                _broker(after, now, broker_id, stays if known else None, is_dead=broker_id in dead),
                None if sizes is None or broker_id in unknown else moved_in[broker_id],
            )
        )
    return Outcome(partitions, brokers)


class _Counts(NamedTuple):
    leaders: Counter[int]
    replicas: Counter[int]


def _counts(image: MetadataImage) -> _Counts:
    counts = _Counts(Counter(), Counter())
    for topic in image.topics.by_id.values():
        for partition in topic.partitions:
            counts.replicas.update(partition.replicas)
            if partition.leader != NO_LEADER:
                counts.leaders[partition.leader] += 1
    return counts


def _broker(
    image: MetadataImage, counts: _Counts, broker_id: int, used: int | None, *, is_dead: bool = False
) -> BrokerState:
    broker = image.brokers.get(broker_id)
    status = "missing" if broker is None else "fenced" if broker.fenced else "dead" if is_dead else "ok"
    return BrokerState(status, counts.leaders[broker_id], counts.replicas[broker_id], used)


def _size(sizes: Sizes | None, key: Key, leader: int | None) -> int | None:
    """Return the bytes of a partition: of its leader, or of its largest replica."""
    found = (sizes or {}).get(key)
    if not found:
        return None
    return max(found.values()) if leader is None or leader not in found else found[leader]


def _partitions(
    then: _States, now: _States, sizes: Sizes | None, unclean: Collection[tuple[Uuid, int]]
) -> Iterator[PartitionOutcome]:
    """Yield the partitions that differ, by topic and partition. A topic that is created again is another one."""
    before, after = then.image, now.image
    names = {topic.topic_id: topic.name for image in (after, before) for topic in image.topics.by_id.values()}
    for topic_id, name in sorted(names.items(), key=lambda item: (item[1], item[0])):
        old, new = before.topics.by_id.get(topic_id), after.topics.by_id.get(topic_id)
        if old is new and then.min_isr(old) == now.min_isr(new) and not now.dead:
            continue
        for index in range(max(len(each.partitions) if each is not None else 0 for each in (old, new))):
            one, other = then.of(old, index), now.of(new, index)
            if one == other:
                continue
            copies = len(set(other.replicas) - set(one.replicas)) if one is not ABSENT else 0
            size = _size(sizes, (name, index), one.leader)
            yield PartitionOutcome(
                name,
                index,
                one,
                other,
                (topic_id, index) in unclean,
                0 if not copies else None if size is None else copies * size,
            )


def _partition(topic: Topic | None, index: int) -> Partition | None:
    return topic.partitions[index] if topic is not None and index < len(topic.partitions) else None


class _States:
    """The states of partitions in one image."""

    def __init__(self, image: MetadataImage, config: ServerConfig, dead: Collection[int] = ()) -> None:
        self.image = image
        self.dead = dead
        self._changes = PartitionChanges(Situation(image, config, 0, Random(0)))

    def min_isr(self, topic: Topic | None) -> int:
        return 0 if topic is None else self._changes.rules_of(topic).min_isr

    def of(self, topic: Topic | None, index: int) -> PartitionState:
        partition = _partition(topic, index)
        if topic is None or partition is None:
            return ABSENT
        health = Health.OK
        if partition.leader == NO_LEADER or partition.leader in self.dead:
            health = Health.OFFLINE
        elif len(partition.isr) < self.min_isr(topic):
            health = Health.BELOW_MIN_ISR
        leader = None if partition.leader == NO_LEADER else partition.leader
        return PartitionState(
            leader, partition.replicas, partition.isr, partition.elr, health, partition.is_reassigning
        )
