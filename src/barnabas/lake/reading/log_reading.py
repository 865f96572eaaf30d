"""Reading the pieces of a log while another process appends to it, rolls, compacts and deletes segments.

Its one rule: a piece is a range of offsets, and each offset is returned once or not at all. The planned bytes are read if the
file still exists, under its own name or that of a deleted segment. Otherwise the offsets are searched in the current segments.
Offsets removed after planning are reported (`Removed`). Memory is limited by a chunk of complete batches, or by one batch.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from barnabas.batches import HEADER_SIZE
from barnabas.batches.format import CONTROL_BIT, TRANSACTIONAL_BIT
from barnabas.lake.reading.batch_arrays import PLAIN_BYTES, Array, Bad, Batches, Records, batches_at, open_batches, walk
from barnabas.lake.reading.log_files import OffsetEntries, OpenSegment, SegmentPlace, list_segments, offset_entries
from barnabas.lake.reading.log_planning import Piece, PieceStart, Share, position_before
from barnabas.storage import AbortedTxn, read_topic_id

READ_BYTES = 1 << 20
"""Bytes read from a file at a time; more only if one batch is larger."""

_RETRIES = 5
_PAUSE_S = 0.05


class Removed(NamedTuple):
    """Offsets, from `start` to before `end`, of which some or all were removed after planning."""

    start: int
    end: int
    reason: str


class Read(NamedTuple):
    """What was read, and the file in which it was found."""

    segment: str
    item: Records | Bad | Removed


def read_share(share: Share, *, isolation: str | None = None, plain: bool | None = None) -> Iterator[Read]:
    """Yield the records of a share, in order, with the given isolation, and faults.

    Without isolation, every record of the files is returned; with one, there are no control records and no records of the
    share's aborted transactions. `plain` decides whether to read without numba; by default the size of the share decides.
    """
    if plain is None:
        plain = "barnabas.lake.reading.kernels" not in sys.modules and share.size <= PLAIN_BYTES
    drop = _Drop(isolation is not None, share.aborted)
    for piece in share.pieces:
        yield from _PieceReading(share.place, piece, drop, plain).read()


class _Drop(NamedTuple):
    """The rule for batches that are skipped without being decompressed."""

    control: bool
    aborted: tuple[AbortedTxn, ...]

    def which(self, batches: Batches) -> Array:
        attributes = batches.field("attributes")
        dropped: Array = (attributes & CONTROL_BIT != 0) & self.control
        if self.aborted:
            base_offset, producer_id = batches.field("base_offset"), batches.field("producer_id")
            transactional = attributes & TRANSACTIONAL_BIT != 0
            for aborted in self.aborted:
                inside = (aborted.first_offset <= base_offset) & (base_offset <= aborted.last_offset)
                dropped |= transactional & inside & (producer_id == aborted.producer_id)
        return dropped


class _ChangedError(Exception):
    """The file is not, or no longer, what was planned."""


class _PieceReading:
    """The progress in one piece: everything before `next_offset` was returned."""

    def __init__(self, place: PieceStart, piece: Piece, drop: _Drop, plain: bool) -> None:
        self._place = place
        self._directory = Path(place.directory)
        self._piece = piece
        self._drop = drop
        self._plain = plain
        self._found = 0
        self._is_damaged = False
        self._last_offset = -1  # of the last batch in the file that was in order
        self.next_offset = piece.start_offset
        self.end_offset = piece.end_offset

    def read(self) -> Iterator[Read]:
        piece = self._piece
        file = open_planned(self._directory, piece)
        if file is not None:
            with file:
                gone = self._why_gone()  # before it is opened: a new topic of the same name may reuse the inode
                if gone is not None:
                    yield self._removed(self.next_offset, self.end_offset, gone)
                    return
                try:
                    yield from self._read_file(file, piece.segment, piece.position, piece.end_position)
                    return
                except _ChangedError:
                    pass
        yield from self._read_anew()

    # The log as it is now

    def _read_anew(self) -> Iterator[Read]:
        """Yield the offsets that were not read yet, from the segments that have them now."""
        for attempt in range(_RETRIES):
            if attempt:
                time.sleep(_PAUSE_S)  # a compaction is renaming
            try:
                gone = self._why_gone()
                if gone is not None:
                    yield self._removed(self.next_offset, self.end_offset, gone)
                    return
                segments = list_segments(self._directory)
            except FileNotFoundError:
                continue
            if not segments or (segments[0].base_offset > self.next_offset and attempt + 1 < _RETRIES):
                continue
            first = min(segments[0].base_offset, self.end_offset)
            if first > self.next_offset:
                yield self._removed(self.next_offset, first, "they were deleted")
                self.next_offset = first
            begun_at, self._found = self.next_offset, 0
            try:
                yield from self._read_segments(segments)
            except (FileNotFoundError, _ChangedError):
                continue
            break
        else:
            yield self._removed(self.next_offset, self.end_offset, "the files do not exist any more")
            return
        missing = self.end_offset - begun_at - self._found
        if missing > 0 and not self._is_damaged:
            yield self._removed(
                begun_at, self.end_offset, f"read after a compaction, which removed up to {missing} of them"
            )

    def _why_gone(self) -> str | None:
        if not self._directory.is_dir():
            return "the directory does not exist any more"
        topic_id = read_topic_id(self._directory) if self._place.topic_id is not None else None
        if topic_id is not None and str(topic_id) != self._place.topic_id:
            return f"the directory now belongs to another topic, {topic_id}"
        return None

    def _read_segments(self, segments: tuple[SegmentPlace, ...]) -> Iterator[Read]:
        for number, segment in enumerate(segments):
            following = segments[number + 1].base_offset if number + 1 < len(segments) else None
            if following is not None and following <= self.next_offset:
                continue
            if segment.base_offset >= self.end_offset:
                return
            entries = offset_entries(self._directory, segment)
            with OpenSegment.open(self._directory / segment.name) as file:
                position = position_before(file, entries, self.next_offset)
                yield from self._read_file(file, segment, position, file.size(), grows=True)

    # One file

    def _read_file(
        self,
        file: OpenSegment,
        segment: SegmentPlace,
        position: int,
        end_position: int,
        *,
        grows: bool = False,
    ) -> Iterator[Read]:
        """Yield the wanted batches of a file. After damage, reading continues at the next position in the index."""
        name = str(self._directory / segment.name.removesuffix(".swap"))
        self._last_offset = segment.base_offset - 1
        # Offsets are not covered by the checksum: the planned bytes are read to the end, whatever the offsets.
        while position < end_position and not (grows and self.next_offset >= self.end_offset):
            data = memoryview(file.read(min(READ_BYTES, end_position - position), position))
            walked = walk(data)
            if not walked.positions and walked.fault is None:
                data = self._read_large(file, data, position, end_position)
                walked = walk(data)
            if walked.positions:
                yield from self._give(name, data, position, batches_at(data, walked.positions))
                position += walked.end
            if walked.fault is None and walked.positions:
                continue
            if position >= end_position:
                return
            if not grows or file.size() < end_position:
                # Positions in a file that was replaced during planning, or truncated and rewritten, mean nothing: such bytes
                # are searched anew before they count as damage.
                raise _ChangedError
            following = self._next_batch(file, segment, position, end_position)
            if walked.fault is None and following is None and grows:
                return  # the tail is torn
            reason = walked.fault or "the batch is longer than the bytes that follow"
            skipped = f"skipped up to position {following}" if following is not None else "nothing after it is read"
            self._is_damaged = True
            yield Read(name, Bad(position, None, f"{reason}; {skipped}"))
            if following is None:
                return
            position = following

    def _read_large(self, file: OpenSegment, data: memoryview, position: int, end_position: int) -> memoryview:
        """Return the bytes of a batch that is larger than `READ_BYTES`, if it can be complete."""
        if len(data) < HEADER_SIZE:
            return data
        size = int.from_bytes(data[8:12], "big", signed=True) + 12
        return memoryview(file.read(size, position)) if len(data) < size <= end_position - position else data

    def _next_batch(self, file: OpenSegment, segment: SegmentPlace, position: int, end_position: int) -> int | None:
        """Return, after damage, the next position of the index that matches the log."""
        entries: OffsetEntries = offset_entries(self._directory, segment)
        for slot in range(int(np.searchsorted(entries.position, position, side="right")), len(entries.position)):
            at = int(entries.position[slot])
            if at >= end_position:
                return None
            header = file.header(at)
            if header is not None and header.last_offset == entries.offset[slot]:
                return at
        return None

    def _give(self, name: str, data: memoryview, position: int, batches: Batches) -> Iterator[Read]:
        base_offset = batches.field("base_offset")
        last_offset = base_offset + batches.field("last_offset_delta")
        in_order = self._in_order(base_offset, last_offset)
        for number in np.flatnonzero(~in_order).tolist():
            self._is_damaged = True
            at, header = batches[number]
            yield Read(
                name, Bad(position + at, header.base_offset, "its offsets do not follow those of the previous batch")
            )
        wanted = in_order & (last_offset >= self.next_offset) & (base_offset < self.end_offset)
        self._found += int(batches.field("records_count")[wanted].sum())
        wanted &= ~self._drop.which(batches)
        if wanted.any():
            chosen = batches if wanted.all() else batches.choose(wanted)
            for item in open_batches(data, position, chosen, plain=self._plain):
                if isinstance(item, Bad):
                    yield Read(name, item)
                    continue
                inside = (item.offset >= self.next_offset) & (item.offset < self.end_offset)
                kept = item if inside.all() else item.choose(inside)
                if len(kept):
                    yield Read(name, kept)
        self.next_offset = max(self.next_offset, self._last_offset + 1)

    def _in_order(self, base_offset: Array, last_offset: Array) -> Array:
        """Return which batches are in order. Of two that are not, the first is wrong if the second follows its predecessor."""
        before = np.concatenate(([self._last_offset], last_offset[:-1]))
        good: Array = (base_offset > before) & (last_offset >= base_offset)
        if not good.all():
            bases, lasts = base_offset.tolist(), last_offset.tolist()
            reached = self._last_offset
            for number, (base, last) in enumerate(zip(bases, lasts, strict=True)):
                following = bases[number + 1] if number + 1 < len(bases) else last + 1
                good[number] = reached < base <= last and not reached < following <= last
                reached = last if good[number] else reached
            self._last_offset = reached
        else:
            self._last_offset = int(last_offset[-1])
        return good

    def _removed(self, start: int, end: int, reason: str) -> Read:
        return Read(str(self._directory / self._piece.segment.name), Removed(start, end, reason))


def open_planned(directory: Path, piece: Piece) -> OpenSegment | None:
    """Return the planned file, under its own name or another, if it still has the planned bytes."""
    planned = piece.segment
    prefix = f"{planned.base_offset:020d}.log"
    for path in (directory / prefix, directory / planned.name, *_names_of(directory, prefix, planned.inode)):
        try:
            file = OpenSegment.open(path)
        except FileNotFoundError:
            continue
        size = file.size()
        # Another file may have the inode by now, but hardly with the same size.
        if file.inode == planned.inode and (size == planned.size or (piece.is_active and size >= piece.end_position)):
            return file
        file.close()
    return None


def _names_of(directory: Path, prefix: str, inode: int) -> Iterator[Path]:
    """Yield the names of a deleted segment whose file still exists."""
    try:
        with os.scandir(directory) as entries:
            names = [entry.name for entry in entries if entry.name.startswith(prefix) and entry.inode() == inode]
    except (FileNotFoundError, NotADirectoryError):
        return
    yield from (directory / name for name in names)
