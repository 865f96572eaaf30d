"""Selections of partitions: `orders` for a topic, `orders:0` or `orders:0,2` for some of its partitions.

Its one rule: a selected topic or partition must exist. If it does not, an `OperationError` names it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.operations.errors import OperationError, refused
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.state import ClusterState

_NUMBERS = re.compile("[0-9]+(?:,[0-9]+)*")

Key = tuple[str, int]
"""A topic and the number of a partition."""


class Selection(NamedTuple):
    """A topic, and some of its partitions; None selects all."""

    topic: str
    partitions: tuple[int, ...] | None = None

    def covers(self, topic: str, partition: int) -> bool:
        return topic == self.topic and (self.partitions is None or partition in self.partitions)


def parse_selection(text: str) -> Selection:
    """Parse `TOPIC` or `TOPIC:0,1`. Raises ValueError.

    >>> parse_selection("orders"), parse_selection("orders:0,2")
    (Selection(topic='orders', partitions=None), Selection(topic='orders', partitions=(0, 2)))
    """
    topic, colon, numbers = text.partition(":")
    if not topic:
        raise ValueError(f"{text!r}: the name of a topic is missing")
    if not colon:
        return Selection(topic)
    if not _NUMBERS.fullmatch(numbers):
        raise ValueError(f"{text!r}: partitions are numbers, as in orders:0 or orders:0,2")
    return Selection(topic, tuple(map(int, numbers.split(","))))


class Selected(NamedTuple):
    """The state of the topics, and the selected partitions, in order."""

    state: ClusterState
    keys: list[Key]


def require_brokers(cluster: Cluster) -> None:
    """Raise OperationError if only controllers are known: they do not describe topics and disks."""
    if not cluster.state.brokers:
        raise OperationError("only brokers can answer that, and these are controllers", advice="use --bootstrap-server")


async def find_partitions(cluster: Cluster, selections: Iterable[Selection]) -> Selected:
    """Find the selected partitions, or all of the cluster if nothing is selected. Raises OperationError."""
    require_brokers(cluster)
    asked = list(selections)
    state = await cluster.metadata([each.topic for each in asked] if asked else None)
    for topic, code in state.errors.items():
        if asked or code is not ErrorCode.UNKNOWN_TOPIC_OR_PARTITION:  # one may just have been deleted
            raise refused(KafkaError(code), f"topic {topic}")
    keys: dict[Key, None] = {}
    for topic, numbers in asked or [Selection(name) for name in sorted(state.topics)]:
        there = state.topics[topic].partitions
        for number in sorted(there) if numbers is None else numbers:
            if number not in there:
                raise OperationError(
                    f"it has partitions 0 to {len(there) - 1}, not {number}", resource=f"topic {topic}"
                )
            keys[topic, number] = None
    return Selected(state, list(keys))
