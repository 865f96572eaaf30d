"""Files of a log that another process writes: its segments, their indexes, and headers of batches by position.

Its one rule: a file name is trusted only within one call. A segment is identified by its inode; once open, it can be read to
its end whatever happens to its name. Indexes are hints: entries that do not increase are dropped, and callers check positions
against the log. Nothing is written or locked.
"""

from __future__ import annotations

import os
import re
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, NamedTuple, Self

import numpy as np

from barnabas.batches import HEADER_SIZE, BatchError, BatchHeader, TruncatedBatchError, decode_header
from barnabas.storage import AbortedTxn, CorruptLogError, StorageError
from barnabas.storage.files import read_whole
from barnabas.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, SWAP_SUFFIX, TIME_INDEX_SUFFIX

Array = np.ndarray[Any, Any]

_SEGMENT = re.compile(r"(\d{20})\.log(\.swap)?")
_TXN_INDEX = re.compile(r"\d{20}\.txnindex(\.swap)?")
_ABORTED = struct.Struct(">hqqqq")
_HEADERS_CHUNK_BYTES = 64 << 10
_LISTINGS = 20
_PAUSE_S = 0.01


class SegmentPlace(NamedTuple):
    """A segment, as found in a listing of its directory."""

    base_offset: int
    name: str
    size: int
    inode: int


class OffsetEntries(NamedTuple):
    """The offset index of a segment: the batch that ends with `offset` starts at `position`."""

    offset: Array
    position: Array


class TimeEntries(NamedTuple):
    """The time index of a segment: no record up to `offset` has a larger timestamp."""

    timestamp: Array
    offset: Array


def list_segments(directory: Path) -> tuple[SegmentPlace, ...]:
    """Return the segments of a log, in order.

    While a compaction replaces segments, none of them may have its final name; then the one that is about to get it counts.
    A listing is not atomic, so it is repeated until two are equal.
    """
    before = _list_once(directory)
    for _ in range(_LISTINGS):
        now = _list_once(directory)
        if [place[::3] for place in now] == [place[::3] for place in before]:
            return now
        before = now
        time.sleep(_PAUSE_S)
    return before


def _list_once(directory: Path) -> tuple[SegmentPlace, ...]:
    found: dict[int, SegmentPlace] = {}
    with os.scandir(directory) as entries:
        for entry in entries:
            match = _SEGMENT.fullmatch(entry.name)
            if match is None or (match[2] and int(match[1]) in found):
                continue
            try:
                status = entry.stat()
            except FileNotFoundError:
                continue
            found[int(match[1])] = SegmentPlace(int(match[1]), entry.name, status.st_size, status.st_ino)
    return tuple(found[base_offset] for base_offset in sorted(found))


class OpenSegment:
    """A segment read by position, whatever its name. Create it with `open`; its owner closes it."""

    __slots__ = ("_descriptor", "inode", "path")

    def __init__(self, path: Path, descriptor: int) -> None:
        self.path = path
        self._descriptor = descriptor
        self.inode = os.fstat(descriptor).st_ino

    @classmethod
    def open(cls, path: Path) -> Self:
        return cls(path, os.open(path, os.O_RDONLY | os.O_CLOEXEC))

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        os.close(self._descriptor)

    def size(self) -> int:
        return os.fstat(self._descriptor).st_size

    def read(self, size: int, position: int) -> bytes:
        """Read `size` bytes, or fewer at the end of the file."""
        data = os.pread(self._descriptor, size, position)
        while len(data) < size and (more := os.pread(self._descriptor, size - len(data), position + len(data))):
            data += more
        return data

    def header(self, position: int) -> BatchHeader | None:
        """Return the header of the batch at this position; None if there is none."""
        try:
            return decode_header(self.read(HEADER_SIZE, position))
        except BatchError:
            return None

    def headers(self, position: int, end: int | None = None) -> Iterator[tuple[int, BatchHeader]]:
        """Yield each complete batch from a position on. Raises CorruptLogError, `truncated` if the file ends in a batch."""
        end = self.size() if end is None else end
        chunk, start = b"", position
        while position < end:
            if position + HEADER_SIZE > start + len(chunk):
                chunk, start = self.read(min(_HEADERS_CHUNK_BYTES, end - position), position), position
            try:
                header = decode_header(chunk, position - start)
            except TruncatedBatchError:
                raise CorruptLogError(self.path, position, "the batch is cut off", truncated=True) from None
            except BatchError as error:
                reason = str(error).replace(f" at {position - start} ", " ")
                raise CorruptLogError(self.path, position, reason) from None
            if position + header.size_in_bytes > end:
                raise CorruptLogError(self.path, position, "the batch is cut off", truncated=True)
            yield position, header
            position += header.size_in_bytes

    def is_empty_from(self, position: int) -> bool:
        """Return whether only zeros follow: preallocated space, or a tail that was never flushed."""
        while data := self.read(_HEADERS_CHUNK_BYTES, position):
            if data.strip(b"\0"):
                return False
            position += len(data)
        return True


def offset_entries(directory: Path, segment: SegmentPlace) -> OffsetEntries:
    data = _entries(directory, segment, INDEX_SUFFIX, np.dtype([("offset", ">i4"), ("position", ">i4")]))
    offset, position = data["offset"].astype(np.int64), data["position"].astype(np.int64)
    grows = (np.diff(offset) > 0) & (np.diff(position) > 0)
    used = len(offset) if grows.all() else int(np.argmin(grows)) + 1
    if used and (position[0] < 0 or offset[0] < 0):
        used = 0
    return OffsetEntries(offset[:used] + segment.base_offset, position[:used])


def time_entries(directory: Path, segment: SegmentPlace) -> TimeEntries:
    data = _entries(directory, segment, TIME_INDEX_SUFFIX, np.dtype([("timestamp", ">i8"), ("offset", ">i4")]))
    timestamp, offset = data["timestamp"].astype(np.int64), data["offset"].astype(np.int64)
    grows = (np.diff(timestamp) > 0) & (np.diff(offset) >= 0)
    used = len(offset) if grows.all() else int(np.argmin(grows)) + 1
    if used and offset[0] < 0:
        used = 0
    return TimeEntries(timestamp[:used], offset[:used] + segment.base_offset)


def aborted_transactions(directory: Path) -> list[AbortedTxn]:
    """Return all aborted transactions of a log, in the order of their markers, from the indexes of its segments."""
    for _ in range(_LISTINGS):
        found: set[AbortedTxn] = set()
        try:
            for path in directory.iterdir():
                if _TXN_INDEX.fullmatch(path.name):
                    with OpenSegment.open(path) as file:
                        data = file.read(file.size(), 0)
                    entries = _ABORTED.iter_unpack(data[: len(data) // _ABORTED.size * _ABORTED.size])
                    found.update(AbortedTxn(*fields) for _, *fields in entries)
        except FileNotFoundError:
            time.sleep(_PAUSE_S)  # it was renamed meanwhile, and is found under its other name
            continue
        return sorted(found, key=lambda transaction: transaction.last_offset)
    raise StorageError(f"the aborted transactions of {directory} cannot be read: its files keep changing")


def index_path(directory: Path, segment: SegmentPlace, suffix: str) -> Path:
    """Return the path of an index. A segment that is about to get its name has indexes with the same suffix."""
    swap = SWAP_SUFFIX if segment.name.endswith(LOG_SUFFIX + SWAP_SUFFIX) else ""
    return directory / f"{segment.base_offset:020d}{suffix}{swap}"


def _entries(directory: Path, segment: SegmentPlace, suffix: str, dtype: np.dtype[Any]) -> Array:
    content = read_whole(index_path(directory, segment, suffix)) or b""
    return np.frombuffer(content, dtype=dtype, count=len(content) // dtype.itemsize)
