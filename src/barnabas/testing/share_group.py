"""What a share group has in flight on a broker, for assertions: which records are acquired, by whom, how often delivered.

It looks into the leader's memory, so it acquires nothing and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple

from barnabas.broker.node import Node
from barnabas.replicas.share.in_flight import RecordState
from barnabas.replicas.share.led import LedSharePartition, ShareKey
from barnabas.wire import ErrorCode, KafkaError

Look = Callable[[str, int, Callable[[Node], "list[InFlight]"]], "list[InFlight]"]
"""Calls a function with the node that leads a partition of a topic."""


class InFlight(NamedTuple):
    """Consecutive records with the same state: available, acquired, acknowledged or archived.

    `member_id` is empty unless they are acquired. An archived record was rejected, or delivered too often.
    """

    first_offset: int
    last_offset: int
    state: str
    member_id: str
    delivery_count: int


class ShareGroup:
    """A share group. Its partitions are loaded when a member first fetches them; until then nothing is in flight."""

    def __init__(self, group_id: str, look: Look) -> None:
        self.group_id = group_id
        self._look = look

    def acquired(self, topic: str, partition: int = 0) -> list[InFlight]:
        """Return the records that members have acquired and not acknowledged, in order."""
        return [each for each in self.in_flight(topic, partition) if each.state == "acquired"]

    def in_flight(self, topic: str, partition: int = 0) -> list[InFlight]:
        """Return all records from the start offset of the group to the last one that was delivered, in order."""
        return self._look(topic, partition, lambda node: _in_flight(node, self.group_id, topic, partition))

    def called_through(self, call: Callable[[Coroutine[Any, Any, list[InFlight]]], list[InFlight]]) -> ShareGroup:
        """Return the same for callers in another thread than the event loop. `call` runs a coroutine there."""

        async def look(topic: str, partition: int) -> list[InFlight]:
            return self.in_flight(topic, partition)

        return ShareGroup(self.group_id, lambda topic, partition, _: call(look(topic, partition)))

    def __repr__(self) -> str:
        return f"ShareGroup({self.group_id!r})"


def _in_flight(node: Node, group_id: str, topic: str, partition: int) -> list[InFlight]:
    found = node.image.topics.get(topic)
    if found is None or not 0 <= partition < len(found.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"There is no partition {partition} of topic {topic!r}.")
    led: LedSharePartition | None = node.share_partitions.get(ShareKey(group_id, found.topic_id, partition))
    if led is None or led.state is None:
        return []
    rows: list[InFlight] = []
    for span in led.state.spans:
        first = max(span.first, led.state.start_offset)
        if first > span.last:
            continue
        state = RecordState(span.state).name.lower()
        row = InFlight(first, span.last, state, span.member_id, span.delivery_count)
        if rows and rows[-1].last_offset + 1 == first and rows[-1][2:] == row[2:]:
            rows[-1] = rows[-1]._replace(last_offset=span.last)
        else:
            rows.append(row)
    return rows
