"""The CRC-32C of a batch, which covers everything from the attributes to the end.

Its one rule: offset and leader epoch are before the checksum and not covered by it, so that a broker can stamp them.
"""

from __future__ import annotations

from crc32c import crc32c as _crc32c

from barnabas.batches.errors import CorruptBatchError
from barnabas.batches.format import ATTRIBUTES_POSITION, BatchHeader, Buffer


def crc32c(data: Buffer, crc: int = 0) -> int:
    """Return the CRC-32C of `data`, or continue the checksum `crc` with it."""
    return _crc32c(data, crc)


def batch_crc(data: Buffer, size_in_bytes: int, position: int = 0) -> int:
    """Return the checksum that the batch of this size at `position` should have."""
    return _crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : position + size_in_bytes])


def check_crc(header: BatchHeader, data: Buffer, position: int = 0) -> None:
    """Raise CorruptBatchError unless the batch at `position` has the checksum in its header."""
    computed = batch_crc(data, header.size_in_bytes, position)
    if computed != header.crc:
        raise CorruptBatchError(f"the batch at {position} has a wrong crc: {header.crc}, computed {computed}")
