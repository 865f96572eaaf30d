"""The number of partitions that a topic should have. Pure.

Its one rule: every count comes with its reasons. The count is the largest of those that writing, reading and the consumers
need. Nothing is measured here: the caller provides measured or expected throughputs.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil

from barnabas.operations.quantities import bytes_text

MANY_PARTITIONS = 4_000
"""More partitions than this in one topic cause a warning."""


@dataclass(frozen=True, slots=True)
class Load:
    """The load of a topic and the throughput of one partition, in bytes per second; None if unknown."""

    throughput: int
    producer_throughput: int | None = None
    consumer_throughput: int | None = None
    consumers: int | None = None
    growth: float = 1.0


@dataclass(frozen=True, slots=True)
class PartitionCount:
    """A number of partitions, the reasons for it with the decisive one first, and warnings."""

    partitions: int
    reasons: tuple[str, ...]
    warnings: tuple[str, ...]


def plan_partitions(load: Load, present: int | None = None) -> PartitionCount:
    """Compute the count for a new topic, or for one that has `present` partitions now.

    >>> plan = plan_partitions(Load(100_000_000, producer_throughput=20_000_000, consumers=4))
    >>> plan.partitions, plan.reasons[0]
    (8, 'writing 100 MB/s at 20 MB/s per partition needs 5')
    >>> plan.reasons[1:]
    ('4 consumers need at least one partition each: 4', 'with a multiple of 4, each consumer gets equally many: 8')
    """
    target = int(load.throughput * load.growth)
    grown = f" (with room to grow {load.growth:g} times)" if load.growth != 1 else ""
    needs: list[tuple[int, str]] = []
    for verb, each in (("writing", load.producer_throughput), ("reading", load.consumer_throughput)):
        if each:
            count = ceil(target / each)
            text = f"{verb} {bytes_text(target)}/s{grown} at {bytes_text(each)}/s per partition needs {count}"
            needs.append((count, text))
    if load.consumers:
        text = f"{load.consumers} consumers need at least one partition each: {load.consumers}"
        needs.append((load.consumers, text))
    needs.sort(key=lambda need: -need[0])
    count = max((need[0] for need in needs), default=1)
    reasons = [text for _, text in needs]
    if load.consumers and count % load.consumers:
        count = ceil(count / load.consumers) * load.consumers
        reasons.append(f"with a multiple of {load.consumers}, each consumer gets equally many: {count}")
    return PartitionCount(max(count, 1), tuple(reasons), tuple(_warnings(count, present)))


def _warnings(count: int, present: int | None) -> list[str]:
    found = ["the number of partitions can be increased later, never decreased"]
    if present is None:
        found.append("when it is increased, records of one key go to another partition from then on")
    elif present < count:
        found.append(
            f"from {present} to {count}: records of one key go to another partition from then on; "
            "if order by key matters, create a new topic and migrate to it"
        )
    elif present > count:
        found.append(f"it has {present} already, which is enough and cannot be decreased")
    else:
        found.append(f"it has {present} already")
    if count > MANY_PARTITIONS:
        found.append(
            f"{count} partitions are many: each costs files, memory and time on every broker that has a replica"
        )
    return found
