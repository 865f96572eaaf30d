"""Decodes bytes to batches and records.

Its one rule: the input is not trusted. Every length is checked against the available bytes, a batch returns all its
records or raises BatchError, and memory is bounded by the input, never by a number in it. Checksums are verified where
a batch enters (validation, recovery), not here: see `checksum.check_crc`.
"""

from __future__ import annotations

from collections.abc import Iterator

from barnabas.batches.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, decompress
from barnabas.batches.errors import BatchError, TruncatedBatchError
from barnabas.batches.format import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    Buffer,
    Headers,
    Record,
    TimestampType,
    decode_whole_header,
)
from barnabas.batches.varint import read_raw_varint, read_raw_varlong

CHUNK_RECORDS = 256
CHUNK_LENGTHS = 4096

# The zigzag form of -1, which means null, and the values of all one-byte deltas.
_NULL = 1
_DELTAS = [(raw >> 1) ^ -(raw & 1) for raw in range(0x80)]


def iterate_batches(
    data: Buffer, position: int = 0, *, tolerate_truncated: bool = False
) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of each whole batch from `position` on.

    An incomplete batch at the end raises TruncatedBatchError with its position. With `tolerate_truncated` it ends the
    iteration instead, as needed for Fetch responses that are cut at their maximum size.
    """
    end = len(data)
    while position < end:
        try:
            header = decode_whole_header(data, position)
        except TruncatedBatchError:
            if tolerate_truncated:
                return
            raise
        yield position, header
        position += header.size_in_bytes


def end_of_whole_batches(data: Buffer, position: int = 0) -> int:
    """Return the end of the last complete batch."""
    for start, header in iterate_batches(data, position, tolerate_truncated=True):
        position = start + header.size_in_bytes
    return position


def decode_payload(
    data: Buffer,
    position: int = 0,
    header: BatchHeader | None = None,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """Return the decompressed payload of the batch at `position`."""
    if header is None:
        header = decode_whole_header(data, position)
    payload = data[position + HEADER_SIZE : position + header.size_in_bytes]
    if not header.attributes & COMPRESSION_MASK:
        return bytes(payload)
    return decompress(header.compression, payload, max_decompressed_bytes)


def decode_records(
    data: Buffer,
    position: int = 0,
    header: BatchHeader | None = None,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> list[Record]:
    """Return the records of the batch at `position`."""
    if header is None:
        header = decode_whole_header(data, position)
    if header.is_empty:
        return []
    payload = decode_payload(data, position, header, max_decompressed_bytes=max_decompressed_bytes)
    return decode_records_of_payload(payload, header)


def walk_records(
    data: Buffer,
    position: int = 0,
    header: BatchHeader | None = None,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> Iterator[Record]:
    """Yield the records of the batch at `position`, decoded a few at a time: a batch may have millions.

    For a search: a list of them would take gigabytes, and freeing it would stop all threads for seconds.
    """
    if header is None:
        header = decode_whole_header(data, position)
    if header.is_empty:
        return
    payload = decode_payload(data, position, header, max_decompressed_bytes=max_decompressed_bytes)
    for records in decode_records_in_chunks(payload, header):
        yield from records


def decode_records_of_payload(payload: bytes, header: BatchHeader) -> list[Record]:
    """Return the records of a batch from its decompressed payload."""
    chunks = list(decode_records_in_chunks(payload, header, header.records_count))  # one, or none without records
    return chunks[0] if chunks else []


def decode_records_in_chunks(
    payload: bytes, header: BatchHeader, chunk_records: int = CHUNK_RECORDS
) -> Iterator[list[Record]]:
    """Yield the records of a batch, so many at a time that memory does not grow with the batch."""
    count, position, decoded = header.records_count, 0, 0
    timestamp = header.max_timestamp if header.attributes & TIMESTAMP_TYPE_BIT else None
    while decoded < count:
        some = min(chunk_records, count - decoded)
        try:
            records, position = _decode_records(payload, position, decoded, some, header)
        except IndexError:
            raise BatchError(f"the data ends before {count} records are read") from None
        decoded += some
        if timestamp is not None:
            records = [Record(offset, timestamp, key, value, headers) for offset, _, key, value, headers in records]
        yield records
    if position != len(payload) or count < 0:
        raise BatchError(f"{count} records do not fill {len(payload)} bytes")


def check_record_lengths(data: Buffer, records_count: int, start: int = 0) -> None:
    """Raise BatchError unless the lengths of that many uncompressed records fill the data from `start` to its end."""
    for _ in check_record_lengths_in_chunks(data, records_count, start):
        pass


def check_record_lengths_in_chunks(data: Buffer, records_count: int, start: int = 0) -> Iterator[None]:
    """Do the same as `check_record_lengths`, with a pause between chunks of records."""
    position, checked = start, 0
    while checked < records_count:
        some = min(CHUNK_LENGTHS, records_count - checked)
        position = _skip_records(data, position, some, records_count)
        checked += some
        if checked < records_count:
            yield
    if position != len(data) or records_count < 0:
        raise BatchError(f"{records_count} records do not fill {len(data) - start} bytes")


def _skip_records(data: Buffer, position: int, some: int, records_count: int) -> int:
    try:
        for _ in range(some):
            size = data[position]
            position += 1
            if size >= 0x80:
                if (byte := data[position]) < 0x80:
                    size += (byte << 7) - 0x80
                    position += 1
                else:
                    size, position = read_raw_varint(data, position - 1)
            if size & 1:
                raise BatchError("a record has a negative length")
            position += size >> 1
    except IndexError:
        raise BatchError(f"the data ends before {records_count} records are read") from None
    return position


def offset_of_max_timestamp(data: Buffer, position: int = 0, header: BatchHeader | None = None) -> tuple[int, int]:
    """Return the largest timestamp in the batch at `position`, and the offset of the first record that has it."""
    if header is None:
        header = decode_whole_header(data, position)
    if header.max_timestamp == NO_TIMESTAMP or header.timestamp_type is TimestampType.LOG_APPEND_TIME:
        return header.max_timestamp, header.base_offset
    for record in walk_records(data, position, header):
        if record.timestamp == header.max_timestamp:
            return record.timestamp, record.offset
    raise BatchError(f"no record of the batch at {position} has its largest timestamp {header.max_timestamp}")


def _decode_records(
    data: bytes, position: int, first: int, count: int, header: BatchHeader
) -> tuple[list[Record], int]:
    """Decode `count` records from `position` on, the first of which has the number `first`. Return them and their end."""
    # The hot loop: varints of one and two bytes are decoded inline in their zigzag form, where odd is negative. A
    # length beyond the end of the data makes a slice short, which the check of `position` at the end detects.
    records: list[Record] = []
    append = records.append
    new = tuple.__new__
    header_keys: dict[bytes, str] = {}
    base_offset, base_timestamp = header.base_offset, header.base_timestamp
    signs = 0
    for _ in range(count):
        size = data[position]
        position += 1
        if size >= 0x80:
            if (byte := data[position]) < 0x80:
                size += (byte << 7) - 0x80
                position += 1
            else:
                size, position = read_raw_varint(data, position - 1)
        end = position + (size >> 1)

        delta = data[position + 1]
        position += 2
        if delta < 0x80:
            timestamp = base_timestamp + _DELTAS[delta]
        else:
            if (byte := data[position]) < 0x80:
                delta += (byte << 7) - 0x80
                position += 1
            else:
                delta, position = read_raw_varlong(data, position - 1)
            timestamp = base_timestamp + ((delta >> 1) ^ -(delta & 1))

        offset = data[position]
        position += 1
        if offset >= 0x80:
            if (byte := data[position]) < 0x80:
                offset += (byte << 7) - 0x80
                position += 1
            else:
                offset, position = read_raw_varint(data, position - 1)
        signs |= size | offset

        key = value = None
        length = data[position]
        position += 1
        if length != _NULL:
            if length >= 0x80:
                length, position = read_raw_varint(data, position - 1)
            signs |= length
            key = data[position : (position := position + (length >> 1))]

        length = data[position]
        position += 1
        if length != _NULL:
            if length >= 0x80:
                if (byte := data[position]) < 0x80:
                    length += (byte << 7) - 0x80
                    position += 1
                else:
                    length, position = read_raw_varint(data, position - 1)
            signs |= length
            value = data[position : (position := position + (length >> 1))]

        if data[position]:
            headers, position = _decode_headers(data, position, header_keys)
        else:
            headers = ()
            position += 1
        if position != end:
            raise BatchError(f"record {first + len(records)} of {header.records_count} has inconsistent lengths")
        append(new(Record, (base_offset + (offset >> 1), timestamp, key, value, headers)))
    if position > len(data) or signs & 1:
        raise BatchError(f"{header.records_count} records do not fill {len(data)} bytes, or one has a negative length")
    return records, position


def _decode_headers(data: bytes, position: int, keys: dict[bytes, str]) -> tuple[Headers, int]:
    count = data[position]
    position += 1
    if count >= 0x80:
        count, position = read_raw_varint(data, position - 1)
    signs = count
    headers = []
    for _ in range(count >> 1):
        length = data[position]
        position += 1
        if length >= 0x80:
            length, position = read_raw_varint(data, position - 1)
        signs |= length
        name = data[position : (position := position + (length >> 1))]
        # Every record has the same few keys.
        if (key := keys.get(name)) is None:
            key = keys[name] = name.decode("utf-8", "surrogateescape")
        value = None
        length = data[position]
        position += 1
        if length != _NULL:
            if length >= 0x80:
                length, position = read_raw_varint(data, position - 1)
            signs |= length
            value = data[position : (position := position + (length >> 1))]
        headers.append((key, value))
    if signs & 1:
        raise BatchError("the headers of a record have a negative count or length")
    return tuple(headers), position
