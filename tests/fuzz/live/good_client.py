"""A client that behaves, for the time after a campaign."""

from __future__ import annotations

import asyncio

from barnabas.batches import Record, build_batch
from barnabas.client.connection import Connection
from barnabas.wire.messages.produce import ProduceRequest


def produce(host: str, port: int, topic: str) -> None:
    asyncio.run(_produce(host, port, topic))


async def _produce(host: str, port: int, topic: str) -> None:
    connection = await Connection.open(host, port, "good")
    try:
        rows = [ProduceRequest.PartitionProduceData(index=0, records=build_batch([Record(0, 1, b"k", b"good")]))]
        topics = [ProduceRequest.TopicProduceData(name=topic, partition_data=rows)]
        response = await connection.call(ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=topics), 12)
        row = response.responses[0].partition_responses[0]
        assert row.error_code == 0, row
    finally:
        connection.close()
