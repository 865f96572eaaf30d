"""Reads the files of logs that another process may own, while they are written to, or after a crash.

Its one rule: nothing is written or locked. Damage is a value, not an exception: a batch carries its error, and where no
batch can be decoded the iteration ends with a `Damage` that says where and why. At most one batch is in memory.

Segments and snapshots are treated alike, as files of batches. Use `batches.decode_records` to decode records.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from barnabas.batches import (
    BatchError,
    BatchHeader,
    CorruptBatchError,
    check_crc,
    check_record_lengths,
    decode_payload,
)
from barnabas.batches.format import MAX_INT64
from barnabas.storage.batch_file import walk_places, walk_whole
from barnabas.storage.errors import CorruptLogError
from barnabas.storage.files import File
from barnabas.storage.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset, used_entries
from barnabas.storage.loading import segment_offsets
from barnabas.storage.segment import INDEX_SUFFIX, LOG_SUFFIX, TIME_INDEX_SUFFIX, segment_path


class OfflineBatch(NamedTuple):
    """A batch and its bytes. `error` is set if its checksum is wrong."""

    position: int
    header: BatchHeader
    data: memoryview
    error: str | None


class Damage(NamedTuple):
    """The rest of a file from the first position where no batch can be decoded.

    `truncated` means that the file ends inside a batch: after a crash, or because the batch is being written.
    """

    path: Path
    position: int
    size: int
    reason: str
    truncated: bool


class IndexMismatch(NamedTuple):
    """An index entry that contradicts the log."""

    path: Path
    entry: OffsetPosition | TimestampOffset
    reason: str


def read_batches(path: Path, position: int = 0) -> Iterator[OfflineBatch | Damage]:
    """Yield the batches of a segment or snapshot, and finally a `Damage` if it does not end with a whole batch."""
    file = File(path, writable=False)
    size = file.size()
    try:
        for batch in walk_whole(file, position, size):
            error = None
            try:
                check_crc(batch.header, batch.data, batch.start)
            except CorruptBatchError as wrong:
                error = str(wrong)
            data = memoryview(batch.data)[batch.start : batch.start + batch.header.size_in_bytes]
            yield OfflineBatch(batch.position, batch.header, data, error)
    except CorruptLogError as damage:
        yield Damage(path, damage.position, size - damage.position, damage.reason, damage.truncated)
    finally:
        file.let_go()


def end_offset_of(directory: Path) -> int:
    """Return the offset after the last intact batch of a log."""
    offsets = segment_offsets(directory)
    end = offsets[-1] if offsets else 0
    for item in read_batches(segment_path(directory, end, LOG_SUFFIX)) if offsets else ():
        if isinstance(item, Damage) or item.error is not None:
            break
        end = item.header.next_offset
    return end


class QuickEnd(NamedTuple):
    """The offset after the last whole batch of a log, and the damage that follows it, if any."""

    offset: int
    damage: CorruptLogError | None = None


def quick_end_of(directory: Path) -> QuickEnd:
    """Find the end of a log without reading records: from the last index entry on. Checksums are not checked."""
    offsets = segment_offsets(directory)
    if not offsets:
        return QuickEnd(0)
    end = offsets[-1]
    file = File(segment_path(directory, end, LOG_SUFFIX), writable=False)
    try:
        for place in walk_places(file, _position_before(directory, end, MAX_INT64), file.size()):
            end = place.last_offset + 1
    except CorruptLogError as damage:
        return QuickEnd(end, damage)
    finally:
        file.let_go()
    return QuickEnd(end)


def read_partition(
    directory: Path, start_offset: int = 0, end_offset: int | None = None
) -> Iterator[OfflineBatch | Damage]:
    """Yield the batches of a log, across all segments, between these offsets. The first one is found by the index."""
    offsets = segment_offsets(directory)
    for base_offset, next_base_offset in zip(offsets, [*offsets[1:], None], strict=False):
        if next_base_offset is not None and next_base_offset <= start_offset:
            continue
        if end_offset is not None and base_offset >= end_offset:
            return
        path = segment_path(directory, base_offset, LOG_SUFFIX)
        for item in read_batches(path, _position_before(directory, base_offset, start_offset)):
            if isinstance(item, OfflineBatch):
                if end_offset is not None and item.header.base_offset >= end_offset:
                    return
                if item.header.last_offset < start_offset:
                    continue
            yield item


class BatchFault(NamedTuple):
    """A fault of a batch, or of the rest of a file: `base_offset` is None where no batch can be decoded."""

    position: int
    base_offset: int | None
    reason: str


def check_batches(path: Path, progressed: Callable[[int], None] = lambda position: None) -> Iterator[BatchFault]:
    """Yield the faults of a segment or snapshot: checksums, offsets, and lengths of records.

    `progressed` is called with the number of bytes checked.
    """
    name = path.name[:20]
    last_offset = int(name) - 1 if path.name.partition(".")[0] == name and name.isdecimal() else -1
    for item in read_batches(path):
        if isinstance(item, Damage):
            yield BatchFault(item.position, None, f"{item.reason}; {item.size} bytes are left")
            progressed(item.position + item.size)
            return
        header = item.header
        if header.base_offset <= last_offset:
            yield BatchFault(item.position, header.base_offset, f"the batch should begin after offset {last_offset}")
        if header.last_offset_delta < 0:
            reason = f"the batch ends at offset {header.last_offset}, before it begins"
            yield BatchFault(item.position, header.base_offset, reason)
        wrong = item.error.replace("the batch at 0 ", "the batch ") if item.error else _fault_of_records(item)
        if wrong is not None:
            yield BatchFault(item.position, header.base_offset, wrong)
        last_offset = max(last_offset, header.last_offset)
        progressed(item.position + header.size_in_bytes)


def _fault_of_records(batch: OfflineBatch) -> str | None:
    header = batch.header
    if header.is_empty:
        return None  # an empty batch that compaction keeps for the state of its producer
    try:
        check_record_lengths(bytes(decode_payload(batch.data, 0, header)), header.records_count)
    except BatchError as error:
        return str(error)
    return None


def read_offset_index(path: Path) -> Iterator[OffsetPosition]:
    """Yield the entries of an `.index` file, without preallocated zeros."""
    base_offset = int(path.name[:20])
    for relative, position in OffsetIndex.ENTRY.iter_unpack(_entries(path, OffsetIndex.ENTRY.size)):
        yield OffsetPosition(base_offset + relative, position)


def read_time_index(path: Path) -> Iterator[TimestampOffset]:
    """Yield the entries of a `.timeindex` file, without preallocated zeros."""
    base_offset = int(path.name[:20])
    for timestamp, relative in TimeIndex.ENTRY.iter_unpack(_entries(path, TimeIndex.ENTRY.size)):
        yield TimestampOffset(timestamp, base_offset + relative)


def check_indexes(directory: Path, base_offset: int) -> Iterator[IndexMismatch]:
    """Yield every entry of a segment's indexes that contradicts the log or is out of order."""
    offset_path = segment_path(directory, base_offset, INDEX_SUFFIX)
    time_path = segment_path(directory, base_offset, TIME_INDEX_SUFFIX)
    positions = read_offset_index(offset_path) if offset_path.exists() else iter(())
    times = read_time_index(time_path) if time_path.exists() else iter(())
    position, time = next(positions, None), next(times, None)
    latest = -1
    # Entries and batches are in the same order: an entry that a batch has passed is not in the log.
    for item in read_batches(segment_path(directory, base_offset, LOG_SUFFIX)):
        if isinstance(item, Damage):
            break
        last_offset = item.header.last_offset
        latest = max(latest, item.header.max_timestamp)
        while position is not None and position.position <= item.position:
            if position != (last_offset, item.position):
                yield IndexMismatch(
                    offset_path, position, "no batch that ends with this offset starts at this position"
                )
            position = next(positions, None)
        while time is not None and time.offset <= last_offset:
            if time != (latest, last_offset):
                yield IndexMismatch(
                    time_path, time, "this is not the largest timestamp up to the batch with this offset"
                )
            time = next(times, None)
    while position is not None:
        yield IndexMismatch(offset_path, position, "it is after the end of the log")
        position = next(positions, None)
    while time is not None:
        yield IndexMismatch(time_path, time, "it is after the end of the log")
        time = next(times, None)


def _entries(path: Path, entry_size: int) -> bytes:
    file = File(path, writable=False)
    try:
        return file.read(used_entries(file, file.size(), entry_size) * entry_size, 0)
    finally:
        file.let_go()


def _position_before(directory: Path, base_offset: int, start_offset: int) -> int:
    """Return the position from which to search for an offset: that of a matching index entry before it, or 0."""
    path = segment_path(directory, base_offset, INDEX_SUFFIX)
    if start_offset <= base_offset or not path.exists():
        return 0
    entries = [entry for entry in read_offset_index(path) if entry.offset < start_offset]
    if not entries:
        return 0
    file = File(segment_path(directory, base_offset, LOG_SUFFIX), writable=False)
    try:
        first = next(walk_places(file, entries[-1].position, file.size()))
        return entries[-1].position if first.last_offset == entries[-1].offset else 0
    except (CorruptLogError, StopIteration):
        return 0
    finally:
        file.let_go()
