"""The records of a batch as places in its payload, and a batch of some of them: what compaction needs of records.

Its one rule: of a record only its key is looked at, and whether it has a value; the rest is carried over as bytes. A batch
keeps its first and last offset, its producer and its codec, whatever is taken out of it, and the new one is what Kafka
writes. Which records stay is for the caller to say.
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
    """A record by where it lies in a payload: `rest` is the position behind its timestamp, which may have to change."""

    start: int
    rest: int
    end: int
    timestamp_delta: int
    offset_delta: int
    key: bytes | None
    has_value: bool


def walk_spans(payload: bytes, position: int, count: int) -> list[RecordSpan]:
    """The next records of a payload from a position on; raises BatchError where they do not keep to their lengths."""
    # A hot loop, as that of the reader: varints of one and two bytes are read in place, in their zigzag form, where odd is
    # negative, which stands for null.
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

            timestamp = payload[position + 1]  # behind the attributes
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
                raise BatchError(f"record {len(spans)} of {count} does not keep to its lengths")
            delta = (timestamp >> 1) ^ -(timestamp & 1)
            append(new(RecordSpan, (start, rest, end, delta, offset >> 1, key, has_value)))
            position = end
    except IndexError:
        raise BatchError(f"the records end before {count} of them are read") from None
    return spans


def retain_records(
    header: BatchHeader, payload: bytes, spans: Sequence[RecordSpan], delete_horizon_ms: int | None = None
) -> bytes:
    """The batch of these of its records, which are at least one, with a delete horizon if it gets one now.

    Timestamps count from the delete horizon, if there is one, and otherwise from the first record that is left.
    """
    is_append_time = header.timestamp_type is TimestampType.LOG_APPEND_TIME
    timestamps = [
        header.max_timestamp if is_append_time else header.base_timestamp + span.timestamp_delta for span in spans
    ]
    attributes = header.attributes
    if delete_horizon_ms is not None:
        attributes |= DELETE_HORIZON_BIT
        base_timestamp = delete_horizon_ms
    else:
        base_timestamp = timestamps[0] if header.delete_horizon_ms is None else header.base_timestamp
    parts: list[bytes] = []
    if base_timestamp == header.base_timestamp and not is_append_time:
        parts = [payload[span.start : span.end] for span in spans]
    else:
        for span, timestamp in zip(spans, timestamps, strict=True):
            delta = encode_varint(timestamp - base_timestamp)
            length = encode_varint(1 + len(delta) + span.end - span.rest)
            parts += (length, b"\x00", delta, payload[span.rest : span.end])
    retained = header._replace(
        attributes=attributes,
        base_timestamp=base_timestamp,
        max_timestamp=max(timestamps),
        records_count=len(spans),
    )
    return encode_batch(retained, b"".join(parts), header.compression)


def empty_batch(header: BatchHeader) -> bytes:
    """What is left of a batch without records: its offsets, its producer, and its largest timestamp."""
    attributes = header.attributes & ~(COMPRESSION_MASK | DELETE_HORIZON_BIT)
    empty = header._replace(attributes=attributes, base_timestamp=NO_TIMESTAMP, records_count=0)
    return encode_batch(empty, b"", Compression.NONE)
