"""CRC-32C, and where it lies in a batch: over everything from the attributes to the end.

Its one rule: offset and leader epoch stand before the checksum, so that a broker may stamp them into a batch.
"""

from __future__ import annotations

from crc32c import crc32c as _crc32c

from barnabas.batches.errors import CorruptBatchError
from barnabas.batches.format import ATTRIBUTES_POSITION, BatchHeader, Buffer


def crc32c(data: Buffer, crc: int = 0) -> int:
    """The CRC-32C of `data`, or of what `crc` is the checksum of and `data` after it."""
    return _crc32c(data, crc)


def batch_crc(data: Buffer, size_in_bytes: int, position: int = 0) -> int:
    """The checksum that the batch of this size at `position` should have."""
    return _crc32c(memoryview(data)[position + ATTRIBUTES_POSITION : position + size_in_bytes])


def check_crc(header: BatchHeader, data: Buffer, position: int = 0) -> None:
    """Raises CorruptBatchError unless the whole batch at `position` has the checksum that its header says."""
    computed = batch_crc(data, header.size_in_bytes, position)
    if computed != header.crc:
        raise CorruptBatchError(f"the batch at {position} has the crc {header.crc}, and not its own {computed}")
