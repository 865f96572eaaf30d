"""Fields that a leader sets in a batch before it appends it: offset, epoch and, for LogAppendTime, the timestamp.

Its one rule: a batch is changed in place. Offset and epoch are outside the checksum. A timestamp is not, so the
checksum is recomputed, but only if the timestamp changes.
"""

from __future__ import annotations

import struct

from barnabas.batches.checksum import batch_crc
from barnabas.batches.format import (
    ATTRIBUTES_POSITION,
    BASE_OFFSET_POSITION,
    CRC_POSITION,
    LEADER_EPOCH_POSITION,
    MAX_TIMESTAMP_POSITION,
    TIMESTAMP_TYPE_BIT,
    BatchHeader,
    TimestampType,
    decode_whole_header,
)

_INT64 = struct.Struct(">q")
_INT32 = struct.Struct(">i")
_INT16 = struct.Struct(">h")
_UINT32 = struct.Struct(">I")


def stamp(batch: bytearray | memoryview, base_offset: int, leader_epoch: int, position: int = 0) -> None:
    """Set the base offset and leader epoch of the batch at `position`."""
    _INT64.pack_into(batch, position + BASE_OFFSET_POSITION, base_offset)
    _INT32.pack_into(batch, position + LEADER_EPOCH_POSITION, leader_epoch)


def stamp_max_timestamp(
    batch: bytearray | memoryview,
    timestamp_type: TimestampType,
    max_timestamp: int,
    position: int = 0,
    header: BatchHeader | None = None,
) -> BatchHeader:
    """Write the largest timestamp and its type into the batch at `position`, and return the batch's new header.

    With LOG_APPEND_TIME the timestamp is that of all records. `header` is the batch's header if it is decoded already.
    """
    if header is None:
        header = decode_whole_header(batch, position)
    if header.timestamp_type is timestamp_type and header.max_timestamp == max_timestamp:
        return header
    attributes = header.attributes & ~TIMESTAMP_TYPE_BIT
    if timestamp_type is TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_BIT
    _INT16.pack_into(batch, position + ATTRIBUTES_POSITION, attributes)
    _INT64.pack_into(batch, position + MAX_TIMESTAMP_POSITION, max_timestamp)
    crc = batch_crc(batch, header.size_in_bytes, position)
    _UINT32.pack_into(batch, position + CRC_POSITION, crc)
    return header._replace(attributes=attributes, max_timestamp=max_timestamp, crc=crc)
