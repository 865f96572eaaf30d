"""The records of a batch as byte ranges of its payload, and batches with some of them removed, for compaction.

Its one rule: only the key of a record is decoded, and whether it has a value; everything else is copied as bytes. A
batch keeps its first and last offset, its producer and its codec, whatever is removed, and the result equals what Kafka
writes. The caller decides which records stay.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from barnabas.batches.builder import encode_batch
from barnabas.batches.errors import BatchError
from barnabas.batches.format import (
    COMPRESSION_MASK,
    DELETE_HORIZON_BIT,
    NO_TIMESTAMP,
    BatchHeader,
    Compression,
    TimestampType,
)
from barnabas.batches.varint import encode_varint, read_raw_varint, read_raw_varlong


class RecordSpan(NamedTuple):
    """The position of a record in a payload. `rest` is the position after its timestamp, which may have to change."""

    start: int
    rest: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def walk_spans(payload: bytes, position: int, count: int) -> list[RecordSpan]:
    """Return the next `count` records from `position` on. Raises BatchError if their lengths are inconsistent."""
    # A hot loop like that of the reader: varints of one and two bytes are decoded inline. In their zigzag form, odd is
    # negative, which means null.
    spans: list[RecordSpan] = []
    append = spans.append
    new = tuple.__new__
    size = len(payload)
    try:
        for _ in range(count):
            start = position
            length = payload[position]
            position += 1
            if length >= 0x80:
                if (byte := payload[position]) < 0x80:
                    length += (byte << 7) - 0x80
                    position += 1
                else:
                    length, position = read_raw_varint(payload, start)
            end = position + (length >> 1)

            timestamp = payload[position + 1]  # after the attributes
            position += 2
            if timestamp >= 0x80:
                if (byte := payload[position]) < 0x80:
                    timestamp += (byte << 7) - 0x80
                    position += 1
                else:
                    timestamp, position = read_raw_varlong(payload, position - 1)
            rest = position

            offset = payload[position]
            position += 1
            if offset >= 0x80:
                if (byte := payload[position]) < 0x80:
                    offset += (byte << 7) - 0x80
                    position += 1
                else:
                    offset, position = read_raw_varint(payload, rest)

            key = None
            key_length = payload[position]
            position += 1
            if key_length >= 0x80:
                key_length, position = read_raw_varint(payload, position - 1)
            if not key_length & 1:
                key = payload[position : (position := position + (key_length >> 1))]
            has_value = not payload[position] & 1
            if offset & 1 or length & 1 or not position < end <= size:
                raise BatchError(f"record {len(spans)} of {count} has inconsistent lengths")
            delta = (timestamp >> 1) ^ -(timestamp & 1)
            append(new(RecordSpan, (start, rest, end, delta, offset >> 1, key, has_value)))
            position = end
    except IndexError:
        raise BatchError(f"the data ends before {count} records are read") from None
    return spans


class Retained:
    """What is retained of a batch: a summary of the records that are counted, and the bytes that are added afterwards.

    The summary comes first, because the new header and the new timestamps depend on all of the records. Neither part
    keeps an object for each record, so a batch of millions of records can be retained in slices.
    """

    def __init__(self, header: BatchHeader) -> None:
        self.count = 0
        self.has_tombstones = False
        self._header = header
        self._is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
        self._first_timestamp = self._max_timestamp = NO_TIMESTAMP
        self._new = header
        self._is_same_base = False
        self.payload = bytearray()

    def count_in(self, spans: Sequence[RecordSpan]) -> None:
        """Count the next records that are retained."""
        if not spans:
            return
        header = self._header
        first = latest = header.max_timestamp
        if not self._is_append_time:
            first = header.base_timestamp + spans[0].timestamp_delta
            latest = header.base_timestamp + max(span.timestamp_delta for span in spans)
        if not self.count:
            self._first_timestamp = self._max_timestamp = first
        self._max_timestamp = max(self._max_timestamp, latest)
        self.has_tombstones = self.has_tombstones or not all(span.has_value for span in spans)
        self.count += len(spans)

    def begin(self, delete_horizon_ms: int | None = None) -> None:
        """Choose the new header, after all records are counted. Sets a delete horizon if one is passed.

        Timestamps are relative to the delete horizon if there is one, and otherwise to the first remaining record.
        """
        header, attributes = self._header, self._header.attributes
        if delete_horizon_ms is not None:
            attributes |= DELETE_HORIZON_BIT
            base_timestamp = delete_horizon_ms
        else:
            base_timestamp = self._first_timestamp if header.delete_horizon_ms is None else header.base_timestamp
        self._is_same_base = base_timestamp == header.base_timestamp and not self._is_append_time
        self._new = header._replace(
            attributes=attributes,
            base_timestamp=base_timestamp,
            max_timestamp=self._max_timestamp,
            records_count=self.count,
        )

    def add(self, payload: bytes, spans: Sequence[RecordSpan]) -> None:
        """Add the bytes of the next records that were counted."""
        if self._is_same_base:
            self.payload += b"".join([payload[span.start : span.end] for span in spans])
            return
        header = self._header
        parts: list[bytes] = []
        shift = header.base_timestamp - self._new.base_timestamp
        same = header.max_timestamp - self._new.base_timestamp
        for span in spans:
            delta = encode_varint(same if self._is_append_time else span.timestamp_delta + shift)
            length = encode_varint(1 + len(delta) + span.end - span.rest)
            parts += (length, b"\x00", delta, payload[span.rest : span.end])
        self.payload += b"".join(parts)

    def encode(self) -> bytes:
        """Return the batch, after all records are added."""
        return encode_batch(self._new, bytes(self.payload), self._header.compression)


def retain_records(
    header: BatchHeader, payload: bytes, spans: Sequence[RecordSpan], delete_horizon_ms: int | None = None
) -> bytes:
    """Return a batch with only these records, at least one, and with a delete horizon if one is passed."""
    retained = Retained(header)
    retained.count_in(spans)
    retained.begin(delete_horizon_ms)
    retained.add(payload, spans)
    return retained.encode()


def empty_batch(header: BatchHeader) -> bytes:
    """Return the batch without records: only its offsets, its producer and its largest timestamp remain."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
    empty = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0)
    return encode_batch(empty, b"", Compression.NONE)
