"""A replica that goes from one log dir to another: all of it, while it is written to, and whatever comes in between."""

from __future__ import annotations

import asyncio
import random
import subprocess
import sys
import time
from collections.abc import Callable, Coroutine, Mapping
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec

import pytest

from barnabas.batches import decode_records
from barnabas.config import server
from barnabas.replicas import moving
from barnabas.replicas.cleaner import Cleaner
from barnabas.replicas.partition import Partition
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.storage import Log, StorageError, TopicPartition, read_offset_checkpoint, read_topic_id
from barnabas.storage.checkpoints import CLEANER_OFFSET_CHECKPOINT
from barnabas.storage.cleanable import CleanerOffsets
from barnabas.storage.errors import FileGoneError
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid
from barnabas.wire.records.metadata import PartitionChangeRecord, RemoveTopicRecord
from tests.replicas import moving_child
from tests.replicas.test_replicas import DIRECTORY_IDS, TOPIC, Broker, append, topic
from tests.storage.made import produced, validated, whole_log

NAME = TopicPartition("t", 0)
SMALL = {"segment.bytes": 1000, "index.interval.bytes": 100}
DIRS = ("one", "two")
KILLS = 6
P = ParamSpec("P")


def in_a_loop(test: Callable[P, Coroutine[Any, Any, None]]) -> Callable[P, None]:
    @wraps(test)
    def run(*args: P.args, **kwargs: P.kwargs) -> None:
        asyncio.run(test(*args, **kwargs))

    return run


class Controller:
    """Takes what it is told at once, or when the test says so."""

    def __init__(self, *, at_once: bool = True) -> None:
        self.told: list[Uuid] = []
        self.waiting: list[Callable[[], None]] = []
        self.at_once = at_once

    def __call__(self, partition: Partition, directory_id: Uuid, accepted: Callable[[], None]) -> None:
        self.told.append(directory_id)
        self.waiting.append(accepted)
        if self.at_once:
            self.accept()

    def accept(self) -> None:
        while self.waiting:
            self.waiting.pop(0)()

    def names(self) -> list[str]:
        return [next(name for name, each in DIRECTORY_IDS.items() if each == told) for told in self.told]


def moved_to(directory: str) -> Message:
    return PartitionChangeRecord(topic_id=TOPIC, partition_id=0, directories=[DIRECTORY_IDS[directory]])


def start(path: Path, *more: Message, controller: Controller | None = None, **given: Any) -> Broker:
    settings: Mapping[str, object] = {**SMALL, **given.pop("settings", {})}
    return Broker(path, *topic(), *more, dirs=given.pop("dirs", DIRS), assign=controller, settings=settings, **given)


def fill(partition: Partition, count: int, first: int = 0) -> list[bytes]:
    written = [b"%d" % number * 20 for number in range(first, first + count)]
    for value in written:
        append(partition, value)
    return written


def move(broker: Broker, directory: str, name: str = "t") -> None:
    broker.replicas.move(broker.replicas.partition(name, 0), str(broker.paths[directory]))


async def finish(broker: Broker, between: Callable[[], object] = lambda: None, rounds: int = 1000) -> None:
    for _ in range(rounds):
        if not list(broker.replicas.moves):
            return
        await broker.replicas.moves.advance()
        between()
    raise AssertionError("the move does not come to an end")


async def advance(broker: Broker, rounds: int = 1) -> None:
    for _ in range(rounds):
        await broker.replicas.moves.advance()


def only(broker: Broker, directory: str) -> str:
    (name,) = broker.names(directory)
    return name


def all_values(broker: Broker) -> list[bytes | None]:
    partition = broker.replicas.partition("t", 0)
    return values_from(partition, partition.log_start_offset)


def values_from(partition: Partition, offset: int) -> list[bytes | None]:
    batches = partition.log.batches(offset)
    return [record.value for header, data in batches for record in decode_records(data, 0, header)]


def log_bytes(directory: Path) -> int:
    return sum(path.stat().st_size for path in directory.glob("*.log"))


@pytest.fixture(autouse=True)
def _small_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moving, "SLICE_BYTES", 500)


# --- all of it


@in_a_loop
async def test_a_log_goes_to_another_log_dir_with_all_that_belongs_to_it(tmp_path: Path) -> None:
    controller = Controller()
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 50)
    broker.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1, isr=[1]))  # another epoch
    written += fill(partition, 50, 50)
    before, epochs = whole_log(partition.log), partition.log.epochs.entries
    move(broker, "two")
    assert only(broker, "two").startswith("t-0.") and only(broker, "two").endswith("-future")
    await finish(broker)
    assert controller.names() == ["two"]
    assert (partition.log_dir, only(broker, "two")) == (str(broker.paths["two"]), "t-0")
    assert only(broker, "one").endswith("-delete")
    assert [path.name for _, path in broker.replicas.deleted] == broker.names("one")
    assert (whole_log(partition.log), partition.log.epochs.entries) == (before, epochs)
    assert [entry.epoch for entry in epochs] == [3, 4]
    assert read_topic_id(broker.paths["two"] / "t-0") == TOPIC
    written += fill(partition, 3, 100)
    assert (partition.high_watermark, partition.log_end_offset) == (103, 103)
    await broker.replicas.stop(7)
    again = start(tmp_path, moved_to("two"))
    assert (again.previous_epoch, all_values(again)) == (7, written)
    assert read_offset_checkpoint(broker.paths["one"] / "recovery-point-offset-checkpoint") == {}


@in_a_loop
async def test_what_is_appended_meanwhile_comes_along(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 30)
    move(broker, "two")
    await finish(broker, lambda: written.extend(fill(partition, 1, len(written))))
    assert partition.log_dir == str(broker.paths["two"])
    assert all_values(broker) == written
    assert partition.high_watermark == len(written)


@in_a_loop
async def test_the_swap_waits_for_the_controller(tmp_path: Path) -> None:
    controller = Controller(at_once=False)
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 30)
    move(broker, "two")
    await advance(broker, 30)
    assert (controller.names(), partition.log_dir) == (["two"], str(broker.paths["one"]))
    written += fill(partition, 30, 30)
    controller.accept()
    await finish(broker)
    assert (partition.log_dir, all_values(broker)) == (str(broker.paths["two"]), written)


@in_a_loop
async def test_an_empty_log_is_moved_and_keeps_its_offset(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 10)
    partition.log.truncate_fully_and_start_at(10)
    move(broker, "two")
    await finish(broker)
    assert (partition.log_dir, partition.log_start_offset, partition.log_end_offset) == (
        str(broker.paths["two"]),
        10,
        10,
    )


# --- producers and transactions


@in_a_loop
async def test_idempotent_producers_go_on(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    batches = [validated(produced(7, number, b"%d" % number)) for number in range(8)]
    first = [partition.append(each).base_offset for each in batches[:6]]
    move(broker, "two")
    await finish(broker, lambda: None)
    again = partition.append(batches[2])
    assert (again.is_duplicate, again.base_offset) == (True, first[2])
    with pytest.raises(KafkaError) as gap:
        partition.append(batches[7])
    assert gap.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert partition.append(batches[6]).base_offset == 6


@in_a_loop
async def test_transactions_are_what_they_were_and_can_be_ended(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)

    def write(producer_id: int, sequence: int, epoch: int = 0) -> None:
        guard = partition.start_verification(Producer(producer_id, epoch), sequence, supports_epoch_bump=True)
        data = produced(producer_id, sequence, b"x" * 30, transactional=True, epoch=epoch)
        partition.append(validated(data), guard)

    def end(producer_id: int, commit: bool) -> None:
        partition.append_marker(Producer(producer_id, 0), Marker(commit, 0), 3, 1)

    for producer_id in range(1, 20):
        write(producer_id, 0)
        write(producer_id, 1)
        end(producer_id, commit=producer_id % 2 == 0)
    write(20, 0)
    guard = partition.start_verification(Producer(21, 0), 0, supports_epoch_bump=True)
    assert guard is not None
    stable, aborted = partition.last_stable_offset, partition.log.aborted_transactions(0, 100)
    assert len(aborted) == 10
    assert stable == partition.log_end_offset - 1
    move(broker, "two")
    await finish(broker)
    assert partition.log_dir == str(broker.paths["two"])
    assert (partition.last_stable_offset, partition.log.aborted_transactions(0, 100)) == (stable, aborted)
    partition.append(validated(produced(21, 0, b"verified before the move", transactional=True)), guard)
    end(20, commit=False)
    end(21, commit=True)
    assert partition.last_stable_offset == partition.log_end_offset == partition.high_watermark
    assert len(partition.log.aborted_transactions(0, 100)) == 11
    again = start(tmp_path, moved_to("two"))  # nobody said goodbye
    assert len(again.replicas.partition("t", 0).log.aborted_transactions(0, 100)) == 11


# --- what is cut off and deleted meanwhile


@in_a_loop
async def test_the_log_start_offset_stays_also_within_a_batch(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    append(partition, b"a", b"b", b"c")
    append(partition, b"d")
    partition.log.advance_log_start_offset(2)
    move(broker, "two")
    await finish(broker)
    assert (partition.log_start_offset, partition.log_end_offset) == (2, 4)
    assert values_from(partition, 2) == [b"a", b"b", b"c", b"d"]
    await broker.replicas.stop(7)
    again = start(tmp_path, moved_to("two")).replicas.partition("t", 0)
    assert (again.log_start_offset, again.log_end_offset) == (2, 4)


@in_a_loop
async def test_what_is_deleted_while_it_is_moved_is_deleted_there_too(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 60)
    move(broker, "two")
    await advance(broker, 5)
    future = broker.replicas.moves.get(partition)
    assert future is not None and future.log is not None and 0 < future.log.log_end_offset < 60
    partition.log.advance_log_start_offset(40)  # which is further than was copied
    partition.log.delete_old_segments()
    await advance(broker, 2)
    partition.log.advance_log_start_offset(45)
    await finish(broker)
    assert (partition.log_start_offset, partition.log_end_offset) == (45, 60)
    assert values_from(partition, 45)[-1] == written[-1]
    assert partition.log.segments[0].base_offset >= 40


def test_a_segment_that_is_deleted_while_it_is_read_does_not_end_the_move(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = Log.read
    gone: list[Log] = []

    def read_late(log: Log, *arguments: Any) -> bytes:
        if not gone:
            gone.append(log)
            log.advance_log_start_offset(40)
            log.delete_old_segments()
            raise FileGoneError("its file was deleted before it was opened")
        return read(log, *arguments)

    async def moved() -> None:
        broker = start(tmp_path)
        partition = broker.replicas.partition("t", 0)
        fill(partition, 60)
        monkeypatch.setattr(Log, "read", read_late)
        move(broker, "two")
        await finish(broker)
        assert gone and not partition.is_offline
        assert (partition.log_start_offset, partition.log_end_offset) == (40, 60)

    asyncio.run(moved())


@pytest.mark.parametrize("copied_rounds", [3, 100])
@in_a_loop
async def test_a_future_log_loses_what_the_current_one_has_lost(tmp_path: Path, copied_rounds: int) -> None:
    controller = Controller(at_once=False)
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 40)
    move(broker, "two")
    await advance(broker, copied_rounds)
    partition.log.truncate_to(10)
    broker.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=1, isr=[1]))
    written = written[:10] + fill(partition, 35, 500)
    controller.at_once = True
    controller.accept()
    await finish(broker)
    assert all_values(broker) == written
    assert [(e.epoch, e.start_offset) for e in partition.log.epochs.entries] == [(3, 0), (4, 10)]


@in_a_loop
async def test_offsets_of_records_that_were_compacted_away_at_the_end_are_not_used_again(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 5)
    partition.log.skip_to(50)
    move(broker, "two")
    await finish(broker)
    assert (partition.log_start_offset, partition.log_end_offset) == (0, 50)
    append(partition, b"next")
    assert partition.log_end_offset == 51
    again = start(tmp_path, moved_to("two")).replicas.partition("t", 0)
    assert (again.log_end_offset, len(values_from(again, 0))) == (51, 6)
    assert values_from(again, 6) == [b"next"]


@in_a_loop
async def test_a_log_is_not_compacted_while_it_is_moved_and_is_as_clean_afterwards(tmp_path: Path) -> None:
    controller = Controller(at_once=False)
    settings = {"cleanup.policy": ("compact",), "min.cleanable.dirty.ratio": 0.0}
    broker = start(tmp_path, controller=controller, settings=settings)
    config = server.load(None, {})
    cleaner = Cleaner(broker.replicas, lambda: config, lambda: 1_700_000_000_000)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 40)
    await cleaner.clean_all()
    cleaned_to = CleanerOffsets(broker.paths["one"]).get(NAME)
    assert cleaned_to is not None and cleaned_to > 30
    move(broker, "two")
    written = len(fill(partition, 40, 40))
    await cleaner.clean_all()
    assert CleanerOffsets(broker.paths["one"]).get(NAME) == cleaned_to
    await advance(broker, 20)
    controller.accept()
    await finish(broker)
    assert CleanerOffsets(broker.paths["one"]).get(NAME) is None
    assert read_offset_checkpoint(broker.paths["two"] / CLEANER_OFFSET_CHECKPOINT) == {NAME: cleaned_to}
    await cleaner.clean_all()
    assert (CleanerOffsets(broker.paths["two"]).get(NAME) or 0) > cleaned_to
    assert len(all_values(broker)) < written


# --- other minds


@in_a_loop
async def test_a_move_to_where_the_log_is_gives_up_a_move_to_elsewhere(tmp_path: Path) -> None:
    controller = Controller(at_once=False)
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    written = fill(partition, 30)
    move(broker, "two")
    move(broker, "two")  # which is the same move
    assert len(broker.names("two")) == 1
    await advance(broker, 30)
    move(broker, "one")
    assert not list(broker.replicas.moves)
    assert only(broker, "two").endswith("-delete")
    assert controller.names() == ["two", "one"]  # it may have heard of the first
    controller.accept()
    await finish(broker)
    assert all_values(broker) == written


@in_a_loop
async def test_a_move_is_replaced_by_one_to_a_third_log_dir(tmp_path: Path) -> None:
    broker = start(tmp_path, dirs=("one", "two", "three"))
    written = fill(broker.replicas.partition("t", 0), 30)
    move(broker, "two")
    await advance(broker, 3)
    move(broker, "three")
    await finish(broker)
    assert (only(broker, "three"), all_values(broker)) == ("t-0", written)
    assert only(broker, "two").endswith("-delete")


@in_a_loop
async def test_there_and_back_again(tmp_path: Path) -> None:
    broker = start(tmp_path)
    written = fill(broker.replicas.partition("t", 0), 30)
    for directory in ("two", "one", "two"):
        move(broker, directory)
        await finish(broker)
        written += fill(broker.replicas.partition("t", 0), 10, len(written))
    assert all_values(broker) == written
    assert [name for name in broker.names("two") if not name.endswith("-delete")] == ["t-0"]
    await broker.replicas.stop(7)
    assert all_values(start(tmp_path, moved_to("two"))) == written


@in_a_loop
async def test_a_deleted_topic_takes_its_future_log_with_it(tmp_path: Path) -> None:
    broker = start(tmp_path)
    fill(broker.replicas.partition("t", 0), 30)
    move(broker, "two")
    await advance(broker, 3)
    broker.change(RemoveTopicRecord(topic_id=TOPIC))
    assert not list(broker.replicas.moves)
    assert only(broker, "one").endswith("-delete") and only(broker, "two").endswith("-delete")
    assert len(broker.replicas.deleted) == 2


@in_a_loop
async def test_a_move_that_ends_while_a_slice_is_copied_leaves_nothing(tmp_path: Path) -> None:
    async def scenario(broker: Broker) -> None:
        working = asyncio.create_task(broker.replicas.moves.advance())
        while not any(each.is_busy for each in broker.replicas.moves):
            await asyncio.sleep(0)
        broker.change(RemoveTopicRecord(topic_id=TOPIC))
        await working

    broker = start(tmp_path)
    fill(broker.replicas.partition("t", 0), 30)
    move(broker, "two")
    await scenario(broker)
    assert only(broker, "two").endswith("-delete")


# --- bad disks


@in_a_loop
async def test_a_target_that_fails_leaves_the_replica_where_it_is(tmp_path: Path) -> None:
    controller = Controller(at_once=False)
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 30)
    move(broker, "two")
    await advance(broker, 30)
    broker.replicas.fail_dir(str(broker.paths["two"]), StorageError("no space left"))
    assert (list(broker.replicas.moves), partition.is_offline) == ([], False)
    assert controller.names() == ["two", "one"]
    controller.accept()
    fill(partition, 1, 30)
    assert only(broker, "two").endswith("-future")  # which nobody can touch now
    with pytest.raises(StorageError, match="is offline"):
        move(broker, "two")


@in_a_loop
async def test_a_source_that_fails_takes_the_replica_with_it(tmp_path: Path) -> None:
    controller = Controller(at_once=False)
    broker = start(tmp_path, controller=controller)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 30)
    move(broker, "two")
    await advance(broker, 30)
    broker.replicas.fail_dir(str(broker.paths["one"]), StorageError("no space left"))
    assert partition.is_offline and not list(broker.replicas.moves)
    controller.accept()
    assert controller.names() == ["two", "one"]


@in_a_loop
async def test_a_copy_that_the_target_refuses_takes_that_log_dir_offline(tmp_path: Path) -> None:
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 30)
    move(broker, "two")
    await advance(broker, 1)
    under_way = broker.replicas.moves.get(partition)
    assert under_way is not None and under_way.log is not None
    segment = under_way.log.segments[-1]
    segment.log.let_go()
    segment.log.path.rename(tmp_path / "elsewhere")
    await finish(broker)
    assert not broker.directories.is_online(str(broker.paths["two"]))
    assert broker.told_offline == 1
    fill(broker.replicas.leader("t", 0), 1, 30)


# --- after a restart


@pytest.mark.parametrize("clean", [True, False])
@in_a_loop
async def test_a_half_copied_log_is_gone_on_with_after_a_restart(tmp_path: Path, clean: bool) -> None:
    broker = start(tmp_path)
    written = fill(broker.replicas.partition("t", 0), 60)
    move(broker, "two")
    await advance(broker, 5)
    if clean:
        await broker.replicas.stop(7)
    else:
        await broker.replicas.write_checkpoints()
    future = only(broker, "two")
    copied = log_bytes(broker.paths["two"] / future)
    assert copied > 0
    again = start(tmp_path)
    written += fill(again.replicas.partition("t", 0), 10, 60)
    assert only(again, "two") == future
    assert log_bytes(broker.paths["two"] / future) == copied
    await finish(again)
    assert (only(again, "two"), all_values(again)) == ("t-0", written)
    await again.replicas.stop(7)
    assert (again.paths["two"] / ".kafka_cleanshutdown").exists()
    assert all_values(start(tmp_path, moved_to("two"))) == written


@in_a_loop
async def test_a_stop_before_a_future_log_was_looked_at_says_no_goodbye_after_a_kill(tmp_path: Path) -> None:
    broker = start(tmp_path)
    fill(broker.replicas.partition("t", 0), 60)
    move(broker, "two")
    await advance(broker, 5)
    again = start(tmp_path)
    fill(again.replicas.partition("t", 0), 1)
    await again.replicas.stop(7)
    assert (again.paths["one"] / ".kafka_cleanshutdown").exists()
    assert not (again.paths["two"] / ".kafka_cleanshutdown").exists()


class _KilledError(BaseException):
    pass


@pytest.mark.parametrize("rename", range(4))
@in_a_loop
async def test_a_kill_around_the_swap_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rename: int
) -> None:
    """Before and after the rename of the future log, before and after that of the current one."""
    controller = Controller()
    broker = start(tmp_path, controller=controller)
    written = fill(broker.replicas.partition("t", 0), 40)
    move(broker, "two")
    renames = iter(range(4))
    real = Log.rename

    def killed(log: Log, directory: Path) -> None:
        if next(renames) == rename:
            raise _KilledError
        real(log, directory)
        if next(renames) == rename:
            raise _KilledError

    monkeypatch.setattr(Log, "rename", killed)
    with pytest.raises(_KilledError):
        await finish(broker)
    monkeypatch.setattr(Log, "rename", real)
    assert controller.names() == ["two"]
    again = start(tmp_path, moved_to("two"), controller=controller)
    written += fill(again.replicas.partition("t", 0), 5, 40)
    await finish(again)
    assert all_values(again) == written
    assert [name for name in again.names("two") if not name.endswith("-delete")] == ["t-0"]
    assert [name for name in again.names("one") if not name.endswith("-delete")] == []
    await again.replicas.stop(7)
    last = start(tmp_path, moved_to("two"), controller=controller)
    assert all_values(last) == written
    assert set(controller.names()) == {"two"}  # it was never told otherwise


@in_a_loop
async def test_of_two_logs_the_longer_one_is_kept_and_the_other_set_aside(tmp_path: Path) -> None:
    """The disk of the first failed when the swap was half done, and the other log went on."""
    broker = start(tmp_path)
    partition = broker.replicas.partition("t", 0)
    fill(partition, 40)
    move(broker, "two")
    await finish(broker)
    (gone,) = broker.paths["one"].iterdir()
    gone.rename(broker.paths["one"] / "t-0")
    written = fill(partition, 5, 40)
    await broker.replicas.stop(7)
    again = start(tmp_path)  # the controller was told that it is in the first
    assert all_values(again)[-5:] == written
    assert only(again, "one").endswith("-stray")


@in_a_loop
async def test_a_future_log_without_a_current_one_is_it_if_the_controller_has_accepted_that(tmp_path: Path) -> None:
    for number, (records, end) in enumerate((([moved_to("two")], 40), ([], 0))):
        path = tmp_path / str(number)
        path.mkdir()
        broker = start(path, controller=Controller(at_once=False))
        fill(broker.replicas.partition("t", 0), 40)
        move(broker, "two")
        await advance(broker, 60)
        (broker.paths["one"] / "t-0").rename(broker.paths["one"] / "t-0.x-delete")
        again = start(path, *records)
        assert again.replicas.partition("t", 0).log_end_offset == end
        assert only(again, "two").endswith("t-0" if end else "-stray")


@in_a_loop
async def test_what_is_left_of_a_move_that_was_given_up_is_deleted(tmp_path: Path) -> None:
    broker = start(tmp_path)
    fill(broker.replicas.partition("t", 0), 5)
    (broker.paths["one"] / "t-0.a-future").mkdir()
    one = start(tmp_path)
    assert sorted(name.rpartition("-")[2] for name in one.names("one")) == ["0", "delete"]
    for name in ("t-0.b-future", "t-0.c-future", "gone-0.d-future"):
        (broker.paths["two"] / name).mkdir()
    again = start(tmp_path)
    assert sorted(name.rpartition("-")[2] for name in again.names("two")) == ["delete", "future", "stray"]


# --- where replicas are


@in_a_loop
async def test_the_controller_is_told_where_a_replica_is_if_it_has_it_elsewhere(tmp_path: Path) -> None:
    controller = Controller()
    broker = start(tmp_path, moved_to("two"), controller=controller)
    assert controller.names() == []  # it is made where it should be
    fill(broker.replicas.partition("t", 0), 1)
    await broker.replicas.stop(7)
    (broker.paths["two"] / "t-0").rename(broker.paths["one"] / "t-0")
    again = start(tmp_path, moved_to("two"), controller=controller)
    assert controller.names() == ["one"]
    again.change(moved_to("one"))
    assert controller.names() == ["one"]
    again.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=0, directories=[Uuid((1).to_bytes(16))]))
    assert controller.names() == ["one", "one"]


@in_a_loop
async def test_a_choice_counts_more_than_where_the_cluster_has_it(tmp_path: Path) -> None:
    controller = Controller()
    broker = Broker(tmp_path, dirs=DIRS, assign=controller)
    broker.directories.choose(NAME, str(broker.paths["two"]))
    broker.change(*topic())
    fill(broker.replicas.partition("t", 0), 1)
    assert (only(broker, "two"), controller.names()) == ("t-0", ["two"])
    assert broker.directories.chosen(NAME) is None


# --- a process that is killed


def test_what_was_appended_is_there_after_kills_at_any_point_of_moves(tmp_path: Path) -> None:
    chance = random.Random(5)
    end = 0
    for number in range(KILLS):
        with subprocess.Popen(
            [sys.executable, "-m", "tests.replicas.moving_child", str(tmp_path), str(number)],
            stdout=subprocess.PIPE,
            cwd=Path(__file__).parents[2],
        ) as child:
            assert child.stdout is not None
            said = child.stdout.readline()  # it is up
            time.sleep(chance.random() * 0.4)
            child.kill()
            said += child.stdout.read()
        told = [int(line) for line in said.decode().splitlines(keepends=True) if line.endswith("\n")]
        assert told[-1] > end
        end = told[-1]
    broker = moving_child.start(tmp_path)
    found = all_values(broker)
    assert len(found) >= end
    assert found == [b"%d" % offset for offset in range(len(found))]
    names = [name for each in DIRS for name in broker.names(each) if not name.endswith(("-delete", "-future"))]
    assert names == ["t-0"]


@in_a_loop
async def test_a_damaged_cleaner_checkpoint_is_replaced_with_one_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    settings = {"cleanup.policy": ("compact",), "min.cleanable.dirty.ratio": 0.0}
    broker = start(tmp_path, settings=settings)
    path = broker.paths["one"] / CLEANER_OFFSET_CHECKPOINT
    path.write_bytes(b"\xff")
    config = server.load(None, {})
    cleaner = Cleaner(broker.replicas, lambda: config, lambda: 1_700_000_000_000)
    fill(broker.replicas.partition("t", 0), 40)
    for _ in range(2):
        await cleaner.clean_all()
    (line,) = [record.getMessage() for record in caplog.records if record.levelname == "WARNING"]
    fault = f"{path} is not a checkpoint file: it is not text"
    assert line == f"{fault}: compaction starts again at the beginning of each log"
    assert read_offset_checkpoint(path)[NAME] > 30
