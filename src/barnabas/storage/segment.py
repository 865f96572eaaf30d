"""One segment of a log: the batches from a base offset on, in one file, with two indexes beside it.

Its one rule: `size` is the length of the valid part of the file. It grows after the bytes are written and shrinks
before they are truncated, so bytes after it, partly written or stale, are never read. Usually only batch headers are
read; only a search by timestamp decodes records, and only `recover` verifies checksums.

One thread writes; others may read and flush concurrently. Index objects are created on first use, because most segments
of a node are idle. Aborted transactions and producer state (.snapshot) are handled by the log, not here. `recover`
passes every batch that it keeps to `visit`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from itertools import chain
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from barnabas.batches import (
    HEADER_SIZE,
    BatchError,
    BatchHeader,
    CorruptBatchError,
    Record,
    check_crc,
    decode_whole_header,
    walk_records,
)
from barnabas.batches.format import MAGIC, MAGIC_POSITION, Buffer
from barnabas.storage.aborted import TransactionIndex
from barnabas.storage.batch_file import BatchPosition, WholeBatch, is_old_message, walk_headers, walk_places, walk_whole
from barnabas.storage.errors import CorruptLogError, StorageError
from barnabas.storage.files import File, exists
from barnabas.storage.index import (
    MAX_RELATIVE_OFFSET,
    NO_TIMESTAMP,
    OffsetIndex,
    OffsetPosition,
    TimeIndex,
    TimestampOffset,
    fault_of_index,
)
from barnabas.storage.log_config import LogConfig

LOG_SUFFIX = ".log"
INDEX_SUFFIX = ".index"
TIME_INDEX_SUFFIX = ".timeindex"
TXN_INDEX_SUFFIX = ".txnindex"
PRODUCER_SNAPSHOT_SUFFIX = ".snapshot"
DELETED_SUFFIX = ".deleted"
CLEANED_SUFFIX = ".cleaned"  # being written by a compaction
SWAP_SUFFIX = ".swap"  # about to replace other segments
INDEX_SUFFIXES = (INDEX_SUFFIX, TIME_INDEX_SUFFIX, TXN_INDEX_SUFFIX)
MAX_SEGMENT_BYTES = 2**31 - 1
_LOOKED_THROUGH_BYTES = 16 * 1024 * 1024  # searched after a damaged batch
_SECTOR_BYTES = 512  # a disk writes these as a whole, or not at all
_LENGTH_END = 12  # base offset and length: the length of a batch is never zero
_MAKING = Lock()  # protects the creation of index objects, one of each per segment


class Written(NamedTuple):
    """A batch to be indexed after it is written."""

    base_offset: int
    last_offset: int
    max_timestamp: int
    size: int


class Recovery(NamedTuple):
    """The result of recovering a segment: its end offset, and how many bytes were truncated there and why."""

    base_offset: int
    next_offset: int
    truncated_bytes: int = 0
    reason: str | None = None


class FoundOffset(NamedTuple):
    """The result of a search by timestamp."""

    timestamp: int
    offset: int
    leader_epoch: int


def segment_path(directory: Path, base_offset: int, suffix: str) -> Path:
    return directory / f"{base_offset:020d}{suffix}"


def _deleted_path(path: Path) -> Path:
    """Return an unused name, because a segment may be replaced again before the one it replaced is deleted."""
    deleted, number = path.with_name(path.name + DELETED_SUFFIX), 0
    while exists(deleted):
        number += 1
        deleted = path.with_name(f"{path.name}.{number}{DELETED_SUFFIX}")
    return deleted


class Segment:
    """The batches from `base_offset` up to the base offset of the next segment."""

    __slots__ = (
        "_bytes_since_entry",
        "_directory",
        "_first_timestamp",
        "_indexes",
        "_latest",
        "_suffix",
        "base_offset",
        "config",
        "created_ms",
        "dirty",
        "is_deleted",
        "log",
        "size",
    )

    def __init__(
        self,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        log: File,
        size: int,
        created_ms: int,
        suffix: str = "",
    ) -> None:
        self.base_offset = base_offset
        self.config = config
        self.log = log
        self.size = size
        self.created_ms = created_ms
        self.dirty = False
        self.is_deleted = False
        self._directory = directory
        self._suffix = suffix
        self._indexes: tuple[OffsetIndex, TimeIndex, TransactionIndex] | None = None
        self._bytes_since_entry: int | None = None
        self._latest: TimestampOffset | None = None
        self._first_timestamp: int | None = None

    @classmethod
    def create(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        suffix: str = "",
        files: type[File] = File,
    ) -> Segment:
        """Create an empty segment, replacing files of the same name. With a suffix it is not part of the log yet."""
        stem = f"{directory}/{base_offset:020d}"
        for kind in (INDEX_SUFFIX, TIME_INDEX_SUFFIX):
            files.create(stem + kind + suffix)
        files(stem + TXN_INDEX_SUFFIX + suffix).unlink()
        return cls(directory, base_offset, config, files.create(stem + LOG_SUFFIX + suffix), 0, now_ms, suffix)

    @classmethod
    def open(
        cls,
        directory: Path,
        base_offset: int,
        config: LogConfig,
        now_ms: int,
        suffix: str = "",
        files: type[File] = File,
    ) -> Segment:
        """Open the segment from its files. Its indexes use the same class of files as its log."""
        log = files(f"{directory}/{base_offset:020d}{LOG_SUFFIX}{suffix}")
        size = log.size()
        if size > MAX_SEGMENT_BYTES:
            raise StorageError(f"{log.path} has {size} bytes, more than a segment may have")
        return cls(directory, base_offset, config, log, size, now_ms, suffix)

    @property
    def offset_index(self) -> OffsetIndex:
        return (self._indexes or self._make_indexes())[0]

    @property
    def time_index(self) -> TimeIndex:
        return (self._indexes or self._make_indexes())[1]

    @property
    def txn_index(self) -> TransactionIndex:
        return (self._indexes or self._make_indexes())[2]

    def _make_indexes(self) -> tuple[OffsetIndex, TimeIndex, TransactionIndex]:
        with _MAKING:
            if self._indexes is None:
                max_bytes = self.config.segment_index_bytes
                self._indexes = (
                    OffsetIndex(self._file(INDEX_SUFFIX), self.base_offset, max_bytes),
                    TimeIndex(self._file(TIME_INDEX_SUFFIX), self.base_offset, max_bytes),
                    TransactionIndex(self._file(TXN_INDEX_SUFFIX), self.base_offset),
                )
            return self._indexes

    def _file(self, kind: str) -> File:
        return type(self.log)(f"{self._directory}/{self.base_offset:020d}{kind}{self._suffix}")

    def configure(self, config: LogConfig) -> None:
        self.config = config
        if self._indexes is not None:
            self.offset_index.limit(config.segment_index_bytes)
            self.time_index.limit(config.segment_index_bytes)

    def index_fault(self) -> str | None:
        """Return why the indexes must be rebuilt, as far as can be seen without reading them, or None."""
        for kind, index in ((INDEX_SUFFIX, OffsetIndex), (TIME_INDEX_SUFFIX, TimeIndex)):
            fault = fault_of_index(self._file(kind), index.ENTRY.size)
            if fault is not None:
                return fault
        return self.txn_index.fault() if self._file(TXN_INDEX_SUFFIX).exists() else None

    def index_misfit(self) -> str | None:
        """Return why the indexes cannot belong to this log, judged without reading all of it, or None."""
        if not self.offset_index.is_sorted() or not self.time_index.is_sorted():
            return f"the index entries of {self.log.path} are not in order"
        last = self.offset_index.last()
        if last.position >= max(self.size, 1) or self._places_from(last) is None:
            return f"{self.offset_index.file.path} has entries of another log"
        latest = self.time_index.last()
        try:
            if self.size and (latest.timestamp < self.first_timestamp() or latest.offset >= self.next_offset()):
                return f"{self.time_index.file.path} has entries of another log"
        except CorruptLogError as error:
            return str(error)
        return None

    # Writing

    def should_roll(self, size: int, max_timestamp: int, last_offset: int, now_ms: int) -> bool:
        """Whether batches of this size that end with this offset must go to the next segment."""
        config = self.config
        return (
            self.size > config.segment_bytes - size
            or (self.size > 0 and self._waited_ms(max_timestamp, now_ms) > config.segment_ms)
            or self.offset_index.is_full()
            or self.time_index.is_full()
            or not 0 <= last_offset - self.base_offset <= MAX_RELATIVE_OFFSET
        )

    def append(self, buffers: Sequence[Buffer], batches: Sequence[Written]) -> None:
        """Write batches after the last one. When this returns, the operating system has them."""
        position = self.size
        self.dirty = True
        try:
            self.log.write(buffers, position)
        except StorageError:
            self.log.truncate(position)
            raise
        if position == 0:
            self._first_timestamp = batches[0].max_timestamp
        for batch in batches:
            self._index(position, batch.last_offset, batch.max_timestamp, batch.size)
            position += batch.size
        self.size = position

    def seal(self) -> None:
        """Add the largest timestamp to the time index, when the next segment starts or the log is closed."""
        if self.size:
            self.time_index.maybe_append(self.latest())
        if self._indexes is not None:
            self.offset_index.drop_memory()
            self.time_index.drop_memory()

    def flush(self, *, indexes: bool) -> None:
        """Make the log durable, and the indexes too unless recovery would rebuild them."""
        if self.dirty:
            self.dirty = False
            self.log.fsync()
        if indexes and self._indexes is not None:
            for index in self._indexes:
                index.flush()

    def truncate_to(self, offset: int, now_ms: int) -> int:
        """Remove every batch that has this offset or a larger one, and return the new end offset.

        It is `offset`, or the first offset of the batch that contained it.
        """
        place = self.find(offset)
        self.offset_index.truncate_to(offset)
        self.time_index.truncate_to(offset)
        self.txn_index.truncate_to(offset)
        if place is not None:
            self.size = place.position
            self.dirty = True
            self.log.truncate(place.position)
        if self.size == 0:
            self.created_ms = now_ms
            self._first_timestamp = None
        self._bytes_since_entry = None
        self._latest = self._read_latest()
        return offset if place is None else min(offset, place.base_offset)

    def let_go(self) -> None:
        """Close the files."""
        self.log.let_go()
        for index in self._indexes or ():
            index.file.let_go()

    def change_suffix(self, suffix: str) -> None:
        """Rename the files to have this suffix, or none."""
        for file, kind in zip(self._files(), (LOG_SUFFIX, *INDEX_SUFFIXES), strict=True):
            file.rename(segment_path(self._directory, self.base_offset, kind + suffix))
        self._suffix = suffix

    def set_modified_ms(self, modified_ms: int) -> None:
        """Set the time of the last write, which is used for records without timestamps."""
        for file in (self.log, self.offset_index.file, self.time_index.file):
            file.set_modified_ms(modified_ms)

    def mark_deleted(self, *, keep_snapshot: bool = False) -> None:
        """Rename the files, so that the segment is gone even if it is never deleted. Open readers may continue.

        The producer snapshot stays if another segment starts at the same offset.
        """
        self.is_deleted = True
        for file in self._files():
            file.rename(_deleted_path(file.path))
        if not keep_snapshot:
            snapshot = segment_path(self._directory, self.base_offset, PRODUCER_SNAPSHOT_SUFFIX)
            type(self.log)(snapshot).rename(snapshot.with_name(snapshot.name + DELETED_SUFFIX))

    def delete(self) -> None:
        """Delete the files of a segment that was marked."""
        for file in self._files():
            file.unlink()
        snapshot = segment_path(self._directory, self.base_offset, PRODUCER_SNAPSHOT_SUFFIX + DELETED_SUFFIX)
        type(self.log)(snapshot).unlink()

    def move(self, directory: Path) -> list[File]:
        """Follow a rename of the directory. The caller updates the names of the returned files."""
        with _MAKING:
            self._directory = directory
            return [self.log, *(index.file for index in self._indexes or ())]

    # Reading

    def find(self, offset: int) -> BatchPosition | None:
        """Return the first batch that has this offset or a larger one, or None."""
        entry = self.offset_index.lookup(offset)
        places = self._places_from(entry)
        if places is None:  # the index does not match the log
            places = walk_places(self.log, 0, self.size)
        for place in places:
            if place.last_offset >= offset:
                return place
        return None

    def find_range(
        self, offset: int, max_bytes: int, max_offset: int | None = None, *, min_one_batch: bool = True
    ) -> tuple[int, int] | None:
        """Return position and size of the whole batches to read from `offset`, or None if all batches are before it.

        Only batches that end before `max_offset` count. The first one is included even if it is larger than
        `max_bytes`.
        """
        first = self.find(offset)
        if first is None:
            return None
        limit = self.size
        if max_offset is not None:
            last = self.find(max_offset)
            limit = limit if last is None else last.position
        if limit <= first.position:
            return first.position, 0
        end = first.position + max_bytes
        if end < first.position + first.size:
            return first.position, first.size if min_one_batch else 0
        return first.position, (limit if end >= limit else self._end_of_whole(first.position, end)) - first.position

    def read(
        self, offset: int, max_bytes: int, max_offset: int | None = None, *, min_one_batch: bool = True
    ) -> bytes | None:
        """Return the bytes of the batches that `find_range` finds."""
        found = self.find_range(offset, max_bytes, max_offset, min_one_batch=min_one_batch)
        if found is None:
            return None
        position, size = found
        return self.log.read(size, position) if size else b""

    def headers(self, position: int = 0) -> Iterator[tuple[int, BatchHeader]]:
        """Yield the position and header of every batch from `position` on."""
        return walk_headers(self.log, position, self.size)

    def next_offset(self) -> int:
        """Return the offset after the last batch.

        Raises CorruptLogError if the file does not end with a whole batch.
        """
        next_offset = self.base_offset
        if not self.size:
            return next_offset
        entry = self.offset_index.last()
        places = self._places_from(entry)
        for place in walk_places(self.log, 0, self.size) if places is None else places:
            next_offset = place.last_offset + 1
        return next_offset

    def latest(self) -> TimestampOffset:
        """Return the largest timestamp, and the last offset of the first batch that has it."""
        if self._latest is None:
            empty = TimestampOffset(NO_TIMESTAMP, self.base_offset)
            self._latest = self.time_index.last() if self.size else empty
        return self._latest

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of a record, or the time of the last write if there is none."""
        timestamp = self.latest().timestamp
        return timestamp if timestamp >= 0 else self.log.modified_ms()

    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, or -1 if the segment is empty."""
        if self._first_timestamp is None:
            first = next(self.headers(), None)
            if first is None:
                return NO_TIMESTAMP
            self._first_timestamp = first[1].max_timestamp
        return self._first_timestamp

    def offset_for_timestamp(self, timestamp: int, starting_offset: int) -> FoundOffset | None:
        """Return the first record from `starting_offset` on that is not earlier than `timestamp`."""
        entry = self.time_index.lookup(timestamp)
        position = self.offset_index.lookup(max(entry.offset, starting_offset)).position
        for at, header in self.headers(position):
            if header.max_timestamp >= timestamp and header.last_offset >= starting_offset:
                for record in self._records(at, header):
                    if record.timestamp >= timestamp and record.offset >= starting_offset:
                        return FoundOffset(record.timestamp, record.offset, header.partition_leader_epoch)
        return None

    def offset_for_max_timestamp(self) -> FoundOffset | None:
        """Return the first record that has the largest timestamp of the segment, or None if it is gone or has none."""
        latest = self.latest()
        if latest.timestamp < 0:
            return None
        for at, header in self.headers(self.offset_index.lookup(latest.offset).position):
            if header.max_timestamp == latest.timestamp:
                for record in self._records(at, header):
                    if record.timestamp == latest.timestamp:
                        return FoundOffset(latest.timestamp, record.offset, header.partition_leader_epoch)
                return None  # compaction emptied the batch
        return None

    # Recovery

    def recover(
        self, visit: Callable[[WholeBatch], None], *, flushed_offset: int = 0, batches_follow: bool = False
    ) -> Recovery:
        """Keep the intact batches at the start, truncate the rest, and rebuild the indexes.

        Batches up to `flushed_offset` are known to be on disk: if an index entry before it matches, the scan starts
        there. In a metadata log, damage followed by intact batches is data loss, and raises CorruptLogError. The
        exception is a sector that was never written, although later ones were: power was lost during a flush.
        """
        start = self._trusted_batch(flushed_offset)
        position, next_offset = self._begin_recovery(start)
        fault: CorruptLogError | None = None
        try:
            for batch in walk_whole(self.log, position, self.size):
                header = batch.header
                self._check(batch, next_offset)
                self._index(batch.position, header.last_offset, header.max_timestamp, header.size_in_bytes)
                visit(batch)
                next_offset = header.next_offset
                position = batch.position + header.size_in_bytes
        except CorruptLogError as error:
            fault = error
            is_interrupted = (
                not batches_follow
                and next_offset >= flushed_offset
                and self._has_unwritten_sector(error.position, next_offset)
            )
            self._refuse_loss(error, batches_follow=batches_follow, is_interrupted=is_interrupted)
        return self._finish_recovery(position, next_offset, fault)

    def _begin_recovery(self, start: BatchPosition | None) -> tuple[int, int]:
        self.txn_index.reset()
        self._latest = None
        if start is None:
            self._latest = TimestampOffset(NO_TIMESTAMP, self.base_offset)
            self.offset_index.begin_rebuild()
            self.time_index.begin_rebuild()
            self._bytes_since_entry = 0
            return 0, self.base_offset
        self.offset_index.truncate_to(start.last_offset + 1)
        self.time_index.truncate_to(start.last_offset + 1)
        self.offset_index.begin_rebuild(self.offset_index.entries)
        self.time_index.begin_rebuild(self.time_index.entries)
        self._latest = self.time_index.last()
        self._bytes_since_entry = start.size
        return start.position + start.size, start.last_offset + 1

    def _finish_recovery(self, position: int, next_offset: int, fault: CorruptLogError | None) -> Recovery:
        truncated = self.size - position
        self.size = position
        if truncated:
            self.log.truncate(position)
        self.time_index.maybe_append(self.latest())
        for index in (self.offset_index, self.time_index):
            index.file.make()
            index.finish_rebuild()
        self.dirty = True
        return Recovery(self.base_offset, next_offset, truncated, fault.reason if fault else None)

    def _check(self, batch: WholeBatch, next_offset: int) -> None:
        """Raise CorruptLogError unless the batch is intact and its offsets continue the segment."""
        header = batch.header
        path, position = self.log.path, batch.position
        try:
            check_crc(header, batch.data, batch.start)
        except CorruptBatchError:
            raise CorruptLogError(path, position, "wrong checksum") from None
        low, high = self.base_offset, self.base_offset + MAX_RELATIVE_OFFSET
        if not low <= header.base_offset <= header.last_offset <= high:
            reason = f"the offsets {header.base_offset} to {header.last_offset} cannot be in this segment"
            raise CorruptLogError(path, position, reason)
        if self.config.metadata and header.base_offset < next_offset:
            raise CorruptLogError(path, position, f"offset {header.base_offset} where {next_offset} is expected")
        if header.last_offset < next_offset - 1:
            raise CorruptLogError(path, position, f"offset {header.last_offset} comes after {next_offset - 1}")

    def _refuse_loss(self, fault: CorruptLogError, *, batches_follow: bool, is_interrupted: bool) -> None:
        """Raise if truncation would lose batches that were completely written."""
        if not fault.truncated and is_old_message(self.log.read(_LOOKED_THROUGH_BYTES, fault.position)):
            raise StorageError(f"{fault}; convert this log with a Kafka version before 4.0") from fault
        if self.config.metadata and not is_interrupted and (batches_follow or self._has_batch_from(fault.position)):
            raise CorruptLogError(
                fault.path,
                fault.position,
                f"{fault.reason}, but intact batches follow, so this is damage and not an interrupted write; "
                "if the cluster has other voters, empty this directory and let the node fetch the log again",
            ) from fault

    def _has_unwritten_sector(self, position: int, next_offset: int) -> bool:
        """Whether a sector of the batch with this base offset is zeros up to its end, from where the batch begins.

        What has been flushed ends before the batch, so all that a lost sector has of it and of the next batches is zeros.
        """
        data = self.log.read(min(self.size - position, _LOOKED_THROUGH_BYTES), position)
        first = _SECTOR_BYTES - position % _SECTOR_BYTES
        is_zero_if_written = first < _LENGTH_END and not any(next_offset.to_bytes(8)[:first])
        if not any(data[:first]) and not is_zero_if_written:
            return True
        length = int.from_bytes(data[_LENGTH_END - 4 : _LENGTH_END])
        end = min(max(_LENGTH_END + length, HEADER_SIZE), len(data))
        return any(not any(data[at : at + _SECTOR_BYTES]) for at in range(first, end, _SECTOR_BYTES))

    def _has_batch_from(self, position: int) -> bool:
        """Whether there is an intact batch at or after `position`. The length of a damaged batch may be wrong."""
        rest = self.log.read(min(self.size - position, _LOOKED_THROUGH_BYTES), position)
        magic = rest.find(MAGIC, MAGIC_POSITION)
        while magic >= 0:
            start = magic - MAGIC_POSITION
            try:
                header = decode_whole_header(rest, start)
                if self.base_offset <= header.base_offset <= self.base_offset + MAX_RELATIVE_OFFSET:
                    check_crc(header, rest, start)
                    return True
            except BatchError:
                pass
            magic = rest.find(MAGIC, magic + 1)
        return False

    def _trusted_batch(self, flushed_offset: int) -> BatchPosition | None:
        """Return the batch of the last index entry before an offset, if the indexes are sorted and the log matches."""
        if flushed_offset <= self.base_offset or self.index_fault() is not None:
            return None
        if not self.offset_index.is_sorted() or not self.time_index.is_sorted():
            return None
        entry = self.offset_index.lookup(flushed_offset - 1)
        places = self._places_from(entry) if entry.position else None
        return None if places is None else next(places)

    # Internals

    def _files(self) -> tuple[File, ...]:
        # The log first: without it, the remaining files are not a segment.
        return self.log, self.offset_index.file, self.time_index.file, self.txn_index.file

    def _index(self, position: int, last_offset: int, max_timestamp: int, size: int) -> None:
        if max_timestamp > self.latest().timestamp:
            self._latest = TimestampOffset(max_timestamp, last_offset)
        since = self._bytes_since_entry
        if since is None:
            since = position - self.offset_index.last().position
        if since > self.config.index_interval_bytes and self.offset_index.append(last_offset, position):
            self.time_index.maybe_append(self.latest())
            since = 0
        self._bytes_since_entry = since + size

    def _records(self, position: int, header: BatchHeader) -> Iterator[Record]:
        try:
            limit = self.config.max_decompressed_bytes
            yield from walk_records(
                self.log.read(header.size_in_bytes, position), 0, header, max_decompressed_bytes=limit
            )
        except BatchError as error:
            raise CorruptLogError(self.log.path, position, str(error)) from error

    def _waited_ms(self, max_timestamp: int, now_ms: int) -> int:
        """Return the age of the segment, by its records' timestamps if they have any."""
        first_timestamp = self.first_timestamp()
        return max_timestamp - first_timestamp if first_timestamp >= 0 else now_ms - self.created_ms

    def _places_from(self, entry: OffsetPosition) -> Iterator[BatchPosition] | None:
        """Yield the batches from an index entry on, or return None if the log does not match the entry."""
        if entry.position == 0:
            return walk_places(self.log, 0, self.size)
        places = walk_places(self.log, entry.position, self.size)
        try:
            first = next(places)
        except (CorruptLogError, StopIteration):
            return None
        return chain((first,), places) if first.last_offset == entry.offset else None

    def _end_of_whole(self, position: int, end: int) -> int:
        """Return the end of the last batch that lies between these positions."""
        entry = self.offset_index.lookup_position(end)
        places = self._places_from(entry) if entry.position > position else None
        if places is None:
            entry = OffsetPosition(0, position)
            places = walk_places(self.log, position, self.size)
        whole = entry.position
        for place in places:
            if place.position + place.size > end:
                break
            whole = place.position + place.size
        return whole

    def _read_latest(self) -> TimestampOffset:
        """Return the largest timestamp after a truncation: from the index, or from batches after its last entry."""
        latest = self.time_index.last()
        for _, header in self.headers(self.offset_index.lookup(latest.offset).position):
            if header.max_timestamp > latest.timestamp:
                latest = TimestampOffset(header.max_timestamp, header.last_offset)
        return latest
