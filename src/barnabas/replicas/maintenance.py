"""Periodic work on logs: retention, compaction, flushing, checkpoints, and the deletion of files.

Its one rule: work runs in slices of a few milliseconds on the event loop, or in a thread when a system call waits for
the disk, so that requests are served in between. Only checkpoints, flushing, the deletion of files and the expiration
of producers start before `log.initial.task.delay.ms` has passed.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path

from barnabas.config.server_config import ServerConfig
from barnabas.replicas.cleaner import Cleaner
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Replicas
from barnabas.slices import Slices, in_slices
from barnabas.storage import StorageError
from barnabas.storage.files import delete_directory
from barnabas.storage.segment import Segment
from barnabas.wire import KafkaError

_log = logging.getLogger(__name__)

SEGMENTS_AT_ONCE = 16  # removed by retention between two pauses
CREATION_PAUSE_S = 0.0005  # leaves the disk and the interpreter to requests
FLUSH_CHECK_S = 1.0
DELETION_CHECK_S = 5.0
MAX_INTERVAL_S = 86400.0


class Maintenance:
    """The periodic tasks of a broker. `config` returns the current configuration."""

    def __init__(
        self,
        replicas: Replicas,
        config: Callable[[], ServerConfig],
        now_ms: Callable[[], int],
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._sleep = sleep
        self._replicas = replicas
        self._config = config
        self._now_ms = now_ms
        self.cleaner = Cleaner(replicas, config, now_ms)
        self._flushed_ms: dict[str, int] = {}
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        delay_s = self._seconds("log.initial.task.delay.ms")
        every = (
            (
                self._replicas.write_checkpoints,
                0.0,
                lambda: self._seconds("replica.high.watermark.checkpoint.interval.ms"),
            ),
            (self._flush, 0.0, lambda: FLUSH_CHECK_S),
            (self._delete_by_retention, delay_s, lambda: self._seconds("log.retention.check.interval.ms")),
            (self.cleaner.clean_all, delay_s, lambda: self._seconds("log.cleaner.backoff.ms")),
            (self._delete_files, 0.0, lambda: DELETION_CHECK_S),
            (self._shrink_isrs, 0.0, lambda: self._seconds("replica.lag.time.max.ms") / 2),
            (self._expire_producers, 0.0, lambda: self._seconds("producer.id.expiration.check.interval.ms")),
        )
        for do, first_s, interval_s in every:
            self._tasks.append(asyncio.create_task(self._repeat(do, first_s, interval_s)))
        self._tasks.append(asyncio.create_task(self._create()))
        self._tasks.append(asyncio.create_task(self._replicas.open_shorter()))
        self._tasks.append(asyncio.create_task(self._replicas.moves.run()))

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _seconds(self, name: str) -> float:
        return min(self._config().get_int(name) / 1000, MAX_INTERVAL_S)

    async def _repeat(self, do: Callable[[], Awaitable[None]], first_s: float, interval_s: Callable[[], float]) -> None:
        await self._sleep(first_s or interval_s())
        while True:
            try:
                await do()
            except Exception:
                _log.exception("%s failed and will be retried", getattr(do, "__name__", do))
            await self._sleep(interval_s())

    def _each_log(
        self, do: Callable[[Partition], Slices[None]], opens: Callable[[Partition], bool] = lambda partition: False
    ) -> Slices[None]:
        """Do something with every online partition, and open its log first where `opens` says so."""
        for partition in list(self._replicas):
            yield partition.opening() if opens(partition) else None
            if partition.is_offline:
                continue
            try:
                yield from do(partition)
            except StorageError as error:
                self._replicas.fail_dir(partition.log_dir, error)
            except KafkaError:
                continue  # its log dir has just failed

    async def _create(self) -> None:
        """Create the directories of new partitions, one at a time, so that a request waits only for its own."""
        wanted = asyncio.Event()
        self._replicas.wants_creation = wanted.set
        while True:
            if not await self._replicas.create_next():
                wanted.clear()
                await wanted.wait()
            await asyncio.sleep(CREATION_PAUSE_S)

    async def _delete_by_retention(self) -> None:
        now_ms = self._now_ms()

        def delete(partition: Partition) -> Slices[None]:
            is_more = partition.settings.log.delete
            count = 0
            while is_more and not partition.is_offline:
                most = SEGMENTS_AT_ONCE
                gone = partition.log.delete_by_retention(now_ms, partition.high_watermark, most).segments
                count += gone
                is_more = gone == most
                yield
            if count:
                what = "%s: deleted %d segments by retention; the log start offset is now %d"
                _log.info(what, partition, count, partition.log_start_offset)

        await in_slices(self._each_log(delete, opens=lambda partition: partition.settings.log.delete))

    async def _delete_files(self) -> None:
        def delete(partition: Partition) -> Slices[None]:
            opened = partition.opened_log
            if opened is not None:
                due = opened.take_deleted(opened.config.file_delete_delay_ms)
                if due:
                    deletion = Deletion(due)
                    yield asyncio.to_thread(deletion.run)
                    deletion.check()

        await in_slices(self._each_log(delete))
        delay_ms = self._config().get_int("log.segment.delete.delay.ms")
        now_ms = self._now_ms()
        for deleted in list(self._replicas.deleted):
            if deleted[0] + delay_ms <= now_ms:
                self._replicas.deleted.remove(deleted)
                await asyncio.to_thread(_delete_directory, deleted[1])

    async def _flush(self) -> None:
        await in_slices(self._flush_due())

    def _flush_due(self) -> Slices[None]:
        for partition in list(self._replicas):
            yield
            opened = partition.opened_log
            if opened is None or opened.config.flush_ms >= MAX_INTERVAL_S * 1000 or partition.is_offline:
                continue
            name, now_ms = str(partition), self._now_ms()
            if opened.log_end_offset == opened.recovery_point:
                self._flushed_ms.pop(name, None)
            elif now_ms - self._flushed_ms.setdefault(name, now_ms) >= opened.config.flush_ms:
                del self._flushed_ms[name]
                yield self._replicas.flush(partition)

    async def _shrink_isrs(self) -> None:
        def shrink(partition: Partition) -> Slices[None]:
            if partition.leading is not None:
                partition.shrink_isr()
            yield

        await in_slices(self._each_log(shrink))

    async def _expire_producers(self) -> None:
        now_ms = self._now_ms()

        def expire(partition: Partition) -> Slices[None]:
            if partition.opened_log is not None:
                partition.opened_log.remove_expired_producers(now_ms)
            yield

        await in_slices(self._each_log(expire))


class Deletion:
    """The deletion of the files of segments, in a thread. `check` raises the error there was."""

    def __init__(self, segments: Sequence[Segment]) -> None:
        self._segments = segments
        self._error: StorageError | None = None

    def run(self) -> None:
        try:
            for segment in self._segments:
                segment.delete()
        except StorageError as error:
            self._error = error

    def check(self) -> None:
        if self._error is not None:
            raise self._error


def _delete_directory(path: Path) -> None:
    """Delete the directory of a deleted log. What cannot be deleted is left for the next start."""
    try:
        delete_directory(path)
    except StorageError as error:
        _log.warning("%s was not deleted: %s", path, error)
