"""How soon nodes do what they do seldom: snapshots of the metadata, new segments, compaction; how busy and how far they are.

With the settings of production, twenty seconds would pass in one segment, and no log would ever be trimmed. On an idle loop
nothing would ever happen in the same turn as something else. Between nodes that are all near, no follower would ever be late.
All of it is drawn from the seed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from random import Random

SMALL = 0.7  # of the seeds have small sizes
FAR = 0.5  # of the seeds have a machine that is far from the others


def draw_sizes(random: Random) -> Mapping[str, str]:
    """Return settings under which logs are rolled, trimmed and compacted many times in a run, or none."""
    if random.random() >= SMALL:
        return {}
    return {
        "metadata.log.max.record.bytes.between.snapshots": str(random.choice((300, 1000, 3000))),
        "metadata.max.retention.bytes": str(random.choice((1000, 5000, 20_000))),
        "controller.quorum.fetch.max.bytes": str(random.choice((1, 300, 1_048_576))),  # batches are sent whole
        "controller.quorum.fetch.snapshot.max.bytes": str(random.choice((100, 1000, 1_048_576))),
        "metadata.log.segment.ms": str(random.choice((500, 2000, 604_800_000))),
        "log.roll.ms": str(random.choice((300, 2000, 604_800_000))),
        "log.initial.task.delay.ms": "500",
        "log.retention.check.interval.ms": "1000",
        "log.cleaner.backoff.ms": "500",
        "log.cleaner.min.cleanable.ratio": "0.01",
        "log.segment.delete.delay.ms": str(random.choice((0, 1000))),
    }


def draw_busyness(random: Random) -> Callable[[], float]:
    """Return how long the loop is busy, each time when it would have waited."""
    often, most_s = random.choice(((0.0, 0.0), (0.1, 0.020), (0.5, 0.002), (0.9, 0.005)))
    return lambda: random.random() * most_s if random.random() < often else 0.0


def draw_far(random: Random, machines: Sequence[str]) -> dict[str, float]:
    """Return the machine that is far from all others, if there is one, and how many times as far."""
    machine, factor = random.choice(machines), random.uniform(3, 20)
    return {machine: factor} if random.random() < FAR else {}
