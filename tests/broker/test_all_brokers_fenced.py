"""All brokers are fenced at once, as when the controller did not hear from any: clients find them again afterwards.

Metadata then has no brokers, as in Kafka. librdkafka forgets every broker that is not in it, and asks its
bootstrap servers again, unless `metadata.recovery.strategy` is `none`: then it never sends anything again.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from aiokafka import AIOKafkaProducer
from confluent_kafka import Producer

from barnabas.client import Producer as OwnProducer
from barnabas.testing import Cluster
from tests.broker.clusters import TIMEOUT_S

SETTINGS = {"broker.session.timeout.ms": 1000, "broker.heartbeat.interval.ms": 200, "min.insync.replicas": 1}
UNTIL_CLIENTS_KNOW_S = 2.0


def wait_for(is_so: Callable[[], bool]) -> None:
    deadline_s = time.monotonic() + TIMEOUT_S
    while not is_so():
        assert time.monotonic() < deadline_s
        time.sleep(0.02)


@contextmanager
def all_fenced(cluster: Cluster) -> Iterator[None]:
    """No heartbeat is taken: the controller fences all brokers, and lets them in again at the end."""

    def is_fenced() -> bool:
        nodes = cluster._cluster.nodes.values()
        return all(broker.fenced for node in nodes for broker in node.image.brokers.values())

    rule = cluster.faults.fail("BrokerHeartbeat", "NOT_CONTROLLER", times=None)
    wait_for(is_fenced)
    yield
    rule.remove()


def test_librdkafka_goes_on() -> None:
    outcomes: list[Any] = []
    with Cluster(nodes=3, topics={"t": 3}, config=SETTINGS) as cluster:
        given: dict[str, Any] = {"bootstrap.servers": cluster.bootstrap_servers, "message.timeout.ms": 300_000}
        producer = Producer({**given, "topic.metadata.refresh.fast.interval.ms": 50, "enable.idempotence": True})

        def send() -> None:
            for partition in range(3):
                producer.produce("t", b"x", partition=partition, on_delivery=lambda error, _: outcomes.append(error))

        send()
        assert producer.flush(TIMEOUT_S) == 0
        with all_fenced(cluster):
            send()
            assert producer.flush(UNTIL_CLIENTS_KNOW_S) == 3
        assert producer.flush(TIMEOUT_S) == 0
    assert outcomes == [None] * 6


def test_aiokafka_and_the_client_of_barnabas_go_on() -> None:
    with Cluster(nodes=3, topics={"t": 1}, config=SETTINGS) as cluster:
        servers = cluster.bootstrap_servers

        async def main() -> None:
            settings = {"bootstrap.servers": servers, "delivery.timeout.ms": "60000", "max.block.ms": "60000"}
            async with (
                AIOKafkaProducer(bootstrap_servers=servers, enable_idempotence=True) as foreign,
                OwnProducer({**settings, "metadata.max.age.ms": "500", "request.timeout.ms": "20000"}) as own,
            ):
                await foreign.send_and_wait("t", b"1")
                await own.send_and_wait("t", b"2")
                fenced = all_fenced(cluster)
                await asyncio.to_thread(fenced.__enter__)
                sending = [asyncio.create_task(each.send_and_wait("t", b"3")) for each in (foreign, own)]
                await asyncio.wait(sending, timeout=UNTIL_CLIENTS_KNOW_S)
                assert not any(each.done() for each in sending)
                await asyncio.to_thread(fenced.__exit__, None, None, None)
                async with asyncio.timeout(TIMEOUT_S):
                    sent = await asyncio.gather(*sending)
                assert {each.offset for each in sent} == {2, 3}

        asyncio.run(main())
