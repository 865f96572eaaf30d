"""A node that stops: clients are answered or disconnected, and never read that no broker is left."""

from __future__ import annotations

import asyncio

from barnabas.client.connection import Connection
from barnabas.testing import AsyncBroker
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse

FETCH_VERSION, METADATA_VERSION = 12, 12
WAIT_MS = 1500  # a stop waits for this fetch, and others ask meanwhile


def long_poll() -> FetchRequest:
    partition = FetchRequest.FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    topic = FetchRequest.FetchTopic(topic="waiting", partitions=[partition])
    return FetchRequest(max_wait_ms=WAIT_MS, min_bytes=1000, topics=[topic])


async def brokers_named(host: str, port: int) -> list[int]:
    """Ask for metadata until the connection is closed: how many brokers each answer named."""
    counts: list[int] = []
    try:
        connection = await Connection.open(host, port, "asking")
    except OSError:
        return counts
    try:
        while True:
            response: MetadataResponse = await connection.call(MetadataRequest(topics=None), METADATA_VERSION)
            counts.append(len(response.brokers))
            await asyncio.sleep(0)
    except OSError:
        return counts
    finally:
        connection.close()


def test_nobody_reads_that_no_broker_is_left_while_the_only_one_stops() -> None:
    async def scenario() -> tuple[list[int], list[int], FetchResponse]:
        broker = AsyncBroker({"waiting": 1})
        await broker.start()
        host, _, port = broker.bootstrap_servers.rpartition(":")
        waiting = await Connection.open(host, int(port), "waiting")
        fetched = asyncio.create_task(waiting.call(long_poll(), FETCH_VERSION))
        asking = asyncio.create_task(brokers_named(host, int(port)))
        await asyncio.sleep(0.1)
        stopping = asyncio.create_task(broker.close())
        before = await asking
        again: list[int] = []
        while not stopping.done():
            again += await brokers_named(host, int(port))
            await asyncio.sleep(0.01)
        await stopping
        waiting.close()
        return before, again, await fetched

    before, again, fetched = asyncio.run(scenario())
    assert before and set(before + again) == {1}
    assert fetched.error_code == 0 and len(fetched.responses) == 1
