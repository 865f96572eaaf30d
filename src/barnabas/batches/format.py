"""The layout of record batch format v2: the header fields, the attribute bits, and the record type.

Its one rule: a header is decoded without its records, so that a log can be scanned by headers alone. What the header
says about its records (count, checksum, offsets) is not checked here: see checksum, reader and validation.
"""

from __future__ import annotations

import struct
from enum import IntEnum
from typing import NamedTuple, TypeAlias

from barnabas.batches.errors import BatchError, CorruptBatchError, TruncatedBatchError, UnknownCompressionError

Buffer: TypeAlias = bytes | bytearray | memoryview
Headers: TypeAlias = tuple[tuple[str, bytes | None], ...]

MAGIC = 2

# base offset, batch length, partition leader epoch, magic, crc, attributes, last offset delta, base timestamp,
# max timestamp, producer id, producer epoch, base sequence, records count
HEADER = struct.Struct(">qiibIhiqqqhii")
HEADER_SIZE = HEADER.size
# The length field does not count itself and the offset before it: a batch is this much longer.
LENGTH_OVERHEAD = 12
# Length, attributes, two deltas, null key, null value and no headers, one byte each.
MIN_RECORD_SIZE = 7

BASE_OFFSET_POSITION = 0
LENGTH_POSITION = 8
LEADER_EPOCH_POSITION = 12
MAGIC_POSITION = 16
CRC_POSITION = 17
ATTRIBUTES_POSITION = 21
MAX_TIMESTAMP_POSITION = 35

COMPRESSION_MASK = 0x07
TIMESTAMP_TYPE_BIT = 0x08
TRANSACTIONAL_BIT = 0x10
CONTROL_BIT = 0x20
DELETE_HORIZON_BIT = 0x40

NO_TIMESTAMP = -1
NO_PRODUCER_ID = -1
NO_PRODUCER_EPOCH = -1
NO_SEQUENCE = -1
NO_LEADER_EPOCH = -1

MAX_INT32 = 2**31 - 1
MAX_INT64 = 2**63 - 1

# The minimum length of a batch or message of any magic.
_SMALLEST_LENGTH = 14
_LENGTH = struct.Struct(">i")


class Compression(IntEnum):
    """The codecs of format v2, by their number in the attributes."""

    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4


_COMPRESSIONS = tuple(Compression)  # a call of the class takes ten times as long as an index, and every batch needs it


class TimestampType(IntEnum):
    """The source of the timestamps of a batch: the producer, or the broker that appended it."""

    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class Record(NamedTuple):
    """A record. Header keys are text; bytes that are not UTF-8 are kept as surrogate escapes."""

    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()


class BatchHeader(NamedTuple):
    """The header of a batch, with all fields as they are encoded."""

    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    records_count: int

    @property
    def size_in_bytes(self) -> int:
        return self.batch_length + LENGTH_OVERHEAD

    @property
    def is_empty(self) -> bool:
        """Whether compaction left only the header, to keep the producer's state."""
        return self.records_count == 0 and self.size_in_bytes == HEADER_SIZE

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def compression(self) -> Compression:
        code = self.attributes & COMPRESSION_MASK
        if code >= len(_COMPRESSIONS):
            raise UnknownCompressionError(f"unknown codec {code}")
        return _COMPRESSIONS[code]

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_BIT else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return self.attributes & TRANSACTIONAL_BIT != 0

    @property
    def is_control(self) -> bool:
        return self.attributes & CONTROL_BIT != 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """The time from which compaction may remove tombstones in this batch. It replaces the base timestamp."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_BIT else None

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id > NO_PRODUCER_ID

    @property
    def last_sequence(self) -> int:
        """The sequence of the last record. Sequences wrap to 0 after the largest int32."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_INT32


def decode_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Decode the header of the batch at `position`. The records may be missing.

    Raises TruncatedBatchError for an incomplete header, CorruptBatchError for an unknown magic or an impossible length,
    and BatchError for message formats before v2.
    """
    available = len(data) - position
    if available < LENGTH_OVERHEAD:
        raise TruncatedBatchError(position, f"{available} bytes at {position} are too few for a batch header")
    length: int = _LENGTH.unpack_from(data, position + LENGTH_POSITION)[0]
    if length < _SMALLEST_LENGTH:
        raise CorruptBatchError(f"the batch at {position} has an impossible length of {length}")
    if available <= MAGIC_POSITION:
        raise TruncatedBatchError(position, f"{available} bytes at {position} are too few for a batch header")
    magic = data[position + MAGIC_POSITION]
    if magic != MAGIC:
        if magic > MAGIC:
            raise CorruptBatchError(f"the batch at {position} has the unknown magic {magic}")
        raise BatchError(f"the batch at {position} has the old magic {magic}; only {MAGIC} is supported")
    if length < HEADER_SIZE - LENGTH_OVERHEAD:
        raise CorruptBatchError(f"the batch at {position} has a length of {length}, less than its header")
    if available < HEADER_SIZE:
        raise TruncatedBatchError(position, f"{available} bytes at {position} are too few for a batch header")
    return BatchHeader._make(HEADER.unpack_from(data, position))


def decode_whole_header(data: Buffer, position: int = 0) -> BatchHeader:
    """Like decode_header, but raise TruncatedBatchError unless the whole batch is there."""
    header = decode_header(data, position)
    if len(data) - position < header.size_in_bytes:
        raise TruncatedBatchError(
            position, f"the batch at {position} has {len(data) - position} of its {header.size_in_bytes} bytes"
        )
    return header
