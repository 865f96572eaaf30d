"""The partitions of directories that are only looked at, whoever led them: every log that is there can be read here.

Its one rule: nothing is written, renamed or locked. A log is opened, in memory, when it is first asked for, and ends where its
last whole batch does: how much of that was committed, nobody is left to say. Of a partition that was being moved, the log
counts that is current, or else the future one; what was being deleted, and what is of another topic of the same name, does
not. A log that cannot be read is one log: its neighbours are served.
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
from barnabas.storage.log_dirs import CLUSTER_METADATA, DirectoryState, had_clean_shutdown, list_partitions
from barnabas.storage.offline import end_offset_of
from barnabas.wire import ErrorCode, KafkaError

log = logging.getLogger(__name__)


class FoundLog(NamedTuple):
    """A directory with the log of a partition, and what its log dir says of that."""

    log_dir: str
    path: Path
    is_future: bool
    was_clean: bool
    recovery_point: int
    log_start_offset: int


def find_logs(log_dirs: Iterable[str], image: MetadataImage) -> dict[TopicPartition, FoundLog]:
    """The logs of the partitions that the image knows."""
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
        log.warning("%s; it is passed over", error)
        return {}


def _is_known(path: Path, name: TopicPartition, image: MetadataImage) -> bool:
    if name == CLUSTER_METADATA:
        return False
    topic = image.topics.get(name.topic)
    try:
        topic_id = read_topic_id(path)
    except StorageError as error:
        log.warning("%s; it goes by its name", error)
        topic_id = None
    if topic is None or not 0 <= name.partition < len(topic.partitions) or topic_id not in (None, topic.topic_id):
        log.info("%s is of no partition that the metadata knows: it is not shown", path)
        return False
    return True


def _better(one: FoundLog, other: FoundLog) -> FoundLog:
    """Of two logs of a partition: the current one, and of two of a kind the longer one."""
    if one.is_future != other.is_future:
        return other if one.is_future else one
    chosen = max(one, other, key=lambda each: end_offset_of(each.path))
    log.warning("%s and %s are of one partition: %s is shown", one.path, other.path, chosen.path)
    return chosen


class ReadOnlyPartition(Partition):
    """Led by whoever is asked, up to the end of its log."""

    __slots__ = ("_refusal",)

    def __init__(self, *arguments: Any, refusal: Callable[[], KafkaError], **more: Any) -> None:
        super().__init__(*arguments, **more)
        self.is_leader = True
        self._refusal = refusal

    def start_verification(self, producer: Producer, sequence: int, *, supports_epoch_bump: bool) -> int | None:
        raise self._refusal()

    def _append(self, write: Callable[[], AppendInfo]) -> AppendInfo:
        raise self._refusal()

    def _open_log(self) -> None:
        if self.is_offline:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR)
        try:
            self._log = self._open(self)
        except StorageError as error:
            log.error("the log of %s cannot be shown: %s", self, error)
            self.is_offline = True
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR) from error
        self.high_watermark = self._log.log_end_offset
        epochs = self._log.epochs  # which are held, and so in memory alone
        if epochs.latest_epoch is None or epochs.latest_epoch < self.leader_epoch:
            epochs.assign(self.leader_epoch, self.high_watermark)


class ReadOnlyReplicas(Replicas):
    """`refusal` makes the error of who wants to write; `now_ms` is when the directories were left."""

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

    def start(self, image: MetadataImage) -> int:
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
                node_id=self._node_id,
                settings=self.settings,
                open_log=self._open_log,
                failed=self._failed,
                rolled=lambda partition, offset: None,
                now_ms=self._now_ms,
                refusal=self._refusal,
            )
            self._by_topic.setdefault(name.topic, {})[name.partition] = partition
            self._led(partition, True)
        return -1

    def _open_log(self, partition: Partition) -> Log:
        found = self._logs[TopicPartition(partition.topic, partition.partition_id)]
        opened = Log.open(
            found.path,
            partition.log_config,
            clock=self._now_ms,
            clean_shutdown=found.was_clean,
            recovery_point=found.recovery_point,
            log_start_offset=found.log_start_offset,
            read_only=True,
        )
        for recovery in opened.recoveries:
            if recovery.truncated_bytes:
                log.warning("%s: %d bytes at its end are no batch: %s", *(partition, *recovery[2:]))
        return opened

    def fail_dir(self, path: str, error: StorageError) -> None:
        log.error("%s", error)

    async def stop(self, broker_epoch: int = -1) -> None:
        for partition in self:
            if partition.opened_log is not None:
                partition.opened_log.abandon()
