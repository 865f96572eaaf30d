"""The leader epochs of a log: the start offset of each epoch, in order, in memory and in its checkpoint file.

Its one rule: epochs and start offsets both increase. A later assignment wins and removes entries that contradict it.
Every change is on disk before the call returns, so the checkpoint never lacks an epoch that has records. For a log
without records it is written but only becomes durable with the first `flush`.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from threading import Lock
from typing import NamedTuple

from barnabas.storage.checkpoints import EpochEntry, read_epoch_checkpoint, write_epoch_checkpoint
from barnabas.storage.files import fsync_file

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """An epoch, and its end offset (exclusive)."""

    leader_epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log. A new log has no checkpoint to read."""

    __slots__ = ("_entries", "_held", "_lock", "_name", "_unflushed", "_unsaved")

    def __init__(self, path: Path | str, *, is_new: bool = False) -> None:
        self._name = os.fspath(path)
        self._entries: list[EpochEntry] = []
        self._held: list[EpochEntry] | None = None  # the content of the file, while changes are held in memory
        self._unflushed = False
        self._unsaved = False
        self._lock = Lock()  # one thread at a time writes the file
        if not is_new:
            for entry in read_epoch_checkpoint(Path(path)):
                self._assign(entry)

    @property
    def path(self) -> Path:
        return Path(self._name)

    def move(self, directory: Path) -> None:
        """Follow a rename of the directory."""
        self._name = os.fspath(directory / self.path.name)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last record, or the one assigned to the next record."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int, *, durable: bool = True, later: bool = False) -> None:
        """Record that an epoch starts at an offset. Do nothing if that is already known.

        With `later`, the file is written by the next `write_changes` or `flush`.
        """
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return
        self._assign(EpochEntry(epoch, start_offset))
        if later:
            self._unsaved = True
        else:
            self._write(durable=durable)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """Return the largest epoch up to this one and its end offset.

        Both are undefined for an epoch after the last.
        """
        if epoch == UNDEFINED_EPOCH:
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        following = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if following == len(self._entries):
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        # Records of epochs before the first entry are no longer in the log. Such an epoch ended where the first one
        # starts.
        floor = self._entries[following - 1].epoch if following else epoch
        return EpochEndOffset(floor, self._entries[following].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """Return the epoch in which an offset was, or will be, written, or None."""
        following = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[following - 1].epoch if following else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Remove the epochs that start at this offset or later."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        self._replace(kept)

    def truncate_from_start(self, start_offset: int, *, later: bool = False) -> None:
        """Remove the epochs that end before this offset. The epoch that contains it now starts there.

        With `later`, the file is written by the next `write_changes` or `flush`. Nothing is lost without it: a log that
        is opened does the same.
        """
        following = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if following:
            first = EpochEntry(self._entries[following - 1].epoch, start_offset)
            self._replace([first, *self._entries[following:]], later=later)

    def clear(self) -> None:
        self._replace([])

    def hold(self) -> None:
        """Keep changes in memory until `save`."""
        self._held = list(self._entries)

    def save(self, *, durable: bool = True) -> None:
        held, self._held = self._held, None
        if self._entries != held:
            self._write(durable=durable)

    def write_changes(self, *, durable: bool = True) -> None:
        """Write the epochs that were assigned for later."""
        if self._unsaved:
            self._write(durable=durable)

    def flush(self) -> None:
        """Make all changes durable."""
        self.write_changes()
        if self._unflushed:
            self._unflushed = False
            fsync_file(self.path)

    def _assign(self, entry: EpochEntry) -> None:
        if entry.epoch < 0 or entry.start_offset < 0:
            raise ValueError(f"epoch {entry.epoch} cannot begin at offset {entry.start_offset}")
        entries = self._entries
        while entries and (entries[-1].epoch >= entry.epoch or entries[-1].start_offset >= entry.start_offset):
            entries.pop()
        entries.append(entry)

    def _replace(self, entries: list[EpochEntry], *, later: bool = False) -> None:
        if entries == self._entries:
            return
        self._entries = entries
        if later:
            self._unsaved = True
        else:
            self._write()

    def _write(self, *, durable: bool = True) -> None:
        if self._held is None:
            with self._lock:
                self._unsaved = False
                write_epoch_checkpoint(self._name, list(self._entries), durable=durable)
                self._unflushed = not durable
