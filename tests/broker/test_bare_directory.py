"""A directory with the least that a node of a static quorum leaves behind: settings, meta.properties, logs of one segment.

No indexes, no quorum-state, no snapshots, no checkpoints: a node starts on it, and what is missing is made again.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tools.apache_kafka import free_ports

from barnabas import wire
from barnabas.batches import Record, batch_crc, build_batch, check_crc, decode_header, decode_records
from barnabas.batches.format import CRC_POSITION, HEADER_SIZE
from barnabas.broker.node import Node
from barnabas.config import server
from barnabas.wire import Message, Uuid, encode_record
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.records.metadata import FeatureLevelRecord, PartitionRecord, TopicRecord
from tests.broker.clients import ask
from tests.command_line import Process

CLUSTER_ID = "IAAAAAAAQACAAAAAAAAAAA"
DIRECTORY_ID = Uuid.parse("EAAAAAAAQACAAAAAAAAAAA")
TOPICS = {
    "foo": (Uuid(bytes([0xFB, 0xEF, *range(14)])), 2),
    "bar-baz": (Uuid(bytes([0xFF, 0xFF, *range(14)])), 1),
}
TIMESTAMP = 1_726_045_943_832


class Bare(NamedTuple):
    directory: Path
    properties: Path
    ports: tuple[int, int]


def batch(records: Sequence[tuple[Message, int]], base_offset: int) -> bytes:
    values = [Record(0, TIMESTAMP, None, encode_record(record, version)) for record, version in records]
    return build_batch(values, base_offset=base_offset, partition_leader_epoch=1)


def with_repeated_deltas(data: bytes) -> bytes:
    """The same batch, but every record says that it is the first."""
    changed = bytearray(data)
    position = HEADER_SIZE
    while position < len(changed):
        size = shift = 0
        while True:
            byte = changed[position]
            size |= (byte & 127) << shift
            position, shift = position + 1, shift + 7
            if byte < 128:
                break
        changed[position + 2] = 0  # after the attributes and a timestamp delta of one byte
        position += size >> 1
    struct.pack_into(">I", changed, CRC_POSITION, batch_crc(bytes(changed), len(changed)))
    return bytes(changed)


def topic_records(name: str, version: int) -> list[tuple[Message, int]]:
    topic_id, partitions = TOPICS[name]
    rows: list[tuple[Message, int]] = [(TopicRecord(name=name, topic_id=topic_id), 0)]
    for partition_id in range(partitions):
        record = PartitionRecord(
            partition_id=partition_id,
            topic_id=topic_id,
            replicas=[1],
            isr=[1],
            leader=1,
            leader_epoch=0,
            partition_epoch=0,
            directories=[DIRECTORY_ID] if version else [],
        )
        rows.append((record, version))
    return rows


def plain_log(level: int, partition_version: int) -> bytes:
    feature = FeatureLevelRecord(name="metadata.version", feature_level=level)
    foo, bar = topic_records("foo", partition_version), topic_records("bar-baz", partition_version)
    return batch([(feature, 0)], 0) + batch(foo, 1) + batch(bar, 1 + len(foo))


def log_from_one() -> bytes:
    feature = FeatureLevelRecord(name="metadata.version", feature_level=20)
    return batch([(feature, 0)], 1) + batch(topic_records("foo", 1), 2) + batch(topic_records("bar-baz", 1), 5)


def log_with_gaps() -> bytes:
    feature = FeatureLevelRecord(name="metadata.version", feature_level=20)
    return batch([(feature, 0)], 4) + batch(topic_records("foo", 1), 10) + batch(topic_records("bar-baz", 1), 90)


def log_with_repeated_deltas() -> bytes:
    feature = FeatureLevelRecord(name="metadata.version", feature_level=20)
    parts = batch(topic_records("foo", 1), 2), batch(topic_records("bar-baz", 1), 5)
    return batch([(feature, 0)], 1) + b"".join(map(with_repeated_deltas, parts))


LOGS: dict[str, Callable[[], bytes]] = {
    "metadata.version 3.7-IV4": lambda: plain_log(19, 1),
    "metadata.version 3.3-IV3": lambda: plain_log(7, 0),
    "beginning above zero": log_from_one,
    "with gaps": log_with_gaps,
    "with repeated deltas": log_with_repeated_deltas,
    "with a torn tail": lambda: plain_log(20, 1) + batch(topic_records("foo", 1), 6)[:40],
}
IDS: dict[str, Callable[[Uuid], str]] = {
    "as Kafka writes it": str,
    "padded": lambda topic_id: f"{topic_id}==",
    "in the other alphabet": lambda topic_id: str(topic_id).replace("-", "+").replace("_", "/"),
}


def make(tmp_path: Path, log: bytes, id_text: Callable[[Uuid], str] = str) -> Bare:
    directory = tmp_path / "kraft-combined-logs"
    metadata = directory / "__cluster_metadata-0"
    metadata.mkdir(parents=True)
    (directory / "meta.properties").write_text(
        f"#\n#Wed Sep 11 09:12:23 UTC 2024\ncluster.id={CLUSTER_ID}\ndirectory.id={DIRECTORY_ID}\nnode.id=1\nversion=1\n"
    )
    (metadata / f"{0:020d}.log").write_bytes(log)
    for name, (topic_id, partitions) in TOPICS.items():
        for partition_id in range(partitions):
            place = directory / f"{name}-{partition_id}"
            place.mkdir()
            record = Record(0, TIMESTAMP, None, b"Hello World!")
            (place / f"{0:020d}.log").write_bytes(build_batch([record], partition_leader_epoch=0))
            (place / "partition.metadata").write_text(f"version: 0\ntopic_id: {id_text(topic_id)}")
    broker, controller = free_ports(2)
    properties = tmp_path / "server.properties"
    properties.write_text(
        "\n".join(
            [
                "process.roles=broker,controller",
                "node.id=1",
                f"controller.quorum.voters=1@localhost:{controller}",
                f"listeners=PLAINTEXT://:{broker},CONTROLLER://:{controller}",
                "inter.broker.listener.name=PLAINTEXT",
                f"advertised.listeners=PLAINTEXT://localhost:{broker}",
                "controller.listener.names=CONTROLLER",
                f"log.dirs={directory}",
            ]
        )
    )
    return Bare(directory, properties, (broker, controller))


async def started(bare: Bare) -> Node:
    node = Node(server.load(bare.properties.read_text()))
    try:
        async with asyncio.timeout(60):
            await node.start()
    except BaseException:
        await node.stop()
        raise
    return node


async def described(bare: Bare) -> tuple[Any, Any]:
    address = ("127.0.0.1", bare.ports[0])
    wanted = [DescribeTopicPartitionsRequest.TopicRequest(name=name) for name in [*TOPICS, "unknown"]]
    topics = await ask(address, DescribeTopicPartitionsRequest(topics=wanted), 0)
    return topics, await ask(address, MetadataRequest(topics=None), 12)


def check(bare: Bare, topics: Any, metadata: Any, more: Sequence[str] = ()) -> None:
    rows = {topic.name: topic for topic in topics.topics}
    assert rows["unknown"].error_code == 3
    for name, (topic_id, partitions) in TOPICS.items():
        assert (rows[name].error_code, rows[name].topic_id) == (0, topic_id)
        found = [(p.partition_index, p.error_code, p.replica_nodes, p.isr_nodes) for p in rows[name].partitions]
        assert found == [(i, 0, [1], [1]) for i in range(partitions)]
        assert {p.leader_id for p in rows[name].partitions} == {1}
    assert metadata.cluster_id == CLUSTER_ID
    assert [(b.node_id, b.host, b.port) for b in metadata.brokers] == [(1, "localhost", bare.ports[0])]
    assert [topic.name for topic in metadata.topics] == sorted([*TOPICS, *more])


@pytest.mark.parametrize("case", LOGS)
def test_a_node_starts_on_a_bare_directory_and_starts_again(case: str, tmp_path: Path) -> None:
    bare = make(tmp_path, LOGS[case]())

    async def run(name: str, more: list[str]) -> None:
        node = await started(bare)
        try:
            check(bare, *await described(bare), more)
            topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
            request = CreateTopicsRequest(topics=[topic], timeout_ms=20_000)
            created = await ask(("127.0.0.1", bare.ports[0]), request, 7)
            assert created.topics[0].error_code == 0, created
        finally:
            await node.stop()

    asyncio.run(run("new-one", []))
    made = {path.name for path in (bare.directory / "__cluster_metadata-0").iterdir()}
    assert {f"{0:020d}.index", f"{0:020d}.timeindex", "quorum-state", "leader-epoch-checkpoint"} <= made
    asyncio.run(run("new-two", ["new-one"]))


@pytest.mark.parametrize("form", IDS)
def test_topic_ids_of_partitions_are_read_in_every_form(form: str, tmp_path: Path) -> None:
    bare = make(tmp_path, plain_log(20, 1), IDS[form])

    async def run() -> None:
        node = await started(bare)
        try:
            check(bare, *await described(bare))
        finally:
            await node.stop()

    asyncio.run(run())


def test_the_command_starts_on_a_bare_directory(tmp_path: Path) -> None:
    bare = make(tmp_path, log_from_one())
    with Process("serve", bare.properties) as process:
        process.until("reach it with bootstrap.servers=")
        check(bare, *asyncio.run(described(bare)))
        assert process.stop().exit_code == 0


def test_what_is_written_to_a_log_with_gaps_follows_its_end(tmp_path: Path) -> None:
    bare = make(tmp_path, log_with_gaps())

    async def run() -> int:
        node = await started(bare)
        try:
            return node.image.offset
        finally:
            await node.stop()

    assert asyncio.run(run()) > 91


def test_the_helpers_make_what_they_say() -> None:
    repeated = with_repeated_deltas(batch(topic_records("foo", 1), 2))
    check_crc(decode_header(repeated), repeated)
    assert [record.offset for record in decode_records(repeated)] == [2, 2, 2]
    assert wire.decode_record(decode_records(repeated)[0].value or b"").record == topic_records("foo", 1)[0][0]
