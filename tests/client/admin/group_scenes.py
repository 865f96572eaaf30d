"""Scenes for tests about groups and transactions: members that stay, records with times, transactions that are open or hang."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Any

from confluent_kafka import Consumer, Producer

from barnabas.batches.builder import build_batch
from barnabas.batches.format import Record
from barnabas.client import Cluster, leader
from barnabas.client.admin.groups import Groups
from barnabas.client.admin.part import checked
from barnabas.client.records import TopicPartition
from barnabas.wire.messages.produce import ProduceRequest

WAIT_S = 30
QUIET = {"log_level": 0}
WITHOUT_VERIFICATION = {"transaction.partition.verification.enable": "false"}
"""A broker that takes records of a transaction that nobody has begun, as older ones do: so it hangs."""


def asked(bootstrap: str, work: Callable[[Cluster], Awaitable[Any]]) -> Any:
    """What a coroutine finds out with a client of its own."""

    async def session() -> Any:
        async with Cluster({"bootstrap.servers": bootstrap}) as cluster:
            return await work(cluster)

    return asyncio.run(session())


def fill(bootstrap: str, topic: str, partition: int, count: int, *, age_s: float = 0, batch: bool = False) -> int:
    """Records a second apart, the last of them of so long ago, which is returned; in a batch each, or in a compressed one."""
    settings = {"linger.ms": 1000, "compression.type": "zstd"} if batch else {"linger.ms": 0}
    producer = Producer({"bootstrap.servers": bootstrap, **settings, **QUIET})
    last_ms = int((time.time() - age_s) * 1000)
    for at in range(count):
        producer.produce(topic, b"value %d" % at, partition=partition, timestamp=last_ms - 1000 * (count - 1 - at))
        if not batch:
            producer.flush()
    producer.flush()
    return last_ms


def commit(bootstrap: str, group: str, offsets: dict[tuple[str, int], int]) -> None:
    """A group without members, that has come so far."""

    async def work(cluster: Cluster) -> None:
        values = {TopicPartition(*each): offset for each, offset in offsets.items()}
        checked(await Groups(cluster).alter_consumer_group_offsets(group, values))

    asked(bootstrap, work)


def committed(bootstrap: str, group: str) -> dict[tuple[str, int], int]:
    async def work(cluster: Cluster) -> dict[tuple[str, int], int]:
        found = checked(await Groups(cluster).list_consumer_group_offsets([group]))[group]
        return {(key.topic, key.partition): value.offset for key, value in checked(found).items()}

    offsets: dict[tuple[str, int], int] = asked(bootstrap, work)
    return offsets


@contextmanager
def member(bootstrap: str, group: str, topics: list[str], count: int, **settings: Any) -> Iterator[Consumer]:
    """A consumer that has so many partitions assigned, and stays."""
    consumer = Consumer(
        {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **QUIET,
            **{name.replace("_", "."): value for name, value in settings.items()},
        }
    )
    try:
        consumer.subscribe(topics)
        deadline = time.monotonic() + WAIT_S
        while len(consumer.assignment()) != count:
            assert time.monotonic() < deadline, "no assignment"
            consumer.poll(0.1)
        yield consumer
    finally:
        consumer.close()


def transaction(bootstrap: str, transactional_id: str, *partitions: tuple[str, int]) -> Producer:
    """A producer with a transaction that is open in these partitions."""
    made = Producer({"bootstrap.servers": bootstrap, "transactional.id": transactional_id, **QUIET})
    made.init_transactions(WAIT_S)
    made.begin_transaction()
    for topic, partition in partitions:
        made.produce(topic, b"open", partition=partition)
    made.flush(WAIT_S)
    return made


def hang(bootstrap: str, topic: str, partition: int, *, producer_id: int, age_s: float) -> int:
    """Write a record of a transaction that no coordinator knows; where it begins."""
    timestamp = int((time.time() - age_s) * 1000)
    batch = build_batch(
        [Record(0, timestamp, None, b"hangs")],
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=True,
    )
    request = ProduceRequest(
        transactional_id="nobody",
        acks=-1,
        timeout_ms=10_000,
        topic_data=[
            ProduceRequest.TopicProduceData(
                name=topic,
                partition_data=[ProduceRequest.PartitionProduceData(index=partition, records=batch)],
            )
        ],
    )

    async def work(cluster: Cluster) -> int:
        response = await cluster.call(request, leader(topic, partition), version=9)
        row = response.responses[0].partition_responses[0]
        assert row.error_code == 0, row
        return int(row.base_offset)

    offset: int = asked(bootstrap, work)
    return offset
