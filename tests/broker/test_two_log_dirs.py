"""Nodes with two log dirs: replicas that are moved under load, and disks that fail."""

from __future__ import annotations

import asyncio
import resource
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import Record, build_batch, decode_records, iterate_batches
from barnabas.broker.node import Node
from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.replicas import moving
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from tests.command_line import Process

TIMEOUT_S = 30
LIMIT_BYTES = 1 << 20


# --- what is asked


async def create(connection: Connection, name: str, partitions: int) -> None:
    asked = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    response = await connection.call(CreateTopicsRequest(topics=[asked], timeout_ms=20_000), 7)
    assert response.topics[0].error_code == 0


async def produce(connection: Connection, name: str, index: int, *values: bytes) -> int:
    data = ProduceRequest.PartitionProduceData(
        index=index, records=build_batch([Record(0, int(time.time() * 1000), None, value) for value in values])
    )
    topic = ProduceRequest.TopicProduceData(name=name, partition_data=[data])
    response = await connection.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=[topic]), 9)
    code: int = response.responses[0].partition_responses[0].error_code
    return code


async def fetch(connection: Connection, name: str, index: int) -> list[bytes | None]:
    found: list[bytes | None] = []
    while True:
        part = FetchRequest.FetchPartition(partition=index, fetch_offset=len(found), partition_max_bytes=1 << 20)
        topic = FetchRequest.FetchTopic(topic=name, partitions=[part])
        response = await connection.call(FetchRequest(max_wait_ms=0, min_bytes=0, topics=[topic]), 11)
        row = response.responses[0].partitions[0]
        assert row.error_code == 0, row
        if not row.records:
            return found
        for position, header in iterate_batches(row.records):
            found += [record.value for record in decode_records(row.records, position, header)]


async def alter(connection: Connection, path: Path, name: str, index: int) -> int:
    topic = AlterReplicaLogDirsRequest.AlterReplicaLogDirTopic(name=name, partitions=[index])
    asked = AlterReplicaLogDirsRequest.AlterReplicaLogDir(path=str(path), topics=[topic])
    response = await connection.call(AlterReplicaLogDirsRequest(dirs=[asked]), 2)
    code: int = response.results[0].partitions[0].error_code
    return code


async def places(connection: Connection) -> dict[tuple[str, int], list[tuple[str, bool, int]]]:
    """Where each replica is: the name of the log dir, whether it is a future log, and its lag."""
    response = await connection.call(DescribeLogDirsRequest(topics=None), 4)
    found: dict[tuple[str, int], list[tuple[str, bool, int]]] = {}
    for row in response.results:
        for topic in row.topics:
            for each in topic.partitions:
                place = Path(row.log_dir).name, each.is_future_key, each.offset_lag
                found.setdefault((topic.name, each.partition_index), []).append(place)
    return found


async def leaders(connection: Connection, name: str) -> list[int]:
    asked = MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])
    topic = (await connection.call(asked, 8)).topics[0]
    return [each.leader_id for each in sorted(topic.partitions, key=lambda each: each.partition_index)]


# --- nodes


@asynccontextmanager
async def node_with(tmp_path: Path, **given: str) -> AsyncIterator[tuple[Node, Connection]]:
    settings = {
        "log.dirs": f"{tmp_path}/a,{tmp_path}/b",
        "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
        **given,
    }
    node = Node(server.load(None, settings))
    await node.start()
    connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
    try:
        yield node, connection
    finally:
        connection.close()
        await node.stop()


def assigned(node: Node, name: str) -> list[str]:
    """Where the controller has the replicas."""
    paths = {node.log_directories.id_of(path): Path(path).name for path in node.log_directories.paths}
    topic = node.image.topics.get(name)
    assert topic is not None
    return [paths.get(each.directory(1), "?") for each in topic.partitions]


async def until(check: Any) -> None:
    async with asyncio.timeout(TIMEOUT_S):
        while not check():
            await asyncio.sleep(0.01)


def test_the_controller_learns_where_new_replicas_are(tmp_path: Path) -> None:
    async def run() -> None:
        async with node_with(tmp_path) as (node, connection):
            await create(connection, "t", 6)
            await until(lambda: "?" not in assigned(node, "t"))
            found = await places(connection)
            assert [found["t", index][0][0] for index in range(6)] == assigned(node, "t")
            assert sorted(assigned(node, "t")) == ["a", "a", "a", "b", "b", "b"]

    asyncio.run(run())


def test_a_replica_is_moved_while_it_is_written_to_and_stays_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(moving, "SLICE_BYTES", 40_000)
    written: list[bytes] = []

    async def write(connection: Connection, count: int) -> None:
        values = [b"%d" % number * 100 for number in range(len(written), len(written) + count)]
        assert await produce(connection, "t", 0, *values) == 0
        written.extend(values)

    async def first() -> str:
        async with node_with(tmp_path) as (node, connection):
            await create(connection, "t", 1)
            for _ in range(20):
                await write(connection, 20)
            ((source, _, _),) = (await places(connection))["t", 0]
            target = "b" if source == "a" else "a"
            assert await alter(connection, tmp_path / target, "t", 0) == 0
            seen = (await places(connection))["t", 0]
            assert sorted(seen)[0 if target == "a" else 1][:2] == (target, True)
            while list(node.replicas.moves):
                await write(connection, 1)
            assert assigned(node, "t") == [target]
            assert (await places(connection))["t", 0] == [(target, False, 0)]
            await write(connection, 1)
            assert await fetch(connection, "t", 0) == written
            return target

    async def second(target: str) -> None:
        async with node_with(tmp_path) as (node, connection):
            assert assigned(node, "t") == [target]
            assert (await places(connection))["t", 0] == [(target, False, 0)]
            assert await fetch(connection, "t", 0) == written

    asyncio.run(second(asyncio.run(first())))


# --- processes


@contextmanager
def serving(tmp_path: Path) -> Iterator[tuple[Process, tuple[str, int]]]:
    """A process that cannot write files larger than a limit, as on a disk that is full."""
    ready = tmp_path / "ready"
    settings = [f"log.dirs={tmp_path}/a,{tmp_path}/b", "log.index.size.max.bytes=100000"]
    overrides = [part for each in settings for part in ("--override", each)]

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (LIMIT_BYTES, LIMIT_BYTES))

    with Process("serve", "--port", 0, "--ready-file", ready, *overrides, prepare=limit) as process:
        host, _, port = process.until_ready(ready)["bootstrap.servers"].rpartition(":")
        yield process, (host, int(port))


async def fill(connection: Connection, name: str, index: int) -> int:
    """Until it is refused; gives the error."""
    for _ in range(3 * LIMIT_BYTES // 100_000):
        code = await produce(connection, name, index, b"x" * 100_000)
        if code:
            return code
    raise AssertionError("there is no limit")


async def in_dirs(connection: Connection) -> tuple[int, int]:
    """A partition in the first log dir, and one in the second."""
    await create(connection, "t", 4)
    async with asyncio.timeout(TIMEOUT_S):
        while len(found := await places(connection)) < 4 or any(len(each) != 1 for each in found.values()):
            await asyncio.sleep(0.05)
    where = {index: place[0][0] for (_, index), place in found.items()}
    return next(i for i in range(4) if where[i] == "a"), next(i for i in range(4) if where[i] == "b")


def test_a_full_disk_takes_its_log_dir_offline_and_the_rest_goes_on(tmp_path: Path) -> None:
    async def run(address: tuple[str, int]) -> None:
        connection = await Connection.open(*address, "test")
        in_a, in_b = await in_dirs(connection)
        assert await produce(connection, "t", in_a, b"before") == 0
        assert await fill(connection, "t", in_b) == 56
        assert await produce(connection, "t", in_b, b"small") in (56, 6)
        rows = (await connection.call(DescribeLogDirsRequest(topics=None), 4)).results
        assert [row.error_code for row in rows] == [0, 56]
        async with asyncio.timeout(TIMEOUT_S):  # the controller hears of it with the next heartbeat
            while (await leaders(connection, "t"))[in_b] != -1:
                await asyncio.sleep(0.05)
        assert (await leaders(connection, "t"))[in_a] == 1
        assert await produce(connection, "t", in_a, b"after") == 0
        assert await fetch(connection, "t", in_a) == [b"before", b"after"]
        assert await alter(connection, tmp_path / "b", "t", in_a) == 56
        connection.close()

    with serving(tmp_path) as (process, address):
        asyncio.run(run(address))
        done = process.stop()
        assert done.exit_code == 0
        assert "File too large" in done.stderr and "Traceback" not in done.stderr
    assert (tmp_path / "a" / ".kafka_cleanshutdown").exists()
    assert not (tmp_path / "b" / ".kafka_cleanshutdown").exists()


def test_a_node_does_not_outlive_the_log_dir_of_its_metadata(tmp_path: Path) -> None:
    async def run(address: tuple[str, int]) -> None:
        connection = await Connection.open(*address, "test")
        in_a, _ = await in_dirs(connection)
        with pytest.raises(ConnectionError):
            while await fill(connection, "t", in_a):
                await asyncio.sleep(0.05)
        connection.close()

    with serving(tmp_path) as (process, address):
        asyncio.run(run(address))
        done = process.ended()
        assert done.exit_code == 1
        assert f"the log dir {tmp_path}/a has failed, and the metadata log is in it" in done.stderr
        assert "Traceback" not in done.stderr
