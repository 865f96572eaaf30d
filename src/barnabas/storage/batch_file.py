"""Iteration over a file of consecutive batches, such as a segment or a snapshot: headers only, or whole batches.

Its one rule: iteration yields batches up to the first invalid position and raises CorruptLogError there. Only lengths,
magic and the end of the file are checked; checksums and offsets are checked by recovery.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from typing import NamedTuple

from barnabas.batches import BatchError, BatchHeader, TruncatedBatchError, decode_header
from barnabas.batches.format import CRC_POSITION, HEADER_SIZE, LENGTH_OVERHEAD, MAGIC, MAGIC_POSITION, Buffer
from barnabas.storage.errors import CorruptLogError
from barnabas.storage.files import File

# The header fields that a search by offset needs: base offset, length, magic, last offset delta.
_PLACE = struct.Struct(">qi4xb6xi")
_UINT32 = struct.Struct(">I")
_HEADERS_CHUNK_BYTES = 16 * 1024
_WHOLE_CHUNK_BYTES = 1024 * 1024


class BatchPosition(NamedTuple):
    """The position and size of a batch in a file, and its offsets."""

    position: int
    size: int
    base_offset: int
    last_offset: int


class WholeBatch(NamedTuple):
    """A batch of a file. Its bytes start at `start` in `data`."""

    position: int
    header: BatchHeader
    data: bytes
    start: int


def walk_places(file: File, position: int, end: int) -> Iterator[BatchPosition]:
    """Yield the batches from `position` to `end`, decoding only what a search by offset needs."""
    chunk = b""
    start = 0
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(chunk):
            start, at = position, 0
            chunk = file.read(min(_HEADERS_CHUNK_BYTES, end - position), position)
            if len(chunk) < HEADER_SIZE:
                raise _cut_off(file, position, end)
        base_offset, length, magic, last_offset_delta = _PLACE.unpack_from(chunk, at)
        if magic != MAGIC or length < HEADER_SIZE - LENGTH_OVERHEAD:
            _header_at(file, chunk, at, position, end)  # raises the matching error
        size = length + LENGTH_OVERHEAD
        if size > end - position:
            raise _cut_off(file, position, end)
        yield BatchPosition(position, size, base_offset, base_offset + last_offset_delta)
        position += size


def walk_headers(file: File, position: int, end: int) -> Iterator[tuple[int, BatchHeader]]:
    """Yield the position and header of each batch from `position` to `end`."""
    chunk = b""
    start = 0
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(chunk):
            start, at = position, 0
            chunk = file.read(min(_HEADERS_CHUNK_BYTES, end - position), position)
        header = _header_at(file, chunk, at, position, end)
        yield position, header
        position += header.size_in_bytes


def walk_whole(file: File, position: int, end: int) -> Iterator[WholeBatch]:
    """Yield the batches from `position` to `end` with all their bytes, keeping one chunk or one batch in memory."""
    chunk = b""
    start = 0
    while position < end:
        at = position - start
        if at + HEADER_SIZE > len(chunk):
            start, at = position, 0
            chunk = file.read(min(_WHOLE_CHUNK_BYTES, end - position), position)
        header = _header_at(file, chunk, at, position, end)
        size = header.size_in_bytes
        if at + size > len(chunk):
            start, at = position, 0
            chunk = file.read(min(max(_WHOLE_CHUNK_BYTES, size), end - position), position)
            if len(chunk) < size:
                raise _cut_off(file, position, end)
        yield WholeBatch(position, header, chunk, at)
        position += size


def is_old_message(data: Buffer, start: int = 0) -> bool:
    """Whether there is an intact message of a format before v2 here, which only older versions of Kafka can read."""
    magic = data[start + MAGIC_POSITION] if len(data) > start + MAGIC_POSITION else MAGIC
    if magic >= MAGIC:
        return False
    length = int.from_bytes(data[start + LENGTH_OVERHEAD - 4 : start + LENGTH_OVERHEAD], "big", signed=True)
    end = start + LENGTH_OVERHEAD + length
    crc: int = _UINT32.unpack_from(data, start + LENGTH_OVERHEAD)[0]
    return length > CRC_POSITION and end <= len(data) and zlib.crc32(data[start + MAGIC_POSITION : end]) == crc


def _header_at(file: File, chunk: bytes, at: int, position: int, end: int) -> BatchHeader:
    try:
        header = decode_header(chunk, at)
    except TruncatedBatchError:
        raise _cut_off(file, position, end) from None
    except BatchError as error:
        raise CorruptLogError(file.path, position, str(error).replace(f" at {at} ", " ")) from None
    if header.size_in_bytes > end - position:
        raise _cut_off(file, position, end)
    return header


def _cut_off(file: File, position: int, end: int) -> CorruptLogError:
    return CorruptLogError(file.path, position, f"the batch is truncated after {end - position} bytes", truncated=True)
