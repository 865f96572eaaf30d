"""Periodic work over very many partitions: it pauses at each of them, and removes only a few segments at a time."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from barnabas.config import server
from barnabas.replicas import maintenance as maintenance_module
from barnabas.replicas.maintenance import Maintenance
from barnabas.replicas.partition import Partition
from barnabas.slices import Slices
from tests.counting import counted
from tests.replicas.test_replicas import Broker, append, topic

PARTITIONS = 50
NOW_MS = 1_700_000_000_000


def maintenance_of(broker: Broker) -> Maintenance:
    config = server.load(None, {"log.dirs": ",".join(map(str, broker.paths.values()))})
    return Maintenance(broker.replicas, lambda: config, lambda: NOW_MS)


def test_work_over_all_partitions_pauses_at_each(tmp_path: Path) -> None:
    broker = Broker(tmp_path, *topic(partitions=PARTITIONS))
    maintenance = maintenance_of(broker)

    def nothing(partition: Partition) -> Slices[None]:
        yield from ()

    assert counted(maintenance._each_log(nothing))[1] >= PARTITIONS
    assert counted(maintenance._flush_due())[1] >= PARTITIONS
    assert counted(maintenance.cleaner._forget_deleted())[1] >= PARTITIONS
    path, checkpoints = next(iter(broker.replicas._checkpoints.items()))
    assert counted(broker.replicas._take_checkpoints(path, checkpoints))[1] >= PARTITIONS


def test_retention_of_one_log_pauses_after_a_few_segments(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(maintenance_module, "SEGMENTS_AT_ONCE", 2)
    removed: list[int] = []

    async def scenario() -> None:
        broker = Broker(tmp_path, *topic(), settings={"retention.ms": 1, "file.delete.delay.ms": 0})
        maintenance = maintenance_of(broker)
        partition = broker.replicas.partition("t", 0)
        log = partition.log
        for _ in range(7):
            append(partition, b"x")
            log.roll()
        real = log.delete_by_retention

        def noted(*arguments: int) -> object:
            found = real(*arguments)
            removed.append(found.segments)
            return found

        monkeypatch.setattr(type(log), "delete_by_retention", lambda self, *arguments: noted(*arguments))
        await maintenance._delete_by_retention()
        assert len(log.segments) == 1
        await maintenance._delete_files()
        assert not list(log.directory.glob("*.deleted"))
        await broker.replicas.stop()

    asyncio.run(scenario())
    assert removed == [2, 2, 2, 1]
