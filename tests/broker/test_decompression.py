"""The limits on what is decompressed: of one batch, and of all batches that are checked at a time."""

from __future__ import annotations

import asyncio

from barnabas.batches import Compression, Record, build_batch
from barnabas.client.connection import Connection
from barnabas.testing import AsyncBroker
from barnabas.wire import ErrorCode
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.produce import ProduceRequest

MOST = "barnabas.decompressed.batch.max.bytes"
COUNT = "barnabas.decompressed.batches.max.count"
MIB = 1 << 20
TIMESTAMP = 1_700_000_000_000


def batch(size: int) -> bytes:
    """One record of zeros, which is small only while it is compressed."""
    return build_batch([Record(0, TIMESTAMP, b"key", bytes(size))], compression=Compression.ZSTD)


async def produce(connection: Connection, topic: str, data: bytes) -> int:
    rows = [ProduceRequest.PartitionProduceData(index=0, records=data)]
    topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=rows)]
    response = await connection.call(ProduceRequest(acks=-1, timeout_ms=10_000, topic_data=topics), 12)
    return int(response.responses[0].partition_responses[0].error_code)


async def offset_at(connection: Connection, topic: str) -> tuple[int, int]:
    row = ListOffsetsRequest.ListOffsetsPartition(partition_index=0, timestamp=TIMESTAMP)
    topics = [ListOffsetsRequest.ListOffsetsTopic(name=topic, partitions=[row])]
    response = await connection.call(ListOffsetsRequest(replica_id=-1, topics=topics), 7)
    found = response.topics[0].partitions[0]
    return found.error_code, found.offset


def test_a_batch_whose_records_are_too_large_is_refused_only_where_it_has_to_be_decompressed() -> None:
    async def test() -> None:
        async with AsyncBroker({"kept": 1}, config={MOST: MIB}) as broker:
            await broker.create_topic("opened", 1, config={"cleanup.policy": "compact"})
            host, port = broker.bootstrap_servers.split(":")
            connection = await Connection.open(host, int(port), "test")
            assert await produce(connection, "opened", batch(MIB - 100)) == 0
            assert await produce(connection, "opened", batch(2 * MIB)) == ErrorCode.MESSAGE_TOO_LARGE
            assert await produce(connection, "kept", batch(2 * MIB)) == 0
            assert await offset_at(connection, "opened") == (0, 0)
            assert (await offset_at(connection, "kept"))[0] == ErrorCode.CORRUPT_MESSAGE
            replicas = broker._running().replicas
            assert replicas.traffic.get("opened").bytes_rejected == len(batch(2 * MIB))
            assert replicas.payloads.opened == 2
            connection.close()

    asyncio.run(test())


def test_a_raised_limit_accepts_the_batch_and_the_number_of_open_ones_is_that_of_the_setting() -> None:
    async def test() -> None:
        config: dict[str, str | int] = {MOST: 512 * MIB, COUNT: 1, "log.cleanup.policy": "compact"}
        async with AsyncBroker({"t": 1}, config=config) as broker:
            host, port = broker.bootstrap_servers.split(":")
            connections = [await Connection.open(host, int(port), "test") for _ in range(4)]
            payloads, most = broker._running().replicas.payloads, 0
            assert payloads.limit() == 1
            large = await asyncio.to_thread(batch, 130 * MIB)
            work = [asyncio.ensure_future(produce(each, "t", large)) for each in connections]
            while not all(each.done() for each in work):
                most = max(most, payloads.open)
                assert payloads.open + payloads.waiting <= len(work)
                await asyncio.sleep(0.001)
            assert [each.result() for each in work] == [0] * len(work)
            assert most == 1
            for each in connections:
                each.close()

    asyncio.run(test())
