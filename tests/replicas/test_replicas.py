"""A broker's partitions over real directories: they follow the image, survive restarts, and give way to bad disks."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from barnabas.batches import Record, build_batch, decode_records
from barnabas.config import server
from barnabas.config.resolve import Layers, topic_defaults
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicas.log_directories import LogDirectories
from barnabas.replicas.partition import Partition
from barnabas.replicas.replicas import Assign, Replicas
from barnabas.steps import ROWS_PER_STEP, at_once
from barnabas.storage import Log, StorageError, TopicPartition, read_offset_checkpoint, read_topic_id
from barnabas.storage.log_dirs import ScannedDir, scan_log_dir
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import (
    PartitionChangeRecord,
    PartitionRecord,
    RemoveTopicRecord,
    TopicRecord,
)
from tests.counting import counted
from tests.storage.made import validated

HERE = Provenance(1, 1, 1)
TOPIC, OTHER = Uuid(bytes([1]) * 16), Uuid(bytes([2]) * 16)
DIRECTORY_IDS = {"one": Uuid(bytes([11]) * 16), "two": Uuid(bytes([12]) * 16), "three": Uuid(bytes([13]) * 16)}


def topic(
    name: str = "t", topic_id: Uuid = TOPIC, partitions: int = 1, replicas: Sequence[int] = (1,), directory: str = "one"
) -> list[Message]:
    rows: list[Message] = [
        PartitionRecord(
            topic_id=topic_id,
            partition_id=number,
            replicas=list(replicas),
            isr=list(replicas),
            leader=replicas[0],
            leader_epoch=3,
            partition_epoch=0,
            directories=[DIRECTORY_IDS[directory]] * len(replicas),
        )
        for number in range(partitions)
    ]
    return [TopicRecord(name=name, topic_id=topic_id), *rows]


def scanned(path: str) -> ScannedDir | StorageError:
    try:
        return scan_log_dir(Path(path))
    except StorageError as error:
        return error


class Broker:
    """Replicas with an image that is changed by hand."""

    def __init__(
        self,
        path: Path,
        *records: Message,
        dirs: Sequence[str] = ("one",),
        assign: Assign | None = None,
        settings: Mapping[str, Any] | None = None,
        starts: bool = True,
    ) -> None:
        self.paths = {name: path / name for name in dirs}
        for each in self.paths.values():
            each.mkdir(exist_ok=True)
        config = server.load(None, {"log.dirs": ",".join(map(str, self.paths.values()))})
        self.image: MetadataImage = EMPTY_IMAGE
        self.led: list[tuple[str, bool]] = []
        self.told_offline = 0
        ids = {path: DIRECTORY_IDS[name] for name, path in self.paths.items()}
        self.directories = LogDirectories(lambda: config, ids)
        defaults = {**topic_defaults(Layers()), **(settings or {})}
        self.replicas = Replicas(
            1,
            self.directories,
            lambda name: defaults,
            now_ms=lambda: 1_700_000_000_000,
            random=Random(),
            led=lambda partition, leads: self.led.append((str(partition), leads)),
            offline=self._offline,
            assign=assign or (lambda partition, directory_id, accepted: accepted()),
        )
        self.image = replay(EMPTY_IMAGE, records, HERE)
        found = {path: scanned(path) for path in self.directories.paths if self.directories.is_online(path)}
        self.previous_epoch = self.replicas.take_scanned(found)
        if starts:
            self.replicas.start(self.image, found)

    def _offline(self) -> None:
        self.told_offline += 1

    def change(self, *records: Message) -> None:
        old, self.image = self.image, replay(self.image, records, HERE)
        at_once(self.replicas.image_changed(old, self.image, records))

    def stop(self, broker_epoch: int = 7) -> None:
        asyncio.run(self.replicas.stop(broker_epoch))

    def names(self, directory: str = "one") -> list[str]:
        return sorted(each.name for each in self.paths[directory].iterdir() if each.is_dir())


def append(partition: Partition, *values: bytes) -> None:
    partition.append(validated(build_batch([Record(i, 1, b"k", value) for i, value in enumerate(values)])))


async def create_all(broker: Broker) -> None:
    while await broker.replicas.create_next():
        pass


def values(partition: Partition) -> list[bytes | None]:
    return [record.value for record in decode_records(partition.read(0, 10_000))]


def code_of(broker: Broker, name: str, index: int = 0) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        broker.replicas.leader(name, index)
    return error.value.code


def test_a_directory_is_made_when_the_log_is_first_needed_or_when_there_is_time(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=2))
    assert broker.names() == []
    append(broker.replicas.partition("t", 1), b"x")
    assert broker.names() == ["t-1"]
    asyncio.run(create_all(broker))
    assert broker.names() == ["t-0", "t-1"]
    assert read_topic_id(broker.paths["one"] / "t-0") == TOPIC


def test_making_and_closing_a_log_that_stays_empty_waits_for_no_disk(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(tmp_path, *topic(partitions=3))
    flushed: list[int] = []
    monkeypatch.setattr(os, "fsync", flushed.append)
    asyncio.run(create_all(broker))
    for partition in broker.replicas:
        partition.log.close()
    assert broker.names() == ["t-0", "t-1", "t-2"]
    assert flushed == []


def test_records_of_a_coordinator_are_committed_when_they_are_flushed_as_flush_messages_says(tmp_path: Path) -> None:
    async def scenario() -> None:
        broker = Broker(tmp_path, *topic(), settings={"flush.messages": 2})
        partition = broker.replicas.partition("t", 0)
        for value, high_watermark in ((b"x", 1), (b"y", 1), (b"z", 1)):
            partition.append_records(build_batch([Record(0, 1, b"k", value)]), 3)
            assert partition.high_watermark == high_watermark
        async with asyncio.timeout(20):
            await partition.wait_committed(2)
        assert partition.log.recovery_point >= 2

    asyncio.run(scenario())


def test_what_was_appended_is_there_after_a_clean_stop_with_its_checkpoints(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"x", b"y")
    broker.stop(broker_epoch=42)
    name = TopicPartition("t", 0)
    for file in ("recovery-point-offset-checkpoint", "replication-offset-checkpoint"):
        assert read_offset_checkpoint(broker.paths["one"] / file) == {name: 2}
    again = Broker(tmp_path, *topic())
    assert again.previous_epoch == 42
    partition = again.replicas.partition("t", 0)
    assert (partition.high_watermark, values(partition)) == (2, [b"x", b"y"])
    assert not (again.paths["one"] / ".kafka_cleanshutdown").exists()


def test_after_a_kill_logs_are_recovered_and_the_epoch_is_not_told(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"x")
    with (broker.paths["one"] / "t-0" / "00000000000000000000.log").open("ab") as file:
        file.write(b"torn")
    again = Broker(tmp_path, *topic())
    assert again.previous_epoch == -1
    assert values(again.replicas.partition("t", 0)) == [b"x"]
    assert again.replicas.partition("t", 0).high_watermark == 1


def test_a_stop_before_all_logs_were_recovered_says_no_goodbye(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=2))
    append(broker.replicas.partition("t", 0), b"x")
    append(broker.replicas.partition("t", 1), b"x")
    again = Broker(tmp_path, *topic(partitions=2))  # nobody said goodbye
    append(again.replicas.partition("t", 0), b"y")
    again.stop()
    assert not (again.paths["one"] / ".kafka_cleanshutdown").exists()
    last = Broker(tmp_path, *topic(partitions=2))
    assert values(last.replicas.partition("t", 1)) == [b"x"]
    last.replicas.partition("t", 0).log  # noqa: B018
    last.stop()
    assert (last.paths["one"] / ".kafka_cleanshutdown").exists()


def test_a_start_pauses_at_every_few_partitions(tmp_path: Path) -> None:
    image = *topic(partitions=300), *topic("u", OTHER, partitions=300)
    broker = Broker(tmp_path, *image)
    for partition in broker.replicas:
        append(partition, b"x")
    broker.stop()
    again = Broker(tmp_path, *image, starts=False)
    _, pauses = counted(again.replicas.start_in_slices(again.image))
    assert again.previous_epoch == 7
    assert len(list(again.replicas)) == 600
    assert pauses >= 5 * 600 // ROWS_PER_STEP  # directories, logs that are gone, three checkpoints, and the table


def test_what_changes_while_a_broker_starts_is_followed_too(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=200), *topic("gone", OTHER), starts=False)
    work = broker.replicas.start_in_slices(broker.image)
    next(work)
    later = [
        *topic("new", Uuid(bytes([3]) * 16)),
        RemoveTopicRecord(topic_id=OTHER),
        PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2),
    ]
    broker.change(*later)
    at_once(work)
    names = {str(each) for each in broker.replicas}
    assert names == {"new-0", *(f"t-{number}" for number in range(200))}
    assert not broker.replicas.partition("t", 0).is_leader
    broker.change(RemoveTopicRecord(topic_id=TOPIC))
    assert [str(each) for each in broker.replicas] == ["new-0"]


def test_a_stop_in_the_middle_of_a_start_after_a_kill_says_no_goodbye(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=200))
    append(broker.replicas.partition("t", 199), b"x")
    again = Broker(tmp_path, *topic(partitions=200), starts=False)  # nobody said goodbye
    next(again.replicas.start_in_slices(again.image))
    again.stop()
    assert not (again.paths["one"] / ".kafka_cleanshutdown").exists()


def test_a_log_that_cannot_be_closed_takes_its_log_dir_along_and_not_the_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(tmp_path, *topic(partitions=20), *topic("u", OTHER, directory="two"), dirs=("one", "two"))
    for partition in broker.replicas:
        append(partition, b"x")
    close = Log.close

    def fail(log: Log) -> None:
        if log.directory.name == "t-7":
            raise StorageError("a test")
        close(log)

    monkeypatch.setattr(Log, "close", fail)
    broker.stop()
    assert not (broker.paths["one"] / ".kafka_cleanshutdown").exists()
    assert (broker.paths["two"] / ".kafka_cleanshutdown").exists()
    assert not broker.directories.is_online(str(broker.paths["one"]))


def test_checkpoints_of_logs_that_were_not_opened_go_on_saying_what_they_said(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=2))
    append(broker.replicas.partition("t", 0), b"x")
    append(broker.replicas.partition("t", 1), b"x")
    broker.stop()
    again = Broker(tmp_path, *topic(partitions=2))
    append(again.replicas.partition("t", 0), b"y")
    again.stop()
    found = read_offset_checkpoint(broker.paths["one"] / "recovery-point-offset-checkpoint")
    assert found == {TopicPartition("t", 0): 2, TopicPartition("t", 1): 1}


def test_a_deleted_topic_is_gone_at_once_and_its_files_wait_to_be_deleted(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"x")
    broker.change(RemoveTopicRecord(topic_id=TOPIC))
    assert code_of(broker, "t") is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert broker.led == [("t-0", True), ("t-0", False)]
    (name,) = broker.names()
    assert name.startswith("t-0.") and name.endswith("-delete")
    assert [path.name for _, path in broker.replicas.deleted] == [name]


def test_a_topic_of_the_same_name_begins_anew(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"old")
    broker.change(RemoveTopicRecord(topic_id=TOPIC), *topic(topic_id=OTHER))
    partition = broker.replicas.partition("t", 0)
    append(partition, b"new")
    assert (values(partition), read_topic_id(broker.paths["one"] / "t-0")) == ([b"new"], OTHER)


def test_a_directory_that_the_image_does_not_know_is_set_aside_and_kept(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"x")
    broker.stop()
    again = Broker(tmp_path, *topic(topic_id=OTHER))
    assert again.replicas.partition("t", 0).log_end_offset == 0
    stray = next(name for name in again.names() if name.endswith("-stray"))
    assert (again.paths["one"] / stray / "00000000000000000000.log").stat().st_size > 0


def test_leaders_and_replicas_follow_the_image(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(replicas=(2, 1)), *topic("u", OTHER, replicas=(2,)))
    assert code_of(broker, "t") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert code_of(broker, "u") is ErrorCode.NOT_LEADER_OR_FOLLOWER
    broker.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1, isr=[1]))
    partition = broker.replicas.leader("t", 0)
    assert (partition.leader_epoch, broker.led) == (4, [("t-0", True)])
    append(partition, b"x")
    assert partition.log.epochs.latest_epoch == 4
    with pytest.raises(KafkaError) as fenced:
        broker.replicas.leader("t", 0, 3)
    assert fenced.value.code is ErrorCode.FENCED_LEADER_EPOCH
    with pytest.raises(KafkaError) as unknown:
        broker.replicas.leader("t", 0, 5)
    assert unknown.value.code is ErrorCode.UNKNOWN_LEADER_EPOCH


def test_replicas_that_fall_out_of_sync_and_come_back_are_counted_where_they_are_led(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(replicas=(1, 2, 3)), *topic("u", OTHER, replicas=(2, 1)))
    for isr in ([1], [1, 2], [1, 2, 3]):
        broker.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, isr=isr))
    broker.change(PartitionChangeRecord(topic_id=OTHER, partition_id=0, isr=[2]))
    assert (broker.replicas.isr_shrinks, broker.replicas.isr_expands) == (1, 2)


def test_what_a_deleted_topic_counted_stays_in_the_sum(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    append(broker.replicas.partition("t", 0), b"x", b"y")
    traffic = broker.replicas.traffic
    assert (len(traffic), traffic.get("t").messages_in, traffic.others.messages_in) == (1, 2, 0)
    broker.change(RemoveTopicRecord(topic_id=TOPIC), *topic(topic_id=OTHER))
    assert (len(traffic), traffic.get("t").messages_in, traffic.others.messages_in) == (1, 0, 2)


def test_several_log_dirs_are_filled_as_the_cluster_says_and_else_evenly(tmp_path: Path) -> None:
    records = [
        *topic("a", TOPIC, directory="two"),
        *topic("b", OTHER, partitions=3),
    ]
    for record in records[2:]:
        if isinstance(record, PartitionRecord):
            record.directories = [Uuid((1).to_bytes(16))]  # not assigned yet
    broker = Broker(tmp_path, *records, dirs=("one", "two"))
    asyncio.run(create_all(broker))
    assert broker.names("two")[:1] == ["a-0"]
    assert len(broker.names("one")) == len(broker.names("two")) == 2


def test_a_partition_in_two_log_dirs_is_refused_by_name(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(), dirs=("one", "two"))
    append(broker.replicas.partition("t", 0), b"x")
    (broker.paths["two"] / "t-0").mkdir()
    again = Broker(tmp_path, *topic(), dirs=("one", "two"))
    assert not again.directories.is_online(str(again.paths["two"]))


def test_a_failing_disk_takes_its_log_dir_offline_and_no_other(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic("a", TOPIC), *topic("b", OTHER, directory="two"), dirs=("one", "two"))
    append(broker.replicas.partition("a", 0), b"x")
    append(broker.replicas.partition("b", 0), b"x")
    broker.replicas.fail_dir(str(broker.paths["one"]), StorageError("no space left"))
    assert code_of(broker, "a") is ErrorCode.KAFKA_STORAGE_ERROR
    append(broker.replicas.leader("b", 0), b"y")
    assert (broker.told_offline, broker.led[-1]) == (1, ("a-0", False))
    assert broker.directories.offline_ids == [DIRECTORY_IDS["one"]]
    broker.stop()
    assert not (broker.paths["one"] / ".kafka_cleanshutdown").exists()
    assert (broker.paths["two"] / ".kafka_cleanshutdown").exists()


def test_who_reads_a_segment_for_so_long_that_it_is_deleted_harms_nobody_else(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    partition = broker.replicas.partition("t", 0)
    append(partition, b"x")
    batches = partition.log.find_range(0, 1000)
    assert batches is not None
    partition.log.roll()
    partition.log.advance_log_start_offset(1)
    assert partition.log.delete_old_segments() == 1
    assert batches.read()
    partition.log.delete_files()
    with pytest.raises(StorageError) as error:
        batches.read()
    assert partition.read_failed(error.value) is ErrorCode.KAFKA_STORAGE_ERROR
    assert not partition.is_offline and broker.told_offline == 0


def take_away(partition: Partition, place: Path) -> None:
    """Move the file of the active segment away, as if the disk had failed."""
    segment = partition.log.segments[-1]
    segment.log.let_go()
    segment.log.path.rename(place)


def test_an_append_that_the_disk_refuses_is_a_storage_error_and_nothing_is_written_after_it(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    partition = broker.replicas.partition("t", 0)
    append(partition, b"x")
    take_away(partition, tmp_path / "elsewhere")
    with pytest.raises(KafkaError) as error:
        append(partition, b"y")
    assert error.value.code is ErrorCode.KAFKA_STORAGE_ERROR
    assert partition.is_offline and broker.told_offline == 1


def test_a_coordinator_that_cannot_read_its_log_takes_the_log_dir_offline(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic())
    partition = broker.replicas.partition("t", 0)
    append(partition, b"x")
    take_away(partition, tmp_path / "elsewhere")
    with pytest.raises(StorageError):
        asyncio.run(partition.load(0, 1000))
    assert partition.is_offline and broker.told_offline == 1
