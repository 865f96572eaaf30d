"""What becomes of acquired records, and how ShareFetch and ShareAcknowledge say it. Pure.

>>> spans = [Span(7, 7, AcknowledgeType.REJECT), Span(4, 6, AcknowledgeType.ACCEPT), Span(9, 9, AcknowledgeType.ACCEPT)]
>>> for each in batches(spans):
...     print(each)
Batch(first_offset=4, last_offset=7, types=[1, 1, 1, 3])
Batch(first_offset=9, last_offset=9, types=[1])
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple

from barnabas.client.records import TopicPartition
from barnabas.wire import KafkaError, Uuid


class AcknowledgeType(IntEnum):
    """What becomes of a record: the numbers of the protocol."""

    ACCEPT = 1
    """It was processed."""
    RELEASE = 2
    """It was not processed, and may be delivered again, until its delivery limit."""
    REJECT = 3
    """It cannot be processed, and is not delivered again."""
    RENEW = 4
    """It is still being processed: its lock starts anew (Kafka 4.2). It has to be acknowledged again."""


GAP = 0
"""An offset without a record that could be delivered: a marker, or a record that was compacted away."""

_LONGEST_MIXED = 4096  # offsets of a batch with different types, each of which is written


class Span(NamedTuple):
    """Offsets with the same acknowledgement."""

    first: int
    last: int
    type: int


class Batch(NamedTuple):
    """Consecutive offsets, with one type for all, or one for each."""

    first_offset: int
    last_offset: int
    types: list[int]


def spans_of(offsets: Iterable[tuple[int, int]]) -> list[Span]:
    """Combine offsets with their types, in any order, to spans.

    >>> spans_of([(5, 1), (4, 1), (6, 2)])
    [Span(first=4, last=5, type=1), Span(first=6, last=6, type=2)]
    """
    spans: list[Span] = []
    first = last = -2
    current = -1
    for offset, kind in sorted(offsets):
        if offset == last + 1 and kind == current:
            last = offset
            continue
        if last >= 0:
            spans.append(Span(first, last, current))
        first = last = offset
        current = kind
    if last >= 0:
        spans.append(Span(first, last, current))
    return spans


def batches(spans: Iterable[Span]) -> list[Batch]:
    """Return the batches of a request: consecutive spans become one, if that is not longer than what it replaces."""
    found: list[Batch] = []
    for first, last, kind in sorted(spans):
        before = found[-1] if found else None
        if before is None or before.last_offset + 1 != first:
            found.append(Batch(first, last, [int(kind)]))
        elif before.types == [kind]:
            found[-1] = Batch(before.first_offset, last, before.types)
        elif last - before.first_offset < _LONGEST_MIXED:
            length = before.last_offset - before.first_offset + 1
            types = before.types if len(before.types) == length else before.types * length
            found[-1] = Batch(before.first_offset, last, types + [int(kind)] * (last - first + 1))
        else:
            found.append(Batch(first, last, [int(kind)]))
    return found


class Acknowledgements:
    """Acknowledgements of one partition that are sent together, and their outcome: an error, or None."""

    __slots__ = ("attempts", "deadline_s", "outcome", "place", "spans", "topic_id")

    def __init__(
        self, place: TopicPartition, topic_id: Uuid, spans: list[Span], outcome: asyncio.Future[KafkaError | None]
    ) -> None:
        self.place = place
        self.topic_id = topic_id
        self.spans = spans
        self.outcome = outcome
        self.deadline_s = float("inf")
        self.attempts = 0

    @property
    def renews(self) -> bool:
        """Whether it renews locks, which needs a request of its own kind."""
        return any(span.type == AcknowledgeType.RENEW for span in self.spans)
