"""A node in surroundings that the test controls: its clocks, its randomness and its sockets are those that it is given."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

from barnabas.batches import decode_records, iterate_batches
from barnabas.broker.node import Node
from barnabas.broker.surroundings import Surroundings, listening_socket
from barnabas.client import Producer
from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.raft.stored_log import metadata_log_directory
from barnabas.storage.log_dirs import check_log_dirs
from barnabas.testing.records import committed_records
from barnabas.testing.settings import TEST_DEFAULTS
from barnabas.wire import Uuid, decode_record
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.join_group import JoinGroupRequest

BEGIN_MS = 1_234_567_890_123
HOUR_MS = 3_600_000
SETTINGS = {
    **TEST_DEFAULTS,
    "listeners": "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0",
    # Others would be told of ports that are different each time.
    "advertised.listeners": "PLAINTEXT://127.0.0.1:19092,CONTROLLER://127.0.0.1:19093",
}


class World:
    """Clocks that stand still until they are moved, and a stream of randomness for each purpose."""

    def __init__(self, seed: int) -> None:
        self.now_ms = BEGIN_MS
        self.sockets: list[socket.socket] = []
        self.purposes: list[str] = []
        self._seed = seed

    @property
    def surroundings(self) -> Surroundings:
        return Surroundings(
            now_ms=lambda: self.now_ms,
            monotonic_ms=lambda: self.now_ms - BEGIN_MS,
            monotonic_ns=lambda: (self.now_ms - BEGIN_MS) * 1_000_000,
            random_for=self._random_for,
            listen=self._listen,
            host_name=lambda: "a-host",
        )

    def _random_for(self, purpose: str) -> Random:
        self.purposes.append(purpose)
        return Random(f"{self._seed} {purpose}")

    def _listen(self, host: str, port: int) -> socket.socket:
        self.sockets.append(listening_socket(host, port))
        return self.sockets[-1]

    def run(
        self, directory: Path, scenario: Callable[[Node], Awaitable[Any]], settings: dict[str, str] = SETTINGS
    ) -> Any:
        async def main() -> Any:
            node = Node(server.load(None, {**settings, "log.dirs": str(directory)}), self.surroundings)
            try:
                await node.start()
                return await scenario(node)
            finally:
                await node.stop()

        return asyncio.run(main())


class Ids(NamedTuple):
    """What a node and its clients are given by chance."""

    cluster_id: str
    directory_id: Uuid | None
    topic_id: Uuid
    member_id: str


async def create(node: Node, name: str, **configs: str) -> Uuid:
    connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
    topic = CreateTopicsRequest.CreatableTopic(
        name=name,
        num_partitions=1,
        replication_factor=1,
        configs=[
            CreateTopicsRequest.CreatableTopicConfig(name=each.replace("_", "."), value=value)
            for each, value in configs.items()
        ],
    )
    response = await connection.call(CreateTopicsRequest(topics=[topic]), 7)
    connection.close()
    (row,) = response.topics
    assert row.error_code == 0
    return Uuid(row.topic_id)


async def chosen(node: Node) -> Ids:
    topic_id = await create(node, "t")
    await create(node, "__consumer_offsets")
    join = JoinGroupRequest(
        group_id="g",
        session_timeout_ms=10_000,
        rebalance_timeout_ms=10_000,
        protocol_type="consumer",
        protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name="range")],
    )
    connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
    await node.coordinators.wait_loaded()
    member_id = (await connection.call(join, 9)).member_id
    connection.close()
    (directory_id,) = (meta.directory_id for meta in check_log_dirs(map(Path, node.config.log_dirs)).formatted.values())
    return Ids(node.cluster_id, directory_id, topic_id, member_id)


def metadata_records(directory: Path) -> list[tuple[int, str]]:
    """The records of the metadata log with their times."""
    found: list[tuple[int, str]] = []
    for path in sorted(metadata_log_directory(directory).glob("*.log")):
        data = path.read_bytes()
        for position, header in iterate_batches(data):
            records = [] if header.is_control else decode_records(data, position, header)
            found += [(each.timestamp, repr(decode_record(each.value or b"").record)) for each in records]
    return found


def test_the_same_seed_and_clock_make_the_same_ids_and_the_same_metadata_log(tmp_path: Path) -> None:
    first, again, other = (World(seed).run(tmp_path / name, chosen) for name, seed in (("a", 1), ("b", 1), ("c", 2)))
    assert first == again
    assert all(one != two for one, two in zip(first, other, strict=True))
    written = metadata_records(tmp_path / "a")
    assert written == metadata_records(tmp_path / "b")
    assert {timestamp for timestamp, _ in written} == {BEGIN_MS}
    assert any(str(first.topic_id) in text for _, text in written)


def test_records_are_stamped_with_the_clock_of_the_node(tmp_path: Path) -> None:
    world = World(1)

    async def append(node: Node) -> list[int]:
        await create(node, "t", message_timestamp_type="LogAppendTime")
        host, port = node.addresses["PLAINTEXT"]
        partition = node.replicas.partition("t", 0)
        async with Producer({"bootstrap.servers": f"{host}:{port}"}) as producer:
            await producer.send_and_wait("t", b"a")
            world.now_ms += HOUR_MS
            await producer.send_and_wait("t", b"b")
        return [record.timestamp_ms for record in committed_records(partition)]

    settings = {name: value for name, value in SETTINGS.items() if name != "advertised.listeners"}
    assert world.run(tmp_path / "data", append, settings) == [BEGIN_MS, BEGIN_MS + HOUR_MS]


def test_a_node_listens_on_the_sockets_that_it_is_given_and_advertises_the_host_that_it_is_told(tmp_path: Path) -> None:
    world = World(1)

    async def look(node: Node) -> list[tuple[str, int]]:
        assert [sock.getsockname()[:2] for sock in world.sockets] == list(node.addresses.values())
        return [(each.host, each.port) for each in node.image.brokers[node.config.node_id].listeners.values()]

    settings = {**TEST_DEFAULTS, "listeners": "PLAINTEXT://:0,CONTROLLER://127.0.0.1:0"}
    advertised = world.run(tmp_path / "data", look, settings)
    assert [host for host, _ in advertised] == ["a-host"]
    assert all(sock.fileno() == -1 for sock in world.sockets)


def test_each_purpose_has_a_source_of_randomness_of_its_own(tmp_path: Path) -> None:
    world = World(1)
    world.run(tmp_path / "data", chosen)
    assert len(world.purposes) == len(set(world.purposes)) > 3
