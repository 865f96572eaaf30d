"""The indexes of a segment: offset to position, and timestamp to offset. They are sparse, sorted and use binary search.

Its one rule: an index is a hint that can be rebuilt from the log, so a segment verifies what it reads and rebuilds what
does not match. Entries are as in Kafka: the last offset of a batch and its position; the largest timestamp so far and
the last offset of the batch that has it. Offsets are relative to the base offset of the segment.

The index being written is kept in memory as well as in its file; from all others only single entries are read. Files
are as long as their entries: the zeros that Kafka preallocates, up to `segment.index.bytes`, are cut off.
"""

from __future__ import annotations

import struct
from itertools import pairwise
from typing import ClassVar, NamedTuple

from barnabas.storage.files import File

MAX_RELATIVE_OFFSET = 2**31 - 1
NO_TIMESTAMP = -1


class OffsetPosition(NamedTuple):
    """An entry of the offset index: the batch that ends with `offset` starts at `position`."""

    offset: int
    position: int


class TimestampOffset(NamedTuple):
    """An entry of the time index: no record up to `offset` has a larger timestamp."""

    timestamp: int
    offset: int


class Index:
    """Entries of a fixed size, sorted by both of their fields."""

    __slots__ = ("_data", "_entries", "_rebuilding", "base_offset", "dirty", "file", "max_entries")

    ENTRY: ClassVar[struct.Struct]
    RESERVED_ENTRIES: ClassVar[int] = 0

    def __init__(self, file: File, base_offset: int, max_bytes: int) -> None:
        self.file = file
        self.base_offset = base_offset
        self.max_entries = 0
        self.limit(max_bytes)
        self.dirty = False
        self._entries: int | None = None
        self._data: bytearray | None = None
        self._rebuilding = False

    def limit(self, max_bytes: int) -> None:
        """Set the size at which the index, and so the segment, is full."""
        self.max_entries = max_bytes // self.ENTRY.size - self.RESERVED_ENTRIES

    @property
    def entries(self) -> int:
        """The number of entries, counted on first use."""
        if self._entries is None:
            self._entries = self._count()
        return self._entries

    @property
    def size_in_bytes(self) -> int:
        return self.entries * self.ENTRY.size

    def _count(self) -> int:
        size = self.file.size()
        entries = used_entries(self.file, size, self.ENTRY.size)
        if size != entries * self.ENTRY.size:
            self.file.truncate(entries * self.ENTRY.size)
        return entries

    def is_full(self) -> bool:
        return self.entries >= self.max_entries

    def is_sorted(self) -> bool:
        """Whether both fields strictly increase from entry to entry."""
        fields = list(self.ENTRY.iter_unpack(self.file.read(self.entries * self.ENTRY.size, 0)))
        return all(a[0] < b[0] and a[1] < b[1] for a, b in pairwise(fields))

    def begin_rebuild(self, entries: int = 0) -> None:
        """Keep the first `entries` entries. Appended entries stay in memory until `finish_rebuild`."""
        self._data = bytearray(self.file.read(entries * self.ENTRY.size, 0)) if entries else bytearray()
        self._entries = entries
        self._rebuilding = True

    def finish_rebuild(self) -> None:
        assert self._data is not None
        self.file.write([bytes(self._data)], 0)
        self.file.truncate(len(self._data))
        self._rebuilding = False
        self.dirty = True

    def drop_memory(self) -> None:
        """Free the copy in memory, when the segment is no longer written to."""
        self._data = None

    def truncate_entries(self, entries: int) -> None:
        if entries < self.entries:
            self._entries = entries
            if self._data is not None:
                del self._data[entries * self.ENTRY.size :]
            self.file.truncate(entries * self.ENTRY.size)
            self.dirty = True

    def flush(self) -> None:
        if self.dirty:
            self.dirty = False
            self.file.fsync()

    def _append(self, first: int, second: int) -> None:
        entry = self.ENTRY.pack(first, second)
        entries = self.entries
        if self._data is None:
            self._data = bytearray(self.file.read(entries * self.ENTRY.size, 0))
        if not self._rebuilding:
            self.file.write([entry], entries * self.ENTRY.size)
            self.dirty = True
        self._data += entry
        self._entries = entries + 1

    def _fields(self, slot: int) -> tuple[int, int]:
        data = self._data
        if data is not None:
            return self.ENTRY.unpack_from(data, slot * self.ENTRY.size)
        return self.ENTRY.unpack(self.file.read(self.ENTRY.size, slot * self.ENTRY.size))

    def _floor(self, target: int, field: int) -> int:
        """Return the last slot whose field is at most `target`, or -1."""
        low, high = 0, self.entries
        while low < high:
            middle = (low + high) // 2
            if self._fields(middle)[field] <= target:
                low = middle + 1
            else:
                high = middle
        return low - 1


class OffsetIndex(Index):
    """Maps an offset to the position of a batch at or before it."""

    __slots__ = ()

    ENTRY = struct.Struct(">ii")

    def entry(self, slot: int) -> OffsetPosition:
        relative, position = self._fields(slot)
        return OffsetPosition(self.base_offset + relative, position)

    def lookup(self, offset: int) -> OffsetPosition:
        """Return the entry with the largest offset up to this one, or the start of the segment."""
        return self._at(self._floor(offset - self.base_offset, 0))

    def lookup_position(self, position: int) -> OffsetPosition:
        """Return the entry with the largest position up to this one, or the start of the segment."""
        return self._at(self._floor(position, 1))

    def upper_bound(self, position: int) -> int | None:
        """Return the offset of the first entry at or after a position, or None."""
        slot = self._floor(position - 1, 1) + 1
        return self.entry(slot).offset if slot < self.entries else None

    def last(self) -> OffsetPosition:
        return self._at(self.entries - 1)

    def append(self, offset: int, position: int) -> bool:
        """Add an entry unless the offset is not larger than the last one. Return whether it was added."""
        if self.entries and offset <= self.last().offset:
            return False
        self._append(offset - self.base_offset, position)
        return True

    def truncate_to(self, offset: int) -> None:
        """Keep only the entries with smaller offsets."""
        self.truncate_entries(self._floor(offset - self.base_offset - 1, 0) + 1)

    def _at(self, slot: int) -> OffsetPosition:
        entry = self.entry(slot) if slot >= 0 else None
        # A damaged index may have negative positions.
        return OffsetPosition(self.base_offset, 0) if entry is None or entry.position < 0 else entry


class TimeIndex(Index):
    """Maps a timestamp to an offset before which no record is as late."""

    __slots__ = ()

    ENTRY = struct.Struct(">qi")
    RESERVED_ENTRIES = 1  # reserved for the last entry of a segment, which can always be added

    def entry(self, slot: int) -> TimestampOffset:
        timestamp, relative = self._fields(slot)
        return TimestampOffset(timestamp, self.base_offset + relative)

    def lookup(self, timestamp: int) -> TimestampOffset:
        """Return the entry with the largest timestamp up to this one, or the start of the segment."""
        return self._at(self._floor(timestamp, 0))

    def last(self) -> TimestampOffset:
        return self._at(self.entries - 1)

    def maybe_append(self, latest: TimestampOffset) -> None:
        """Add an entry if its timestamp is later than the last one."""
        last = self.last()
        if latest.timestamp > last.timestamp and latest.offset >= last.offset:
            self._append(latest.timestamp, latest.offset - self.base_offset)

    def truncate_to(self, offset: int) -> None:
        """Keep only the entries with smaller offsets."""
        self.truncate_entries(self._floor(offset - self.base_offset - 1, 1) + 1)

    def _at(self, slot: int) -> TimestampOffset:
        return self.entry(slot) if slot >= 0 else TimestampOffset(NO_TIMESTAMP, self.base_offset)


def used_entries(file: File, size: int, entry_size: int) -> int:
    """Return the number of entries in an index file, without the zeros that Kafka leaves at its end after a crash."""
    entries = size // entry_size
    # A single entry of zeros is valid: a record at timestamp 0.
    if entries > 1 and not any(file.read(entry_size, (entries - 1) * entry_size)):
        used = len(file.read(entries * entry_size, 0).rstrip(b"\0"))
        return -(-used // entry_size)
    return entries


def fault_of_index(file: File, entry_size: int) -> str | None:
    """Return what is wrong with an index file, judged by its size alone, or None."""
    size = file.find_size()
    if size is None:
        return f"{file.path} is missing"
    return f"{file.path} has {size} bytes, which is not a multiple of {entry_size}" if size % entry_size else None
