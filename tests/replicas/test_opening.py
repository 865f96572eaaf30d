"""Logs are opened in threads: who waits for one log does not make others wait, and deletions meanwhile leave no files."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.replicas.partition import Partition
from barnabas.storage import Log
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.records.metadata import PartitionChangeRecord, RemoveTopicRecord
from tests.replicas.test_replicas import OTHER, TOPIC, Broker, append, topic, values


class Gate:
    """Holds the threads that open logs, from `Log.open` on, until it is lifted."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, name: str) -> None:
        self.reached, self.lifted = threading.Event(), threading.Event()
        real: Callable[..., Log] = Log.open

        def held(directory: Path, *arguments: Any, **more: Any) -> Log:
            if directory.name == name:
                self.reached.set()
                assert self.lifted.wait(20)
            return real(directory, *arguments, **more)

        monkeypatch.setattr(Log, "open", held)

    async def wait(self) -> None:
        assert await asyncio.to_thread(self.reached.wait, 20)


def code_of(partition: Partition) -> ErrorCode:
    with pytest.raises(KafkaError) as error:
        _ = partition.log
    return error.value.code


def test_a_log_that_takes_long_delays_only_those_who_need_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broker = Broker(tmp_path, *topic(partitions=2))
    slow, fast = broker.replicas
    gate = Gate(monkeypatch, "t-0")

    async def scenario() -> None:
        waiting = [asyncio.ensure_future(slow.open()) for _ in range(3)]
        await gate.wait()
        assert code_of(slow) is ErrorCode.NOT_LEADER_OR_FOLLOWER  # not opened a second time
        await asyncio.wait_for(fast.open(), 20)
        append(fast, b"x")
        assert not any(each.done() for each in waiting)
        waiting[0].cancel()  # a client that disconnects does not end the wait of the others
        gate.lifted.set()
        await asyncio.gather(*waiting[1:])
        append(slow, b"y")
        assert values(slow) == [b"y"]
        await broker.replicas.stop()

    asyncio.run(scenario())


def test_a_topic_that_is_deleted_and_created_while_its_log_is_opened(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(tmp_path, *topic())
    (old,) = broker.replicas
    gate = Gate(monkeypatch, "t-0")

    async def scenario() -> None:
        waiting = asyncio.ensure_future(old.open())
        await gate.wait()
        broker.change(RemoveTopicRecord(topic_id=TOPIC))
        broker.change(*topic("t", OTHER))
        (new,) = broker.replicas
        assert new is not old
        opened = asyncio.ensure_future(new.open())
        await asyncio.sleep(0.01)
        assert not opened.done()  # the directory is in the hands of the first thread
        gate.lifted.set()
        await asyncio.gather(waiting, opened)
        assert code_of(old) is ErrorCode.KAFKA_STORAGE_ERROR
        append(new, b"x")
        assert values(new) == [b"x"]
        await broker.replicas.stop()

    asyncio.run(scenario())
    assert [name.split(".")[0] for name in broker.names()] == ["t-0", "t-0"]
    assert sum(name.endswith("-delete") for name in broker.names()) == 1


def test_nothing_waits_for_the_disk_on_the_event_loop_when_partitions_get_a_leader(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    broker = Broker(tmp_path, *topic(partitions=20))
    for partition in broker.replicas:
        append(partition, b"x")
    flushed: list[int] = []
    real = os.fsync

    def noted(descriptor: int) -> None:
        flushed.append(threading.get_ident())
        real(descriptor)

    monkeypatch.setattr(os, "fsync", noted)

    async def scenario() -> None:
        for number in range(20):
            broker.change(PartitionChangeRecord(topic_id=TOPIC, partition_id=number, leader=1))
        assert all(partition.log.epochs.latest_epoch == 4 for partition in broker.replicas)
        async with asyncio.timeout(20):
            while len(flushed) < 20:
                await asyncio.sleep(0.01)
        assert threading.get_ident() not in flushed
        await broker.replicas.stop()

    asyncio.run(scenario())
    for number in range(20):
        text = (tmp_path / "one" / f"t-{number}" / "leader-epoch-checkpoint").read_text()
        assert text.split("\n")[2:4] == ["3 0", "4 1"]
