"""Moves replicas between the log dirs of this broker: a future log catches up with the current one and replaces it.

Its one rule: the current log is used until the swap, and the swap cannot be interleaved with a request. A crash at any
point leaves one of the two logs complete. Batches are copied in slices, in a thread. Once the future log has caught up,
the controller is told, and the swap waits for its response. `Replicas` finds unfinished moves after a restart.

A log is not compacted while it moves, so that the future log is as clean as the current one. Retention still applies:
the future log follows the log start offset.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterator
from enum import Enum, auto
from pathlib import Path
from typing import TYPE_CHECKING, ParamSpec, TypeVar

from barnabas.batches import BatchError
from barnabas.replicas.copying import append_copy
from barnabas.replicas.partition import Partition
from barnabas.storage import CorruptLogError, Log, OffsetOutOfRangeError, StorageError
from barnabas.wire import KafkaError

if TYPE_CHECKING:
    from barnabas.replicas.replicas import Replicas

_log = logging.getLogger(__name__)

SLICE_BYTES = 1024 * 1024
PAUSE_S = 0.001
WAIT_S = 0.05  # pause between checks while nothing is copied
MAX_PAUSE_S = 1.0  # the rate limit may change in the meantime

P = ParamSpec("P")
T = TypeVar("T")


def common_end(current: Log, future: Log) -> int:
    """Return the offset up to which two logs have the same records, judged by their leader epochs."""
    end = min(current.log_end_offset, future.log_end_offset)
    if not current.epochs.entries or not future.epochs.entries:
        return end
    known = {entry.epoch for entry in current.epochs.entries}
    for entry in reversed(future.epochs.entries):
        if entry.epoch in known:
            both = (each.end_offset_for_epoch(entry.epoch).end_offset for each in (current, future))
            return min(end, *both)
    return min(end, current.log_start_offset)


def align(current: Log, future: Log) -> None:
    """Remove from the future log whatever the current one does not have, or no longer has."""
    end = common_end(current, future)
    if end < future.log_end_offset:
        future.truncate_to(end)
    if future.log_end_offset < current.log_start_offset:
        future.truncate_fully_and_start_at(current.log_start_offset)
    follow_start(current, future)


def follow_start(current: Log, future: Log) -> None:
    """Advance the log start offset of the future log to that of the current one."""
    future.advance_log_start_offset(min(current.log_start_offset, future.log_end_offset))
    future.delete_old_segments()
    future.delete_files(future.config.file_delete_delay_ms)


def append_slice(current: Log, future: Log, data: bytes, end: int) -> int:
    """Append data read from the current log when its end offset was `end`. Return the number of bytes appended."""
    if not data:
        if future.log_end_offset < end:
            future.skip_to(end)  # compaction removed the last records
        return 0
    info = append_copy(future, data)
    if info is None:
        return 0
    if info.rolled is not None:
        future.flush(info.rolled)
    follow_start(current, future)
    return info.size_in_bytes


def take_over(current: Log, future: Log) -> None:
    """Copy leader epochs and producer state to the future log, which has the same batches."""
    if future.recovery_point < current.recovery_point:
        future.flush()
    future.epochs.hold()
    future.epochs.clear()
    for entry in current.epochs.entries:
        future.epochs.assign(entry.epoch, entry.start_offset)
    future.epochs.save()
    # This includes the last five batches of each producer, and ongoing transaction verifications.
    future.producers = current.producers


class _State(Enum):
    COPYING = auto()
    FLUSHED = auto()
    ASKED = auto()
    ACCEPTED = auto()


class Move:
    """A replica that is moving to another log dir. After a restart, its future log is opened later by `Moves.run`."""

    def __init__(self, partition: Partition, log_dir: str, directory: Path, log: Log | None = None) -> None:
        self.partition = partition
        self.log_dir = log_dir
        self.directory = directory
        self.log = log
        self.is_busy = False
        self.is_over = False
        self.is_kept = False
        self.state = _State.COPYING
        self.truncations = -1
        self.is_near = False

    def accepted(self) -> None:
        self.state = _State.ACCEPTED


class Moves:
    """All moves of this broker, driven by `run`."""

    def __init__(self, replicas: Replicas, max_bytes_per_second: Callable[[], int]) -> None:
        self._replicas = replicas
        self._max_bytes_per_second = max_bytes_per_second
        self._moves: dict[Partition, Move] = {}
        self._wake: Callable[[], None] = lambda: None

    def get(self, partition: Partition) -> Move | None:
        return self._moves.get(partition)

    def __contains__(self, partition: Partition) -> bool:
        return partition in self._moves

    def __iter__(self) -> Iterator[Move]:
        return iter(tuple(self._moves.values()))

    # --- requests

    def begin(self, partition: Partition, log_dir: str, directory: Path) -> None:
        """Create a future log and start to fill it. Raises StorageError if it cannot be created."""
        future = self._replicas.open_future(partition, log_dir, directory)
        _log.info("moving %s from %s to %s", partition, partition.log_dir, log_dir)
        self._add(Move(partition, log_dir, directory, future))

    def resume(self, partition: Partition, log_dir: str, directory: Path) -> None:
        """Continue with a future log that was found at startup."""
        _log.info("resuming the move of %s from %s to %s", partition, partition.log_dir, log_dir)
        self._add(Move(partition, log_dir, directory))

    def cancel(self, partition: Partition) -> None:
        """Cancel a move and delete its future log.

        The controller is corrected if it was told about the new directory.
        """
        move = self._moves.get(partition)
        if move is not None:
            _log.info("cancelled the move of %s to %s", partition, move.log_dir)
            self._end(move)

    def dir_failed(self, log_dir: str) -> None:
        """Stop every move from or to a failed directory. The files stay, and a restart may resume the move."""
        for move in self:
            if log_dir in (move.log_dir, move.partition.log_dir):
                _log.warning("stopped the move of %s to %s: a log dir failed", move.partition, move.log_dir)
                self._end(move, keep=True)

    def configure(self, partition: Partition) -> None:
        """Apply changed topic settings to the future log."""
        move = self._moves.get(partition)
        if move is not None and move.log is not None:
            move.log.configure(partition.log_config)

    def _add(self, move: Move) -> None:
        self._moves[move.partition] = move
        self._wake()

    def _end(self, move: Move, *, keep: bool = False) -> None:
        del self._moves[move.partition]
        move.is_over = True
        move.is_kept = keep
        if move.state in (_State.ASKED, _State.ACCEPTED):
            self._replicas.assign(move.partition, move.partition.log_dir, lambda: None)
        if not move.is_busy:
            self._let_go(move)

    def _let_go(self, move: Move) -> None:
        if move.log is not None:
            move.log.abandon()
        if not move.is_kept:
            self._replicas.discard_future(move.partition, move.log_dir, move.directory)

    # --- execution

    async def run(self) -> None:
        """Run all moves until cancelled, one slice of each in turn, at the configured rate."""
        wanted = asyncio.Event()
        self._wake = wanted.set
        while True:
            if not self._moves:
                wanted.clear()
                await wanted.wait()
            owed_bytes: float = await self.advance()
            if not owed_bytes:
                await asyncio.sleep(WAIT_S)
            while owed_bytes > 0:
                rate = max(1, self._max_bytes_per_second())
                pause_s = max(PAUSE_S, min(owed_bytes / rate, MAX_PAUSE_S))
                await asyncio.sleep(pause_s)
                owed_bytes -= rate * pause_s

    async def advance(self) -> int:
        """Copy one slice of each move, and return the number of bytes copied."""
        copied = 0
        for move in self:
            if move.is_over or move.partition.is_offline:
                continue
            try:
                copied += await self._advance(move)
            except Exception:
                _log.exception("could not move %s to %s", move.partition, move.log_dir)
                if not move.is_over:
                    self._end(move)
        return copied

    async def _advance(self, move: Move) -> int:
        try:
            current = move.partition.log
        except KafkaError:
            return 0  # its log dir has just failed
        future = await self._opened(move)
        if future is None:
            return 0
        copied = await self._copy(move, current, future)
        if move.is_over or not move.is_near or current is not move.partition.opened_log:
            return copied
        # The remainder was appended while the slice was copied.
        if move.state is _State.COPYING:
            await self._on_future(move, future.flush)
            move.state = _State.FLUSHED
        elif move.state is _State.FLUSHED and self._catch_up(move, current, future):
            move.state = _State.ASKED
            self._replicas.assign(move.partition, move.log_dir, move.accepted)
        elif move.state is _State.ACCEPTED:
            self._finish(move, current, future)
        return copied

    async def _opened(self, move: Move) -> Log | None:
        if move.log is None:
            opened = await self._on_future(
                move, self._replicas.open_future, move.partition, move.log_dir, move.directory
            )
            move.log = opened
            if move.is_over and opened is not None:
                opened.abandon()
        return move.log if not move.is_over else None

    async def _copy(self, move: Move, current: Log, future: Log) -> int:
        """Copy one slice, reading and appending in a thread."""
        if (
            move.truncations != current.truncations
            or not current.log_start_offset <= future.log_end_offset <= current.log_end_offset
        ):
            move.truncations = current.truncations
            await self._on_future(move, align, current, future)
        end = current.log_end_offset
        move.is_near = future.log_end_offset == end
        if move.is_over or move.is_near:
            return 0
        data = await self._read(move, current, future.log_end_offset)
        if data is None or move.is_over:
            return 0
        try:
            copied = await self._on_future(move, append_slice, current, future, data, end) or 0
        except BatchError as error:
            if move.truncations == current.truncations:
                _log.error("stopped moving %s, which stays in %s: %s", move.partition, move.partition.log_dir, error)
                self._end(move)
            return 0  # the data was read while the log was truncated
        move.is_near = future.log_end_offset >= end
        return copied

    async def _read(self, move: Move, current: Log, offset: int) -> bytes | None:
        try:
            return await _finished(asyncio.to_thread(current.read, offset, SLICE_BYTES))
        except OffsetOutOfRangeError:
            return None  # it was deleted or truncated meanwhile
        except StorageError as error:
            self._read_failed(move, error)
            return None

    def _read_failed(self, move: Move, error: StorageError) -> None:
        if move.is_over:
            return
        move.partition.read_failed(error)
        # After a segment was deleted, the copy goes on at the new start of the log.
        if isinstance(error, CorruptLogError):
            _log.error("stopped moving %s, which stays in %s: %s", move.partition, move.partition.log_dir, error)
            self._end(move)

    async def _on_future(self, move: Move, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Work on the future log in a thread. Returns None if a disk error ended the move."""
        move.is_busy = True
        try:
            return await _finished(asyncio.to_thread(do, *args, **kwargs))
        except StorageError as error:
            if not move.is_over:
                self._replicas.fail_dir(move.log_dir, error)
            return None
        finally:
            move.is_busy = False
            if move.is_over:
                self._let_go(move)

    def _catch_up(self, move: Move, current: Log, future: Log) -> bool:
        """Copy the last slice on the event loop. Return whether the future log is complete."""
        is_aligned = current.log_start_offset <= future.log_end_offset <= current.log_end_offset
        if move.truncations != current.truncations or not is_aligned:
            return False
        try:
            data = current.read(future.log_end_offset, SLICE_BYTES)
        except StorageError as error:
            self._read_failed(move, error)
            return False
        try:
            append_slice(current, future, data, current.log_end_offset)
        except StorageError as error:
            self._replicas.fail_dir(move.log_dir, error)
            return False
        return future.log_end_offset == current.log_end_offset

    def _finish(self, move: Move, current: Log, future: Log) -> None:
        """Copy the last slice and swap the logs, with no request in between."""
        if not self._catch_up(move, current, future):
            return
        partition = move.partition
        try:
            take_over(current, future)
            self._replicas.carry_cleaner_offset(partition, move.log_dir)
            if move.is_over:
                return  # a log dir has just failed
            future.rename(Path(move.log_dir) / str(partition))
        except StorageError as error:
            self._replicas.fail_dir(move.log_dir, error)
            return
        del self._moves[partition]
        move.is_over = True
        self._replicas.moved(partition, future, move.log_dir)


async def _finished(work: asyncio.Future[T] | object) -> T:
    """Wait for work in a thread even when cancelled, because a thread cannot be cancelled."""
    task: asyncio.Future[T] = asyncio.ensure_future(work)  # type: ignore[arg-type]
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise
