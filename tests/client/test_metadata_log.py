"""The live metadata log: read whole, from a snapshot, from an offset, and while it grows."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import ControlType, Record, build_batch, build_control_batch
from barnabas.broker.node import Node
from barnabas.client import Cluster, UnsupportedByNodeError
from barnabas.client.metadata_log import (
    METADATA_TOPIC_ID,
    LogBatch,
    LogPart,
    LogSnapshot,
    decode_batches,
    read_metadata_log,
)
from barnabas.config import server
from barnabas.wire import ErrorCode, KafkaError, Message, decode_record
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.describe_cluster import DescribeClusterResponse
from barnabas.wire.messages.describe_quorum import DescribeQuorumResponse
from barnabas.wire.messages.fetch import FetchResponse
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotResponse
from barnabas.wire.records.metadata import TopicRecord
from tests.client.peers import Asked, peer, ranges, read_request

SMALL = {"metadata.log.max.record.bytes.between.snapshots": "2000", "metadata.max.retention.bytes": "6000"}


def with_node(directory: Path, scenario: Callable[[Node], Coroutine[Any, Any, None]], **settings: str) -> None:
    async def main() -> None:
        listeners = "PLAINTEXT://127.0.0.1:0,CONTROLLER://127.0.0.1:0"
        node = Node(server.load(None, {"log.dirs": str(directory), "listeners": listeners, **settings}))
        await node.start()
        try:
            await scenario(node)
        finally:
            await node.stop()

    asyncio.run(main())


def controllers(node: Node) -> Cluster:
    host, port = node.addresses["CONTROLLER"]
    return Cluster({"bootstrap.controllers": f"{host}:{port}"})


async def create(node: Node, *names: str) -> None:
    host, port = node.addresses["PLAINTEXT"]
    topics = [CreateTopicsRequest.CreatableTopic(name=n, num_partitions=3, replication_factor=1) for n in names]
    async with Cluster({"bootstrap.servers": f"{host}:{port}"}) as cluster:
        for topic in topics:
            await cluster.call(CreateTopicsRequest(topics=[topic]))


def topics_in(parts: list[LogPart]) -> list[str]:
    batches = [batch for part in parts for batch in (part.batches if isinstance(part, LogSnapshot) else [part])]
    values = [record.value or b"" for batch in batches if not batch.is_control for record in batch.records]
    records = [decode_record(value).record for value in values]
    return [record.name for record in records if isinstance(record, TopicRecord)]


def test_a_log_that_begins_at_zero_is_read_batch_by_batch(tmp_path: Path) -> None:
    async def read(node: Node) -> None:
        await create(node, "a", "b")
        async with controllers(node) as cluster:
            parts = [part async for part in read_metadata_log(cluster)]
            small = [part async for part in read_metadata_log(cluster, max_bytes=100)]
        batches = [part for part in parts if isinstance(part, LogBatch)]
        assert batches == parts
        assert batches[0].base_offset == 0
        assert topics_in(parts) == ["a", "b"]
        assert small[: len(parts)] == parts, "however few bytes are asked for, every batch comes once"

    with_node(tmp_path, read)


def test_a_log_that_was_cut_begins_with_a_snapshot(tmp_path: Path) -> None:
    names = [f"t{number:02d}" for number in range(40)]

    async def read(node: Node) -> None:
        await create(node, *names)
        await asyncio.sleep(0.1)
        async with controllers(node) as cluster:
            parts = [part async for part in read_metadata_log(cluster, max_bytes=500)]
            last = parts[-1]
            assert isinstance(last, LogBatch)
            end = last.last_offset + 1
            rest = [part async for part in read_metadata_log(cluster, end - 1)]
        assert isinstance(parts[0], LogSnapshot)
        assert parts[0].end_offset > 100
        assert sorted(topics_in(parts)) == names
        assert isinstance(rest[0], LogBatch)
        assert rest[0].base_offset <= end - 1 <= rest[0].last_offset

    with_node(tmp_path, read, **SMALL)


def test_an_offset_beyond_the_end_is_out_of_range(tmp_path: Path) -> None:
    async def read(node: Node) -> None:
        async with controllers(node) as cluster:
            with pytest.raises(KafkaError) as refused:
                [part async for part in read_metadata_log(cluster, 10_000)]
        assert refused.value.code is ErrorCode.OFFSET_OUT_OF_RANGE

    with_node(tmp_path, read)


def test_what_is_followed_comes_when_it_is_written(tmp_path: Path) -> None:
    async def read(node: Node) -> None:
        seen: list[LogPart] = []

        async def follow(cluster: Cluster) -> None:
            async for part in read_metadata_log(cluster, follow=True):
                seen.append(part)
                if "later" in topics_in([part]):
                    return

        async with controllers(node) as cluster, asyncio.timeout(20):
            task = asyncio.create_task(follow(cluster))
            await asyncio.sleep(0.2)
            assert not task.done()
            await create(node, "later")
            await task
        offsets = [part.base_offset for part in seen if isinstance(part, LogBatch)]
        assert offsets == sorted(set(offsets))

    with_node(tmp_path, read)


def test_brokers_do_not_hand_it_out(tmp_path: Path) -> None:
    async def read(node: Node) -> None:
        host, port = node.addresses["PLAINTEXT"]
        async with Cluster({"bootstrap.servers": f"{host}:{port}"}) as cluster:
            with pytest.raises(UnsupportedByNodeError, match=r"bootstrap\.controllers"):
                [part async for part in read_metadata_log(cluster)]

    with_node(tmp_path, read)


def test_damaged_bytes_are_corrupt() -> None:
    data = bytearray(build_batch([Record(0, 1, None, b"value")], base_offset=0, partition_leader_epoch=0))
    data[-1] ^= 1
    with pytest.raises(KafkaError, match="CORRUPT_MESSAGE"):
        list(decode_batches(bytes(data)))


# --- a scripted controller


def a_batch(base_offset: int, epoch: int) -> bytes:
    return bytes(build_batch([Record(0, 1, None, b"v")], base_offset=base_offset, partition_leader_epoch=epoch))


def a_control_batch() -> bytes:
    head = [(ControlType.SNAPSHOT_HEADER, bytes(11))]
    return bytes(build_control_batch(head, timestamp=1, base_offset=0, partition_leader_epoch=1))


def fetched(error: ErrorCode = ErrorCode.NONE, data: bytes = b"", **fields: Any) -> FetchResponse:
    row = FetchResponse.PartitionData(error_code=error, high_watermark=2, records=data, **fields)
    return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic_id=METADATA_TOPIC_ID, partitions=[row])])


def read_scripted(answer: Callable[[Asked], Message], **how: Any) -> list[LogPart]:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            if asked.name == "ApiVersions":
                served = {
                    "DescribeCluster": (0, 2),
                    "DescribeQuorum": (0, 2),
                    "Fetch": (4, 17),
                    "FetchSnapshot": (0, 1),
                }
                response: Message = ranges(**served)
            elif asked.name == "DescribeCluster":
                port = writer.get_extra_info("sockname")[1]
                node = DescribeClusterResponse.DescribeClusterBroker(broker_id=1, host="127.0.0.1", port=port)
                response = DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=[node], endpoint_type=2)
            else:
                response = answer(asked)
            writer.write(asked.answer(response))

    async def main() -> list[LogPart]:
        async with peer(script) as port, Cluster({"bootstrap.controllers": f"127.0.0.1:{port}"}) as cluster:
            return [part async for part in read_metadata_log(cluster, **how)]

    return asyncio.run(main())


def quorum_in(epoch: int) -> DescribeQuorumResponse:
    row = DescribeQuorumResponse.PartitionData(leader_id=1, leader_epoch=epoch, high_watermark=2)
    topic = DescribeQuorumResponse.TopicData(topic_name="__cluster_metadata", partitions=[row])
    return DescribeQuorumResponse(topics=[topic])


def test_a_new_epoch_is_learnt_and_reading_goes_on() -> None:
    epochs: list[int] = []

    def answer(asked: Asked) -> Message:
        if asked.name == "DescribeQuorum":
            return quorum_in(4 if epochs else 3)
        partition = asked.request.topics[0].partitions[0]
        epochs.append(partition.current_leader_epoch)
        if partition.fetch_offset == 0:
            return fetched(data=a_batch(0, 3))
        assert partition.last_fetched_epoch == 3
        if partition.current_leader_epoch == 3:
            return fetched(ErrorCode.FENCED_LEADER_EPOCH)
        return fetched(data=a_batch(1, 4) + a_batch(2, 4))

    parts = read_scripted(answer)
    assert epochs == [3, 3, 4]
    assert [part.base_offset for part in parts if isinstance(part, LogBatch)] == [0, 1], "offset 2 is not committed"


def test_a_snapshot_that_is_gone_is_asked_for_anew() -> None:
    header = a_control_batch()
    asked_for: list[int] = []

    def answer(asked: Asked) -> Message:
        if asked.name == "DescribeQuorum":
            return quorum_in(3)
        if asked.name == "Fetch":
            if asked.request.topics[0].partitions[0].fetch_offset:
                return fetched(data=b"")
            return fetched(snapshot_id=FetchResponse.SnapshotId(end_offset=2, epoch=1))
        row = asked.request.topics[0].partitions[0]
        asked_for.append(row.position)
        is_gone = len(asked_for) == 1
        piece = b"" if is_gone else header[row.position : row.position + 40]
        found = FetchSnapshotResponse.PartitionSnapshot(
            error_code=ErrorCode.SNAPSHOT_NOT_FOUND if is_gone else 0, size=len(header), unaligned_records=piece
        )
        topic = FetchSnapshotResponse.TopicSnapshot(name="__cluster_metadata", partitions=[found])
        return FetchSnapshotResponse(topics=[topic])

    (snapshot,) = read_scripted(answer)
    assert isinstance(snapshot, LogSnapshot)
    assert (snapshot.end_offset, snapshot.epoch, len(snapshot.batches)) == (2, 1, 1)
    assert asked_for == [0, 0, 40, 80]


def test_an_error_that_stays_is_raised() -> None:
    def answer(asked: Asked) -> Message:
        return quorum_in(3) if asked.name == "DescribeQuorum" else fetched(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)

    with pytest.raises(KafkaError, match="CLUSTER_AUTHORIZATION_FAILED"):
        read_scripted(answer)
