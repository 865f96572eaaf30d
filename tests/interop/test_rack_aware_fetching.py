"""The consumer fetches from a follower in its rack: two brokers of Apache Kafka with RackAwareReplicaSelector (KIP-392)."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator

import pytest
from tools.apache_kafka import ApacheKafka

from barnabas.client import Admin
from barnabas.client.admin.part import checked
from barnabas.client.admin.topics import NewTopic
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.client.routing import NodeId
from barnabas.wire.messages.fetch import FetchRequest
from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

SELECTOR = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


@pytest.fixture(scope="module")
def nodes() -> Iterator[tuple[ApacheKafka, ApacheKafka]]:
    """Broker 1 in rack a, which is also the controller, and broker 2 in rack b."""
    jars("4.3.1")
    with ApacheKafka({"broker.rack": "a", **SELECTOR}) as first:
        more = {
            "process.roles": "broker",
            "node.id": "2",
            "broker.rack": "b",
            "controller.quorum.bootstrap.servers": first.controller,
            **SELECTOR,
        }
        with ApacheKafka(more, cluster_id=first.cluster_id) as second:
            yield first, second


def test_records_come_from_the_rack_of_the_consumer_and_from_the_leader_when_that_broker_stops(
    nodes: tuple[ApacheKafka, ApacheKafka],
) -> None:
    first, second = nodes

    async def main() -> None:
        settings = {"bootstrap.servers": first.bootstrap}
        async with Admin(settings) as admin:
            while len((await admin.describe_cluster()).nodes) < 2:
                await asyncio.sleep(0.2)
            checked(await admin.create_topics([NewTopic("racks", assignments=[[1, 2]])]))
        asked: Counter[int] = Counter()
        reading = {**settings, "auto.offset.reset": "earliest", "client.rack": "b", "fetch.max.wait.ms": 100}
        async with Producer(settings) as producer, Consumer(reading) as consumer:
            send = consumer._cluster.send

            async def counted(request: object, to: object = None, **how: object) -> object:
                if isinstance(request, FetchRequest) and isinstance(to, NodeId):
                    asked[to.id] += 1
                return await send(request, to, **how)  # type: ignore[arg-type]

            consumer._cluster.send = counted  # type: ignore[method-assign]
            consumer.assign([("racks", 0)])
            found: list[int] = []

            async def write_and_read(count: int) -> None:
                for _ in range(count):
                    await producer.send_and_wait("racks", b"x", partition=0)
                expected = len(found) + count
                while len(found) < expected:
                    found.extend(record.offset for record in await consumer.poll(1_000))

            await write_and_read(20)
            while not asked[2]:  # the follower has to be in sync before the leader prefers it
                await write_and_read(1)
            before = asked[1]
            await write_and_read(20)
            assert asked[1] - before <= 1
            assert asked[2] > 5
            await asyncio.to_thread(second.stop)
            before = asked[1]
            await write_and_read(20)
            assert asked[1] > before
        assert found == list(range(len(found)))

    asyncio.run(asyncio.wait_for(main(), 90))
