"""Builds batches from records, with the same bytes that Kafka writes.

Its one rule: records are encoded in order, and invalid ones are the caller's fault and raise EncodeError. `build_batch`
builds a batch at once; a `PayloadBuilder` takes records in several steps, when there may be very many.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable

from barnabas.batches.checksum import crc32c
from barnabas.batches.compression import DEFAULT_MAX_DECOMPRESSED_BYTES, compress
from barnabas.batches.format import (
    ATTRIBUTES_POSITION,
    COMPRESSION_MASK,
    CONTROL_BIT,
    CRC_POSITION,
    DELETE_HORIZON_BIT,
    HEADER,
    HEADER_SIZE,
    LENGTH_OVERHEAD,
    MAGIC,
    NO_LEADER_EPOCH,
    NO_PRODUCER_EPOCH,
    NO_PRODUCER_ID,
    NO_SEQUENCE,
    NO_TIMESTAMP,
    TIMESTAMP_TYPE_BIT,
    TRANSACTIONAL_BIT,
    BatchHeader,
    Buffer,
    Compression,
    Headers,
    Record,
    TimestampType,
    decode_whole_header,
)
from barnabas.batches.reader import decode_payload
from barnabas.batches.varint import encode_varint
from barnabas.wire.errors import EncodeError

_CRC = struct.Struct(">I")
_NULL = encode_varint(-1)
_SMALL = 1024
_VARINTS = tuple(encode_varint(value) for value in range(_SMALL))


def build_batch(
    records: Iterable[Record],
    *,
    base_offset: int = 0,
    keep_offsets: bool = False,
    last_offset: int | None = None,
    compression: Compression = Compression.NONE,
    level: int | None = None,
    timestamp_type: TimestampType = TimestampType.CREATE_TIME,
    max_timestamp: int | None = None,
    delete_horizon_ms: int | None = None,
    producer_id: int = NO_PRODUCER_ID,
    producer_epoch: int = NO_PRODUCER_EPOCH,
    base_sequence: int = NO_SEQUENCE,
    is_transactional: bool = False,
    is_control: bool = False,
    partition_leader_epoch: int = NO_LEADER_EPOCH,
) -> bytes:
    """Build a batch of these records.

    Their offsets count up from `base_offset`, whatever offsets they have, unless `keep_offsets` is set. That option,
    `last_offset` and `delete_horizon_ms` are for compaction. `last_offset` is required without records. The largest
    timestamp is that of the records unless it is passed, as for an append time.
    """
    payload = PayloadBuilder(base_offset, keep_offsets=keep_offsets, base_timestamp=delete_horizon_ms)
    payload.add(records)
    return payload.batch(
        last_offset=last_offset,
        compression=compression,
        level=level,
        timestamp_type=timestamp_type,
        max_timestamp=max_timestamp,
        has_delete_horizon=delete_horizon_ms is not None,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        partition_leader_epoch=partition_leader_epoch,
    )


def recompress(
    batch: Buffer,
    compression: Compression,
    level: int | None = None,
    *,
    max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES,
) -> bytes:
    """Return the batch with another codec and everything else unchanged.

    Markers stay uncompressed. A batch that already has the codec is returned as it is, whatever its level.
    """
    header = decode_whole_header(batch)
    if header.compression is compression or (header.is_control and header.compression is Compression.NONE):
        return bytes(batch[: header.size_in_bytes])
    payload = decode_payload(batch, 0, header, max_decompressed_bytes=max_decompressed_bytes)
    return encode_batch(header, payload, compression, level)


def encode_batch(header: BatchHeader, payload: bytes, compression: Compression, level: int | None = None) -> bytes:
    """Encode a batch of this uncompressed payload, with the fields of `header` except codec, length and checksum."""
    body = compress(compression, payload, level)
    length = HEADER_SIZE - LENGTH_OVERHEAD + len(body)
    attributes = header.attributes & ~COMPRESSION_MASK | compression
    try:
        head = bytearray(HEADER.pack(*header._replace(batch_length=length, attributes=attributes)))
    except struct.error as error:
        raise EncodeError(f"a field of the batch header is out of range: {error}") from None
    crc = crc32c(body, crc32c(memoryview(head)[ATTRIBUTES_POSITION:]))
    _CRC.pack_into(head, CRC_POSITION, crc)
    return b"".join((head, body))


class PayloadBuilder:
    """The records of a batch as bytes, to which more can be added. See `build_batch` for what its arguments mean."""

    def __init__(self, base_offset: int = 0, *, keep_offsets: bool = False, base_timestamp: int | None = None) -> None:
        self._base_offset = base_offset
        self._keep_offsets = keep_offsets
        self._base_timestamp = base_timestamp
        self._parts: list[bytes] = []  # one for each call of `add`
        self._count = 0
        self._last_delta = -1
        self._latest = NO_TIMESTAMP

    def add(self, records: Iterable[Record]) -> None:
        """Encode the records. Raises EncodeError."""
        parts: list[bytes] = []
        count = 0
        delta, latest, base_timestamp = self._last_delta, self._latest, self._base_timestamp
        base_offset, keep_offsets = self._base_offset, self._keep_offsets
        for offset, timestamp, key, value, headers in records:
            count += 1
            if not keep_offsets:
                delta += 1
            elif offset - base_offset > delta:
                delta = offset - base_offset
            else:
                raise EncodeError(f"the offset {offset} does not follow {base_offset + delta}")
            if timestamp > latest:
                latest = timestamp
            elif timestamp < NO_TIMESTAMP:
                raise EncodeError(f"the timestamp {timestamp} is negative")
            if base_timestamp is None:
                base_timestamp = timestamp
            elapsed = timestamp - base_timestamp
            fields = [
                b"\x00",  # record attributes are unused
                _VARINTS[elapsed] if 0 <= elapsed < _SMALL else encode_varint(elapsed),
                _VARINTS[delta] if delta < _SMALL else encode_varint(delta),
            ]
            if key is None:
                fields.append(_NULL)
            else:
                size = len(key)
                fields += (_VARINTS[size] if size < _SMALL else encode_varint(size), key)
            if value is None:
                fields.append(_NULL)
            else:
                size = len(value)
                fields += (_VARINTS[size] if size < _SMALL else encode_varint(size), value)
            fields.append(_encode_headers(headers) if headers else b"\x00")
            body = b"".join(fields)
            size = len(body)
            parts += (_VARINTS[size] if size < _SMALL else encode_varint(size), body)
        self._parts.append(b"".join(parts))
        self._count += count
        self._last_delta, self._latest, self._base_timestamp = delta, latest, base_timestamp

    def batch(
        self,
        *,
        last_offset: int | None = None,
        compression: Compression = Compression.NONE,
        level: int | None = None,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        max_timestamp: int | None = None,
        has_delete_horizon: bool = False,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        is_transactional: bool = False,
        is_control: bool = False,
        partition_leader_epoch: int = NO_LEADER_EPOCH,
    ) -> bytes:
        """Return a batch of the records. Raises EncodeError."""
        last_delta = self._last_delta
        if last_offset is not None:
            if last_offset < self._base_offset + last_delta:
                raise EncodeError(f"the last offset {last_offset} is before that of the last record")
            last_delta = last_offset - self._base_offset
        elif not self._count:
            raise EncodeError("a batch without records needs a last offset")
        attributes = (
            (TIMESTAMP_TYPE_BIT if timestamp_type is TimestampType.LOG_APPEND_TIME else 0)
            | (TRANSACTIONAL_BIT if is_transactional else 0)
            | (CONTROL_BIT if is_control else 0)
            | (DELETE_HORIZON_BIT if has_delete_horizon else 0)
        )
        header = BatchHeader(
            base_offset=self._base_offset,
            batch_length=0,
            partition_leader_epoch=partition_leader_epoch,
            magic=MAGIC,
            crc=0,
            attributes=attributes,
            last_offset_delta=last_delta,
            base_timestamp=NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp=self._latest if max_timestamp is None else max_timestamp,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
            base_sequence=base_sequence,
            records_count=self._count,
        )
        payload = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return encode_batch(header, payload, compression if self._count else Compression.NONE, level)


def _encode_headers(headers: Headers) -> bytes:
    fields = [encode_varint(len(headers))]
    for key, value in headers:
        name = key.encode("utf-8", "surrogateescape")
        size = len(name)
        fields += (_VARINTS[size] if size < _SMALL else encode_varint(size), name)
        if value is None:
            fields.append(_NULL)
        else:
            size = len(value)
            fields += (_VARINTS[size] if size < _SMALL else encode_varint(size), value)
    return b"".join(fields)
