"""Reads the records of a partition in a response to ShareFetch: those that this member has acquired. Pure.

Its one rule: each acquired offset ends up in exactly one place: it has a record, or it is a gap (a marker, or compacted away),
or it belongs to a batch that cannot be read. Records that were not acquired are left out.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, NamedTuple

from barnabas.batches import BatchError, Record, TimestampType, check_crc, decode_records, iterate_batches
from barnabas.batches.format import Buffer, Headers
from barnabas.client.records import K, V
from barnabas.client.share_consuming.acknowledgements import GAP, AcknowledgeType, Span

_new = tuple.__new__


class ShareRecord(NamedTuple, Generic[K, V]):
    """A record that was acquired for this member. `delivery_count` is 1 when it is delivered for the first time.

    Key and value are bytes, or whatever the deserializers of the consumer return. `timestamp` is in milliseconds.
    """

    topic: str
    partition: int
    offset: int
    timestamp: int
    key: K | None
    value: V | None
    headers: Headers
    delivery_count: int


class Acquired(NamedTuple):
    """Acquired offsets, and how often they were delivered, this time included."""

    first: int
    last: int
    delivery_count: int


class ReadResult(NamedTuple):
    """Records to deliver, acknowledgements of offsets that have none, and the error of a batch that cannot be read."""

    records: list[ShareRecord]
    spans: list[Span]
    error: BatchError | None
    timestamp_type: TimestampType


def read_acquired(
    topic: str, partition: int, data: Buffer, acquired: Iterable[Acquired], *, check_crcs: bool
) -> ReadResult:
    """Read the acquired records of a response.

    The acquired offsets of a corrupt batch are rejected, as by Kafka's share consumer. If the data cannot be followed any
    further, the rest is released.
    """
    found: list[ShareRecord] = []
    spans: list[Span] = []
    cursor = _Cursor(sorted(acquired))
    error: BatchError | None = None
    timestamp_type = TimestampType.CREATE_TIME
    try:
        for start, header in iterate_batches(data, tolerate_truncated=True):
            if header.is_control:
                continue
            try:
                if check_crcs:
                    check_crc(header, data, start)
                records = decode_records(data, start, header)
            except BatchError as raised:
                error = error or raised
                spans += cursor.skip_to(header.base_offset, GAP)
                spans += cursor.skip_to(header.last_offset + 1, AcknowledgeType.REJECT)
                continue
            timestamp_type = header.timestamp_type
            _take(topic, partition, records, cursor, found, spans)
    except BatchError as raised:
        error = error or raised
        spans += cursor.skip_to(None, AcknowledgeType.RELEASE)
    spans += cursor.skip_to(None, GAP)
    return ReadResult(found, spans, error, timestamp_type)


def _take(
    topic: str, partition: int, records: list[Record], cursor: _Cursor, found: list[ShareRecord], spans: list[Span]
) -> None:
    """Add the acquired ones of these records."""
    if not records:
        return
    first, last = records[0].offset, records[-1].offset
    count = cursor.take_whole(first, last) if last - first + 1 == len(records) else None
    if count is not None:  # a whole batch at once
        found += [_new(ShareRecord, (topic, partition, *record, count)) for record in records]
        return
    for record in records:
        spans += cursor.skip_to(record.offset, GAP)
        count = cursor.take(record.offset)
        if count is not None:
            found.append(_new(ShareRecord, (topic, partition, *record, count)))


class _Cursor:
    """Walks through acquired offsets in order."""

    def __init__(self, acquired: list[Acquired]) -> None:
        self._ranges: Iterator[Acquired] = iter(acquired)
        self._next = next(self._ranges, None)
        self._at = self._next.first if self._next is not None else 0

    def _move(self, offset: int) -> None:
        """Continue at an offset of the current range, or in the next range."""
        assert self._next is not None
        self._at = offset
        if offset > self._next.last:
            self._next = next(self._ranges, None)
            if self._next is not None:
                self._at = self._next.first

    def take(self, offset: int) -> int | None:
        """Take this offset. Returns its delivery count, or None if it is not acquired."""
        if self._next is None or offset != self._at:
            return None
        count = self._next.delivery_count
        self._move(offset + 1)
        return count

    def take_whole(self, first: int, last: int) -> int | None:
        """Take these offsets, if they are the next ones and have the same count."""
        if self._next is None or first != self._at or last > self._next.last:
            return None
        count = self._next.delivery_count
        self._move(last + 1)
        return count

    def skip_to(self, offset: int | None, type: int) -> list[Span]:
        """Skip the acquired offsets before this one, or all, and return them as spans."""
        spans = []
        while self._next is not None and (offset is None or self._at < offset):
            last = self._next.last if offset is None else min(self._next.last, offset - 1)
            spans.append(Span(self._at, last, type))
            self._move(last + 1)
        return spans


def deserialized(
    record: ShareRecord,
    key_deserializer: Callable[[bytes], Any] | None,
    value_deserializer: Callable[[bytes], Any] | None,
) -> ShareRecord[Any, Any]:
    """Return a record with key and value deserialized. Raises what the deserializers raise."""
    key: Any = record.key
    value: Any = record.value
    if key is not None and key_deserializer is not None:
        key = key_deserializer(key)
    if value is not None and value_deserializer is not None:
        value = value_deserializer(value)
    return _new(ShareRecord, (*record[:4], key, value, record.headers, record.delivery_count))
