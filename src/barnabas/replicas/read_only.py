"""Read-only replicas of log directories that another node left: every partition found there can be read.

Its one rule: nothing is written, renamed or locked. A log is opened, in memory, on first use and ends after its last
whole batch; how much of it was committed is unknown. If a partition was being moved, its current log is used, or else
the future one. Directories marked for deletion and directories of another topic with the same name are ignored. A log
that cannot be read takes only its own partition offline.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from barnabas.config.definitions import Value
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.image import MetadataImage
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Led, Replicas
from barnabas.replicated.decision import Producer
from barnabas.storage import (
    LOG_START_OFFSET_CHECKPOINT,
    RECOVERY_POINT_CHECKPOINT,
    AppendInfo,
    Log,
    StorageError,
    TopicPartition,
    read_offset_checkpoint,
    read_topic_id,
)
from barnabas.storage.log_dirs import CLUSTER_METADATA, DirectoryState, ScannedDir, had_clean_shutdown, list_partitions
from barnabas.storage.offline import end_offset_of
from barnabas.wire import KafkaError

_log = logging.getLogger(__name__)


class FoundLog(NamedTuple):
    """A partition's directory, with what the checkpoints of its log dir say about it."""

    log_dir: str
    path: Path
    is_future: bool
    was_clean: bool
    recovery_point: int
    log_start_offset: int


def find_logs(log_dirs: Iterable[str], image: MetadataImage) -> dict[TopicPartition, FoundLog]:
    """Return the logs of all partitions that are in the image."""
    logs: dict[TopicPartition, FoundLog] = {}
    for log_dir in log_dirs:
        recovery_points = _read_checkpoint(Path(log_dir) / RECOVERY_POINT_CHECKPOINT)
        log_start_offsets = _read_checkpoint(Path(log_dir) / LOG_START_OFFSET_CHECKPOINT)
        was_clean = had_clean_shutdown(Path(log_dir))
        for path, name, state in list_partitions(Path(log_dir)).partitions:
            if state in (DirectoryState.CURRENT, DirectoryState.FUTURE) and _is_known(path, name, image):
                found = FoundLog(
                    log_dir,
                    path,
                    state is DirectoryState.FUTURE,
                    was_clean,
                    recovery_points.get(name, 0),
                    log_start_offsets.get(name, 0),
                )
                logs[name] = _better(logs[name], found) if name in logs else found
    return logs


def _read_checkpoint(path: Path) -> dict[TopicPartition, int]:
    try:
        return read_offset_checkpoint(path)
    except StorageError as error:
        _log.warning("ignoring a checkpoint: %s", error)
        return {}


def _is_known(path: Path, name: TopicPartition, image: MetadataImage) -> bool:
    if name == CLUSTER_METADATA:
        return False
    topic = image.topics.get(name.topic)
    try:
        topic_id = read_topic_id(path)
    except StorageError as error:
        _log.warning("identifying the partition by its directory name alone: %s", error)
        topic_id = None
    if topic is None or not 0 <= name.partition < len(topic.partitions) or topic_id not in (None, topic.topic_id):
        _log.info("ignoring %s: the metadata has no such partition", path)
        return False
    return True


def _better(one: FoundLog, other: FoundLog) -> FoundLog:
    """Choose between two logs of a partition: the current one, or the longer one if both are of the same kind."""
    if one.is_future != other.is_future:
        return other if one.is_future else one
    chosen = max(one, other, key=lambda each: end_offset_of(each.path))
    _log.warning("%s and %s hold the same partition: using %s", one.path, other.path, chosen.path)
    return chosen


class ReadOnlyPartition(Partition):
    """A partition that every node with these directories leads, with its high watermark at the end of the log."""

    __slots__ = ("_refusal",)

    def __init__(self, *arguments: Any, refusal: Callable[[], KafkaError], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.is_leader = True
        self._refusal = refusal

    def start_verification(self, producer: Producer, sequence: int, *, supports_epoch_bump: bool) -> int | None:
        raise self._refusal()

    def _append(self, write: Callable[[], AppendInfo]) -> AppendInfo:
        raise self._refusal()

    def use(self, log: Log) -> None:
        self._log = log
        self.high_watermark = log.log_end_offset
        epochs = log.epochs  # read-only logs keep epochs in memory only
        if epochs.latest_epoch is None or epochs.latest_epoch < self.leader_epoch:
            epochs.assign(self.leader_epoch, self.high_watermark)


class ReadOnlyReplicas(Replicas):
    """All partitions found in the directories.

    `refusal` makes the error raised for every write. `now_ms` returns the time at which the directories were last used.
    """

    def __init__(
        self,
        node_id: int,
        directories: LogDirectories,
        logs: Mapping[TopicPartition, FoundLog],
        topic_values: Callable[[str], Mapping[str, Value]],
        *,
        now_ms: Callable[[], int],
        random: Random,
        config: Callable[[], ServerConfig | None],
        led: Led,
        refusal: Callable[[], KafkaError],
    ) -> None:
        super().__init__(node_id, directories, topic_values, now_ms=now_ms, random=random, config=config, led=led)
        self._logs = logs
        self._refusal = refusal

    def start(self, image: MetadataImage, scanned: Mapping[str, ScannedDir | StorageError] | None = None) -> None:
        self._image = image
        for name, found in self._logs.items():
            topic = image.topics.get(name.topic)
            assert topic is not None
            partition = ReadOnlyPartition(
                name.topic,
                name.partition,
                topic.topic_id,
                topic.partitions[name.partition],
                log_dir=found.log_dir,
                node_id=self.node_id,
                settings=self.settings,
                open_log=self._open_log,
                opening=self.opening,
                failed=self._unreadable,
                payloads=self.payloads,
                rolled=lambda partition, offset: None,
                began_leading=lambda partition: None,
                now_ms=self._now_ms,
                traffic=self.traffic.of(name.topic),
                refusal=self._refusal,
            )
            self._by_topic.setdefault(name.topic, {})[name.partition] = partition
            self._led(partition, True)

    def _opener(self, partition: Partition) -> Callable[[], Log]:
        found = self._logs[partition.name]
        config = partition.log_config

        def open_log() -> Log:
            opened = Log.open(
                found.path,
                config,
                clock=self._now_ms,
                clean_shutdown=found.was_clean,
                recovery_point=found.recovery_point,
                log_start_offset=found.log_start_offset,
                read_only=True,
            )
            for fault in opened.faults:
                _log.warning("%s: %s", partition, fault)
            for recovery in opened.recoveries:
                if recovery.truncated_bytes:
                    _log.warning(
                        "%s: ignoring %d bytes at the end that are not a valid batch: %s", *(partition, *recovery[2:])
                    )
            return opened

        return open_log

    def _unreadable(self, partition: Partition, error: StorageError) -> None:
        _log.error("could not open the log of %s: %s", partition, error)
        partition.is_offline = True

    def fail_dir(self, path: str, error: StorageError) -> None:
        _log.error("%s", error)

    async def stop(self, broker_epoch: int = -1) -> None:
        await self._stop_opening()
        for partition in self:
            if partition.opened_log is not None:
                partition.opened_log.abandon()
