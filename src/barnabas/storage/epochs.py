"""Which leader epoch wrote which offsets of a log: where each epoch begins, in order, in memory and in its checkpoint.

Its one rule: epochs and start offsets both grow. What is assigned later is right, and removes what contradicts it. Every
change is on disk before the call returns, so the checkpoint never misses an epoch of which there are records. Of a log that
has none it is only written, and durable with the first `flush`.
"""

from __future__ import annotations

import os
from bisect import bisect_right
from pathlib import Path
from typing import NamedTuple

from barnabas.storage.checkpoints import EpochEntry, read_epoch_checkpoint, write_epoch_checkpoint
from barnabas.storage.files import fsync_file

UNDEFINED_EPOCH = -1
UNDEFINED_OFFSET = -1


class EpochEndOffset(NamedTuple):
    """An epoch, and the offset at which the log goes on with a later one."""

    leader_epoch: int
    end_offset: int


class LeaderEpochs:
    """The epochs of one log; of a new one there is no checkpoint to read."""

    __slots__ = ("_entries", "_held", "_name", "_unflushed")

    def __init__(self, path: Path | str, *, is_new: bool = False) -> None:
        self._name = os.fspath(path)
        self._entries: list[EpochEntry] = []
        self._held: list[EpochEntry] | None = None  # what the file has, while it is not to be written
        self._unflushed = False
        if not is_new:
            for entry in read_epoch_checkpoint(Path(path)):
                self._assign(entry)

    @property
    def path(self) -> Path:
        return Path(self._name)

    def move(self, directory: Path) -> None:
        """The directory has another name."""
        self._name = os.fspath(directory / self.path.name)

    @property
    def entries(self) -> tuple[EpochEntry, ...]:
        return tuple(self._entries)

    @property
    def latest_epoch(self) -> int | None:
        """The epoch of the last record, or the one that was assigned to the next."""
        return self._entries[-1].epoch if self._entries else None

    def assign(self, epoch: int, start_offset: int, *, durable: bool = True) -> None:
        """Says that an epoch begins at an offset; what is known already changes nothing."""
        entries = self._entries
        if entries and entries[-1].epoch == epoch and start_offset >= entries[-1].start_offset:
            return
        self._assign(EpochEntry(epoch, start_offset))
        self._write(durable=durable)

    def end_offset_for(self, epoch: int, log_end_offset: int) -> EpochEndOffset:
        """The largest epoch up to this one, and where it ends; undefined for an epoch after the last."""
        if epoch == UNDEFINED_EPOCH:
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        if epoch == self.latest_epoch:
            return EpochEndOffset(epoch, log_end_offset)
        following = bisect_right(self._entries, epoch, key=lambda entry: entry.epoch)
        if following == len(self._entries):
            return EpochEndOffset(UNDEFINED_EPOCH, UNDEFINED_OFFSET)
        # Records of an epoch before the first are gone from the log; it ended, at the latest, where the first begins.
        floor = self._entries[following - 1].epoch if following else epoch
        return EpochEndOffset(floor, self._entries[following].start_offset)

    def epoch_for_offset(self, offset: int) -> int | None:
        """The epoch in which an offset was, or will be, written."""
        following = bisect_right(self._entries, offset, key=lambda entry: entry.start_offset)
        return self._entries[following - 1].epoch if following else None

    def truncate_from_end(self, end_offset: int) -> None:
        """Forgets the epochs that begin at this offset or later."""
        kept = [entry for entry in self._entries if entry.start_offset < end_offset]
        self._replace(kept)

    def truncate_from_start(self, start_offset: int) -> None:
        """Forgets the epochs that end before this offset; the one that has it begins there."""
        later = bisect_right(self._entries, start_offset, key=lambda entry: entry.start_offset)
        if later:
            first = EpochEntry(self._entries[later - 1].epoch, start_offset)
            self._replace([first, *self._entries[later:]])

    def clear(self) -> None:
        self._replace([])

    def hold(self) -> None:
        """Changes stay in memory until `save`."""
        self._held = list(self._entries)

    def save(self, *, durable: bool = True) -> None:
        held, self._held = self._held, None
        if self._entries != held:
            self._write(durable=durable)

    def flush(self) -> None:
        """Makes durable what was only written."""
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

    def _replace(self, entries: list[EpochEntry]) -> None:
        if entries != self._entries:
            self._entries = entries
            self._write()

    def _write(self, *, durable: bool = True) -> None:
        if self._held is None:
            write_epoch_checkpoint(self._name, self._entries, durable=durable)
            self._unflushed = not durable
