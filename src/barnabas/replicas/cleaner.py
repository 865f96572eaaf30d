"""Periodic compaction: the dirtiest log first, one at a time, in slices between requests.

Its one rule: the cleaner checkpoint of a log is written before the next log is started, so that a restart cleans
nothing twice. A log that is corrupt is logged and skipped until the node restarts.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

from barnabas.config.server_config import ServerConfig
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Replicas
from barnabas.slices import Slices, in_slices
from barnabas.storage import CorruptLogError, StorageError, TopicPartition
from barnabas.storage.checkpoints import DamagedCheckpointError
from barnabas.storage.cleanable import CleanerOffsets, DirtyLog, choose_filthiest
from barnabas.storage.compaction import CleanerStats, Compaction
from barnabas.wire import KafkaError

_log = logging.getLogger(__name__)

PAUSE_S = 0.001


class Cleaner:
    """The log cleaner of a broker. `clean_all` is called periodically; `config` returns the current configuration."""

    def __init__(self, replicas: Replicas, config: Callable[[], ServerConfig], now_ms: Callable[[], int]) -> None:
        self._replicas = replicas
        self._config = config
        self._now_ms = now_ms
        self._offsets: dict[str, CleanerOffsets] = {}
        self._uncleanable: set[Partition] = set()
        self.cleaned = CleanerStats()  # of all cleanings
        self.cleanings = 0
        self.last_run_ms = now_ms()
        replicas.carry_cleaner_offset = self._carry

    @property
    def uncleanable(self) -> int:
        """The number of logs that are skipped because they are corrupt."""
        return len(self._uncleanable)

    async def clean_all(self) -> None:
        """Clean logs until none is dirty enough."""
        self.last_run_ms = self._now_ms()
        if self._config().get_bool("log.cleaner.enable"):
            await in_slices(self._forget_deleted())
            while (chosen := await in_slices(self._choose())) is not None:
                await self._clean(*chosen)

    def _forget_deleted(self) -> Slices[None]:
        partitions = list(self._replicas)
        here: dict[str, set[TopicPartition]] = {log_dir: set() for log_dir in self._offsets}
        for partition in partitions:
            yield
            if partition.log_dir in here:
                here[partition.log_dir].add(partition.name)
        for log_dir, names in here.items():
            yield asyncio.to_thread(self._offsets[log_dir].keep_only, names)
        self._uncleanable.intersection_update(partitions)

    def _choose(self) -> Slices[tuple[Partition, DirtyLog] | None]:
        found: dict[Partition, DirtyLog] = {}
        for partition in list(self._replicas):
            yield
            if partition.is_offline or partition in self._uncleanable or not partition.settings.log.compact:
                continue
            if partition in self._replicas.moves:
                continue
            yield partition.opening()
            if partition.is_offline:
                continue
            try:
                dirty = self._find_dirty(partition)
            except (KafkaError, StorageError) as error:
                _log.warning("could not check whether %s needs compaction: %s", partition, error)
                continue
            if dirty.checkpoint_is_wrong:
                yield asyncio.to_thread(self._offsets_of(partition).update, partition.name, dirty.first_dirty_offset)
            if dirty.is_due:
                found[partition] = dirty
        chosen = choose_filthiest({each: dirty for each, dirty in found.items() if not each.is_offline})
        return None if chosen is None else (chosen, found[chosen])

    def _find_dirty(self, partition: Partition) -> DirtyLog:
        checkpoint = self._offsets_of(partition).get(partition.name)
        return partition.log.find_dirty(checkpoint, partition.high_watermark, self._now_ms())

    async def _clean(self, partition: Partition, dirty: DirtyLog) -> None:
        config = self._config()
        opened = partition.log
        compaction = Compaction(
            opened,
            dirty,
            now_ms=self._now_ms(),
            dedupe_buffer_size=config.get_int("log.cleaner.dedupe.buffer.size"),
            load_factor=config.get_float("log.cleaner.io.buffer.load.factor"),
        )
        try:
            with closing(compaction.steps()) as steps:
                for step in steps:
                    if partition.is_offline or partition in self._replicas.moves:
                        return
                    await (asyncio.sleep(PAUSE_S) if step is None else asyncio.to_thread(step))
        except CorruptLogError as error:
            _log.error("%s will not be compacted until the next restart: %s", partition, error)
            self._uncleanable.add(partition)
            return
        except StorageError as error:
            if (
                opened is partition.opened_log and not partition.is_offline
            ):  # it was neither moved nor deleted meanwhile
                self._replicas.fail_dir(partition.log_dir, error)
            return
        if not compaction.is_done:
            return  # the log was truncated or deleted meanwhile
        await asyncio.to_thread(self._offsets_of(partition).update, partition.name, compaction.end_offset)
        stats = compaction.stats
        self.cleanings += 1
        self.cleaned.add(stats)
        _log.info(
            "%s: compacted up to offset %d; %d of %d records remain",
            partition,
            compaction.end_offset,
            stats.records_written,
            stats.records_read,
        )

    def _carry(self, partition: Partition, log_dir: str) -> None:
        """Move the cleaner checkpoint of a partition to the log dir that its log is about to move to."""
        name, path = partition.name, partition.log_dir
        try:
            cleaned_to = self._offsets_in(path).get(name)
            self._offsets_in(path).remove(name)
            path = log_dir
            if cleaned_to is None:
                self._offsets_in(path).remove(name)
            else:
                self._offsets_in(path).update(name, cleaned_to)
        except StorageError as error:
            self._replicas.fail_dir(path, error)

    def _offsets_of(self, partition: Partition) -> CleanerOffsets:
        return self._offsets_in(partition.log_dir)

    def _offsets_in(self, log_dir: str) -> CleanerOffsets:
        found = self._offsets.get(log_dir)
        if found is None:
            try:
                found = CleanerOffsets(Path(log_dir))
            except DamagedCheckpointError as error:
                _log.warning("%s: compaction starts again at the beginning of each log", error.fault)
                found = CleanerOffsets(Path(log_dir), is_lost=True)
            self._offsets[log_dir] = found
        return found
