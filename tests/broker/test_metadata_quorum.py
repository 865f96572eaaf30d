"""A node's metadata log on a real disk: snapshots, what they let go of, and reading it by Fetch."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from barnabas import slices, wire
from barnabas.batches import decode_records, iterate_batches
from barnabas.broker.metadata_quorum import MetadataQuorum
from barnabas.broker.node import Node
from barnabas.broker.surroundings import REAL_WORLD
from barnabas.client.connection import Connection
from barnabas.config import server
from barnabas.metadata import loader
from barnabas.metadata.image import Draft
from barnabas.metadata.replay import apply
from barnabas.raft.driver import CommittedBatch
from barnabas.raft.ready import RaftConfig
from barnabas.raft.stored_log import METADATA_TOPIC_ID, metadata_log_directory
from barnabas.steps import ROWS_PER_STEP
from barnabas.storage.snapshots import list_snapshots
from barnabas.testing import AsyncCluster
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.records.metadata import (
    BeginTransactionRecord,
    EndTransactionRecord,
    FeatureLevelRecord,
    NoOpRecord,
    TopicRecord,
)

TOPIC = Uuid(b"t" * 16)
LISTENERS = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"


def with_node(directory: Path, scenario: Callable[[Node], Awaitable[None]], **settings: str) -> None:
    async def main() -> None:
        overrides = {name.replace("_", "."): value for name, value in settings.items()}
        node = Node(server.load(None, {"log.dirs": str(directory), "listeners": LISTENERS, **overrides}))
        await node.start()
        try:
            await scenario(node)
        finally:
            await node.stop()

    asyncio.run(main())


async def create(node: Node, *names: str) -> None:
    connection = await Connection.open(*node.addresses["PLAINTEXT"], "test")
    topics = [CreateTopicsRequest.CreatableTopic(name=n, num_partitions=3, replication_factor=1) for n in names]
    response = await connection.call(CreateTopicsRequest(topics=topics), 7)
    assert [row.error_code for row in response.topics] == [0] * len(names)
    connection.close()


def test_snapshots_are_written_by_size_old_ones_go_and_a_restart_has_everything(tmp_path: Path) -> None:
    settings = {"metadata_log_max_record_bytes_between_snapshots": "2000", "metadata_max_retention_bytes": "6000"}
    names = [f"t{index:03d}" for index in range(60)]

    async def fill(node: Node) -> None:
        for name in names:
            await create(node, name)
        await asyncio.sleep(0.1)

    async def look(node: Node) -> None:
        assert node.image.topics.names == tuple(names)
        assert all(len(topic.partitions) == 3 for topic in node.image.topics.by_id.values())

    with_node(tmp_path, fill, **settings)
    snapshots = list_snapshots(metadata_log_directory(tmp_path))
    assert snapshots[0].end_offset > 0, "the first ones are gone"
    with_node(tmp_path, look, **settings)


def test_a_snapshot_is_written_by_time_when_nothing_happens_any_more(tmp_path: Path) -> None:
    async def wait(node: Node) -> None:
        await create(node, "a")
        async with asyncio.timeout(30):
            while len(list_snapshots(metadata_log_directory(tmp_path))) < 2:
                await asyncio.sleep(0.05)

    with_node(tmp_path, wait, metadata_log_max_snapshot_interval_ms="200")


def test_whoever_asks_reads_the_metadata_log_on_the_controllers_listener(tmp_path: Path) -> None:
    async def read(node: Node) -> None:
        await create(node, "read-me")
        connection = await Connection.open(*node.addresses["CONTROLLER"], "observer")
        topic = DescribeQuorumRequest.TopicData(
            topic_name="__cluster_metadata", partitions=[DescribeQuorumRequest.PartitionData()]
        )
        quorum = (await connection.call(DescribeQuorumRequest(topics=[topic]), 2)).topics[0].partitions[0]
        wanted = FetchRequest.FetchPartition(
            partition=0, current_leader_epoch=quorum.leader_epoch, last_fetched_epoch=0, partition_max_bytes=1 << 20
        )
        topics = [FetchRequest.FetchTopic(topic_id=METADATA_TOPIC_ID, partitions=[wanted])]
        answer: FetchResponse = await connection.call(FetchRequest(max_wait_ms=100, topics=topics), 17)
        data = answer.responses[0].partitions[0]
        assert (data.error_code, data.high_watermark) == (0, quorum.high_watermark)
        assert data.records is not None
        found = [
            wire.decode_record(record.value or b"").record
            for position, header in iterate_batches(data.records)
            if not header.is_control
            for record in decode_records(data.records, position, header)
        ]
        assert [record.name for record in found if isinstance(record, TopicRecord)] == ["read-me"]
        assert [voter.replica_id for voter in quorum.current_voters] == [1]
        assert quorum.observers == []
        connection.close()

    with_node(tmp_path, read)


def test_a_transaction_stays_open_when_an_election_is_lost_before_everything_was_read(tmp_path: Path) -> None:
    async def test() -> None:
        config = server.load(None, {"log.dirs": str(tmp_path), "listeners": LISTENERS})
        raft = RaftConfig(1, Uuid(b"d" * 16), "c", "CONTROLLER")
        quorum = MetadataQuorum(config, raft, tmp_path, surroundings=REAL_WORLD, on_failure=lambda error: None)
        records = [FeatureLevelRecord(name="metadata.version", feature_level=25), NoOpRecord()]
        quorum.committed(CommittedBatch(0, 1, 1, 1, records))
        quorum.committed(CommittedBatch(2, 3, 1, 1, [BeginTransactionRecord(), TopicRecord(name="t", topic_id=TOPIC)]))
        await quorum.follow()
        assert (quorum.image.offset, quorum.has_open_transaction) == (1, True)
        quorum.leadership_lost(2)  # of which it was not told that it had been gained
        quorum.committed(CommittedBatch(4, 4, 3, 1, [EndTransactionRecord()]))
        await quorum.follow()
        assert (quorum.image.offset, quorum.image.topics.names) == (4, ("t",))
        await quorum.drop()

    asyncio.run(test())


def test_a_large_change_is_followed_in_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """A broker that is not the controller applies it while it serves clients."""
    most, count = 0, 0

    def counting(draft: Draft, record: Message) -> None:
        nonlocal count
        count += 1
        apply(draft, record)

    async def count_turns() -> None:
        nonlocal most, count
        while True:
            count = 0
            await asyncio.sleep(0)
            most = max(most, count)

    async def main() -> None:
        async with AsyncCluster(1, controllers=1) as cluster:
            broker = cluster.nodes[1]
            monkeypatch.setattr(loader, "apply", counting)
            monkeypatch.setattr(slices, "TURN_S", 0.0)
            counting_turns = asyncio.create_task(count_turns())
            topics = [
                CreateTopicsRequest.CreatableTopic(name=f"t{index}", num_partitions=100, replication_factor=1)
                for index in range(40)
            ]
            response = await broker.channel.call(CreateTopicsRequest(topics=topics, timeout_ms=30_000), 7)
            assert {row.error_code for row in response.topics} == {0}
            async with asyncio.timeout(30):
                while len(broker.image.topics.names) < len(topics):
                    await asyncio.sleep(0.01)
            counting_turns.cancel()
            assert 0 < most <= 2 * ROWS_PER_STEP, most

    asyncio.run(main())
