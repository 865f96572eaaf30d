"""The log as Raft needs it: the core's view of it, the interface of the log that stores the bytes, and one in memory.

Its one rule: `LogView` is the log as decided, `RaftLog` the log as written. The core changes the first, and the driver
makes the second follow. A batch is never split: the log ends, is read and is truncated only at batch boundaries.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from typing import NamedTuple, Protocol

from barnabas.batches import decode_header


class OffsetAndEpoch(NamedTuple):
    """The end offset of a log or snapshot, and the epoch of its last record."""

    offset: int
    epoch: int

    def is_behind(self, other: OffsetAndEpoch) -> bool:
        """Whether a log that ends here is less up to date than one that ends at `other`.

        The epoch is compared first.
        """
        return (self.epoch, self.offset) < (other.epoch, other.offset)


LOG_START = OffsetAndEpoch(0, 0)
BOOTSTRAP_SNAPSHOT_ID = OffsetAndEpoch(0, 0)
"""The checkpoint that formatting creates. It is never sent to others, because the first leader logs its content."""


class EpochStart(NamedTuple):
    epoch: int
    start_offset: int


class Validity(Enum):
    """The relation of a replica's log end to the leader's log."""

    VALID = "valid"
    DIVERGING = "diverging"
    SNAPSHOT = "snapshot"


class LogView:
    """The start and end of the log, how much of it is written and flushed, and its epochs. It holds no bytes."""

    __slots__ = ("_epochs", "end_offset", "flushed_offset", "snapshot_id", "start", "written_offset")

    def __init__(
        self,
        start: OffsetAndEpoch = LOG_START,
        epochs: Sequence[EpochStart] = (),
        end_offset: int | None = None,
        snapshot_id: OffsetAndEpoch | None = None,
    ) -> None:
        self.start = start
        self._epochs = list(epochs)
        self.end_offset = start.offset if end_offset is None else end_offset
        self.written_offset = self.flushed_offset = self.end_offset
        self.snapshot_id = snapshot_id

    @property
    def last_epoch(self) -> int:
        return self._epochs[-1].epoch if self._epochs else self.start.epoch

    @property
    def end(self) -> OffsetAndEpoch:
        return OffsetAndEpoch(self.end_offset, self.last_epoch)

    def end_of_epoch(self, epoch: int) -> OffsetAndEpoch:
        """Return the largest epoch of the log up to `epoch`, and its end offset."""
        index = bisect_right(self._epochs, epoch, key=lambda each: each.epoch)
        end_offset = self._epochs[index].start_offset if index < len(self._epochs) else self.end_offset
        return OffsetAndEpoch(end_offset, self._epochs[index - 1].epoch if index else self.start.epoch)

    def validate(self, offset: int, epoch: int) -> tuple[Validity, OffsetAndEpoch]:
        """Check whether a log that ends there is a prefix of this one.

        If not, also return where they diverge, or the id of the snapshot to fetch.
        """
        at_start = offset == self.start.offset
        if at_start and self.start == (offset, epoch):
            return Validity.VALID, self.start
        if self.snapshot_id is not None and (
            offset < self.start.offset or (at_start and epoch != self.start.epoch) or epoch < self.start.epoch
        ):
            return Validity.SNAPSHOT, self.snapshot_id
        end = self.end_of_epoch(epoch)
        if end.epoch != epoch or end.offset < offset:
            return Validity.DIVERGING, end
        return Validity.VALID, OffsetAndEpoch(offset, epoch)

    def truncation_offset(self, diverging: OffsetAndEpoch) -> int:
        """Return the offset to truncate this log to, if the leader's `diverging.epoch` ends at `diverging.offset`."""
        end = self.end_of_epoch(diverging.epoch)
        return min(end.offset, diverging.offset) if end.epoch == diverging.epoch else end.offset

    def append(self, epoch: int, end_offset: int) -> None:
        """Append records of one epoch up to `end_offset`."""
        if epoch > self.last_epoch or not self._epochs:
            self._epochs.append(EpochStart(epoch, self.end_offset))
        self.end_offset = end_offset

    def truncate(self, end_offset: int) -> None:
        while self._epochs and self._epochs[-1].start_offset >= end_offset:
            self._epochs.pop()
        self.end_offset = end_offset
        self.written_offset = min(self.written_offset, end_offset)
        self.flushed_offset = min(self.flushed_offset, end_offset)

    def replace_by(self, snapshot_id: OffsetAndEpoch) -> None:
        """Drop the log and continue after this snapshot."""
        self._epochs.clear()
        self.start = self.snapshot_id = snapshot_id
        self.end_offset = self.written_offset = self.flushed_offset = snapshot_id.offset

    def trim(self, snapshot_id: OffsetAndEpoch) -> None:
        """Advance the start of the log to the end of this snapshot."""
        index = bisect_right(self._epochs, snapshot_id.offset, key=lambda each: each.start_offset) - 1
        if index >= 0:
            self._epochs[: index + 1] = [EpochStart(self._epochs[index].epoch, snapshot_id.offset)]
        self.start = snapshot_id


class SnapshotReader(Protocol):
    """A complete snapshot."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch: ...
    @property
    def size_in_bytes(self) -> int: ...
    def read(self, position: int, max_bytes: int) -> bytes: ...


class SnapshotWriter(Protocol):
    """A snapshot being written. It exists for readers once it is frozen; closing it before that deletes it."""

    @property
    def snapshot_id(self) -> OffsetAndEpoch: ...
    @property
    def size_in_bytes(self) -> int: ...
    def append(self, data: bytes) -> None: ...
    def freeze(self) -> None: ...
    def close(self) -> None: ...


class RaftLog(Protocol):
    """The log of one replicated partition, as the driver uses it.

    All calls come from one thread, one at a time, except that `flush` may run in another thread while the log is read.
    What was appended can be read at once; it survives a crash once `flush` has returned.
    """

    @property
    def start_offset(self) -> int: ...
    @property
    def end_offset(self) -> int: ...
    def epochs(self) -> Sequence[EpochStart]:
        """Return the start offset of each epoch in the log, in order. The first is the start of the log."""
        ...

    def append(self, batches: bytes) -> None:
        """Append whole batches with their offsets and epochs. The first one must start at the end of the log."""
        ...

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        """Return whole batches from `offset` up to `end_offset`: as many as fit, and at least one if there is one."""
        ...

    def truncate(self, end_offset: int) -> None: ...
    def flush(self) -> None: ...
    def snapshot_ids(self) -> Sequence[OffsetAndEpoch]:
        """Return the existing snapshots, oldest first."""
        ...

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotWriter:
        """Create a snapshot. An unfinished one with the same id is deleted."""
        ...

    def open_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotReader | None: ...
    def replace_by_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete all records. The log continues, empty, at the end of this snapshot."""
        ...

    def trim(self, snapshot_id: OffsetAndEpoch) -> None:
        """Delete records and snapshots before the end of this snapshot."""
        ...


class MemoryLog:
    """A RaftLog for tests and simulations. `crash` loses a part of what was not flushed."""

    def __init__(self) -> None:
        self._start = LOG_START
        self._batches: list[tuple[int, int, int, bytes]] = []  # base offset, end offset, epoch, bytes
        self._snapshots: dict[OffsetAndEpoch, bytes] = {}
        self._flushed_offset = 0

    @property
    def start_offset(self) -> int:
        return self._start.offset

    @property
    def end_offset(self) -> int:
        return self._batches[-1][1] if self._batches else self._start.offset

    @property
    def flushed_offset(self) -> int:
        return self._flushed_offset

    def epochs(self) -> list[EpochStart]:
        starts: list[EpochStart] = []
        for base_offset, _, epoch, _ in self._batches:
            if not starts or starts[-1].epoch != epoch:
                starts.append(EpochStart(epoch, base_offset))
        return starts

    def append(self, batches: bytes) -> None:
        position = 0
        while position < len(batches):
            header = decode_header(batches, position)
            if header.base_offset != self.end_offset:
                raise ValueError(
                    f"a batch at offset {header.base_offset} does not continue the log, which ends at {self.end_offset}"
                )
            data = bytes(batches[position : position + header.size_in_bytes])
            self._batches.append((header.base_offset, header.next_offset, header.partition_leader_epoch, data))
            position += header.size_in_bytes

    def batches(self) -> Iterator[tuple[int, int, int, bytes]]:
        """Yield base offset, end offset, epoch and bytes of each batch."""
        return iter(self._batches)

    def read(self, offset: int, max_bytes: int, end_offset: int | None = None) -> bytes:
        found: list[bytes] = []
        size = 0
        for index in range(bisect_right(self._batches, offset, key=lambda batch: batch[1]), len(self._batches)):
            _, batch_end, _, data = self._batches[index]
            if (found and size + len(data) > max_bytes) or (end_offset is not None and batch_end > end_offset):
                break
            found.append(data)
            size += len(data)
        return b"".join(found)

    def truncate(self, end_offset: int) -> None:
        del self._batches[bisect_left(self._batches, end_offset, key=lambda batch: batch[0]) :]
        self._flushed_offset = min(self._flushed_offset, self.end_offset)

    def flush(self) -> None:
        self._flushed_offset = self.end_offset

    def crash(self, choose: Callable[[int, int], int] = lambda least, most: least) -> None:
        """Lose a tail of what was not flushed. `choose` returns the offset up to which it survives."""
        survives = choose(self._flushed_offset, self.end_offset)
        self.truncate(next((base for base, end, _, _ in self._batches if end > survives), self.end_offset))
        self._flushed_offset = self.end_offset

    def snapshot_ids(self) -> list[OffsetAndEpoch]:
        return sorted(self._snapshots)

    def create_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotWriter:
        return _MemorySnapshotWriter(snapshot_id, self._snapshots)

    def open_snapshot(self, snapshot_id: OffsetAndEpoch) -> SnapshotReader | None:
        data = self._snapshots.get(snapshot_id)
        return None if data is None else _MemorySnapshot(snapshot_id, data)

    def replace_by_snapshot(self, snapshot_id: OffsetAndEpoch) -> None:
        self._batches.clear()
        self._flushed_offset = snapshot_id.offset
        self.trim(snapshot_id)

    def trim(self, snapshot_id: OffsetAndEpoch) -> None:
        del self._batches[: bisect_right(self._batches, snapshot_id.offset, key=lambda batch: batch[1])]
        self._start = snapshot_id
        for old in [each for each in self._snapshots if each.offset < snapshot_id.offset]:
            del self._snapshots[old]


class _MemorySnapshot:
    def __init__(self, snapshot_id: OffsetAndEpoch, data: bytes) -> None:
        self.snapshot_id = snapshot_id
        self.size_in_bytes = len(data)
        self._data = data

    def read(self, position: int, max_bytes: int) -> bytes:
        return self._data[position : position + max_bytes]


class _MemorySnapshotWriter:
    def __init__(self, snapshot_id: OffsetAndEpoch, snapshots: dict[OffsetAndEpoch, bytes]) -> None:
        self.snapshot_id = snapshot_id
        self._snapshots = snapshots
        self._data = bytearray()

    @property
    def size_in_bytes(self) -> int:
        return len(self._data)

    def append(self, data: bytes) -> None:
        self._data += data

    def freeze(self) -> None:
        self._snapshots[self.snapshot_id] = bytes(self._data)

    def close(self) -> None:
        self._data.clear()
