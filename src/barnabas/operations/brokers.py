"""What partitions lose when a broker stops. Pure.

Its one rule: only what stopping makes worse counts. A partition that is offline already does not, nor one of which the broker
holds no in-sync replica.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from typing import NamedTuple

from barnabas.client.state import Partition, Topic


class Effect(Enum):
    """What would become of a partition, worst first."""

    OFFLINE = "offline"
    BELOW_MIN_ISR = "belowMinIsr"


class Affected(NamedTuple):
    """A partition that would be worse off."""

    topic: str
    partition: Partition
    effect: Effect
    min_insync_replicas: int

    def __str__(self) -> str:
        name = f"{self.topic}-{self.partition.partition_index}"
        if self.effect is Effect.OFFLINE:
            return f"{name} would be offline: no other replica is in sync"
        left = len(self.partition.isr) - 1
        return f"{name} would refuse acks=all: {left} of {self.min_insync_replicas} replicas needed would be in sync"


def affected_by(broker_id: int, topics: Iterable[Topic], min_insync_replicas: Mapping[str, int]) -> Iterator[Affected]:
    """The partitions that would be offline or below min.insync.replicas, by topic and partition."""
    for topic in sorted(topics, key=lambda each: each.name):
        least = min_insync_replicas.get(topic.name, 1)
        for partition in topic.partitions.values():
            if broker_id not in partition.isr or partition.leader_id < 0:
                continue
            left = len(partition.isr) - 1
            if left == 0:
                yield Affected(topic.name, partition, Effect.OFFLINE, least)
            elif left < least:
                yield Affected(topic.name, partition, Effect.BELOW_MIN_ISR, least)
