"""Snapshot files of a log's producer state, and the state at its end, from the newest snapshot and the log after it.

Its one rule: a snapshot only saves time, and nothing depends on it. A damaged one is deleted, and an older one or the
log is read instead. So it is written in place, and made durable together with the segment before it. A log has one
snapshot at the start of each segment, and one where it was closed or loaded. It has only the last batch of each
producer.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from barnabas.batches import crc32c
from barnabas.storage.files import delete_file, file_names, fsync_file, read_whole, write_whole
from barnabas.storage.producers import (
    NO_OFFSET,
    BatchMetadata,
    ProducerBatch,
    Producers,
    ProducerState,
    is_expired,
    producer_batch,
)
from barnabas.storage.segment import PRODUCER_SNAPSHOT_SUFFIX, Segment, segment_path

_SNAPSHOT_FILE = re.compile(r"(\d{20})\.snapshot")
_VERSION = 1
# version and checksum of the rest; number of producers
_HEAD = struct.Struct(">hI")
_COUNT = struct.Struct(">i")
# producer id, epoch, last sequence, last offset, offset delta, timestamp, coordinator epoch, first offset of
# transaction
_ENTRY = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(ValueError):
    """A snapshot that is damaged or incomplete."""


def encode_producers(states: Sequence[ProducerState]) -> bytes:
    """Return the content of a snapshot."""
    parts = [_COUNT.pack(len(states))]
    for state in states:
        last = state.batches[-1] if state.batches else BatchMetadata(-1, NO_OFFSET, 0, 0)
        parts.append(
            _ENTRY.pack(
                state.producer_id,
                state.producer_epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                state.last_timestamp,
                state.coordinator_epoch,
                state.current_txn_first_offset,
            )
        )
    entries = b"".join(parts)
    return _HEAD.pack(_VERSION, crc32c(entries)) + entries


def decode_producers(data: bytes) -> list[ProducerState]:
    """Return the producers of a snapshot. Raises CorruptSnapshotError if it is damaged."""
    start = _HEAD.size + _COUNT.size
    if len(data) < start:
        raise CorruptSnapshotError(f"it has {len(data)} bytes")
    version, crc = _HEAD.unpack_from(data)
    if version != _VERSION:
        raise CorruptSnapshotError(f"it has version {version}")
    if crc32c(data[_HEAD.size :]) != crc:
        raise CorruptSnapshotError("its checksum is wrong")
    (count,) = _COUNT.unpack_from(data, _HEAD.size)
    if len(data) - start != count * _ENTRY.size:
        raise CorruptSnapshotError(f"its {len(data)} bytes are not {count} producers")
    states = []
    for producer_id, epoch, sequence, offset, delta, timestamp, coordinator_epoch, first in _ENTRY.iter_unpack(
        data[start:]
    ):
        batches = (BatchMetadata(sequence, offset, delta, timestamp),) if offset >= 0 else ()
        states.append(ProducerState(producer_id, epoch, coordinator_epoch, timestamp, max(first, NO_OFFSET), batches))
    return states


def read_producer_batches(segment: Segment, start_offset: int) -> Iterator[ProducerBatch]:
    """Yield the batches of a segment, from an offset on, that have a producer id."""
    place = segment.find(start_offset)
    if place is None:
        return
    for position, header in segment.headers(place.position):
        if header.has_producer_id:
            data = segment.log.read(header.size_in_bytes, position) if header.is_control else b""
            yield producer_batch(header, header.base_offset, data, 0)


class ProducerSnapshots:
    """The `.snapshot` files of one log."""

    __slots__ = ("_offsets", "_read_only", "_unflushed", "directory", "faults")

    def __init__(self, directory: Path, names: Sequence[str] | None = None, *, read_only: bool = False) -> None:
        """Find the snapshots. `names` are the sorted file names of the directory, if known."""
        self.directory = directory
        self._read_only = read_only  # if true, files are neither written nor deleted
        found = map(_SNAPSHOT_FILE.fullmatch, file_names(directory) if names is None else names)
        self._offsets = [int(match[1]) for match in found if match]
        self._unflushed: list[int] = []
        self.faults: tuple[str, ...] = ()  # damaged snapshots that were found

    def offsets(self) -> list[int]:
        """Return the offsets of the snapshots, in order."""
        return list(self._offsets)

    def take(self, producers: Producers, offset: int, log_start_offset: int) -> bool:
        """Write a snapshot at an offset, unless there is a later one. `flush` makes it durable."""
        if self._read_only or offset <= (self._offsets[-1] if self._offsets else log_start_offset):
            return False
        write_whole(self._path(offset), encode_producers(producers.states))
        self._offsets.append(offset)
        self._unflushed.append(offset)
        return True

    def forget(self, offset: int) -> None:
        """Forget the snapshot at an offset, because it was deleted with the segment that starts there."""
        if offset in self._offsets:
            self._offsets.remove(offset)

    def flush(self) -> None:
        while self._unflushed:
            fsync_file(self._path(self._unflushed.pop()))

    def delete_outside(self, after_offset: int, up_to_offset: int) -> None:
        """Delete the snapshots at or before the first offset, and those after the second."""
        for offset in self.offsets():
            if not after_offset < offset <= up_to_offset:
                self._delete(offset)

    def delete_strays(self, base_offsets: Iterable[int]) -> None:
        """Delete the snapshots that are not at the start of a segment, except the one at the end of the log."""
        known = set(base_offsets)
        strays = [offset for offset in self.offsets() if offset not in known]
        if strays and strays[-1] >= max(known, default=0):
            strays.pop()
        for offset in strays:
            self._delete(offset)

    def load(
        self,
        segments: Sequence[Segment],
        log_start_offset: int,
        end_offset: int,
        *,
        now_ms: int,
        expiration_ms: int,
        before: Producers | None = None,
    ) -> Producers:
        """Return the producer state at the end of the log, or at the end of the segments passed if those are fewer.

        Snapshots outside the range from the start of the log to that offset are deleted.
        """
        self.delete_outside(log_start_offset, end_offset)
        offset, states = self._newest(log_start_offset)
        producers = Producers((state for state in states if not is_expired(state, now_ms, expiration_ms)), before)
        for number, segment in enumerate(segments):
            is_before = number + 1 < len(segments) and segments[number + 1].base_offset <= offset
            if is_before or segment.base_offset >= end_offset:
                continue
            if number >= len(segments) - 2 and segment.base_offset > offset:
                self.take(producers, segment.base_offset, log_start_offset)
            for batch in read_producer_batches(segment, max(segment.base_offset, offset)):
                completed = producers.update(batch)
                if completed is not None:
                    producers.complete(completed)
        self.take(producers, end_offset, log_start_offset)
        return producers

    def _newest(self, log_start_offset: int) -> tuple[int, list[ProducerState]]:
        for offset in reversed(self.offsets()):
            content = read_whole(self._path(offset))
            try:
                return offset, decode_producers(content or b"")
            except CorruptSnapshotError as error:
                self.faults += (f"{self._path(offset)} is damaged ({error}): producer state is rebuilt from the log",)
                self._delete(offset)
        return log_start_offset, []

    def _path(self, offset: int) -> Path:
        return segment_path(self.directory, offset, PRODUCER_SNAPSHOT_SUFFIX)

    def _delete(self, offset: int) -> None:
        self.forget(offset)
        if not self._read_only:
            delete_file(self._path(offset))
