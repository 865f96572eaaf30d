"""The client beside aiokafka and kafka-python: records written and read on one node of barnabas, and a large Metadata decoded.

All three are libraries of Python, each used as its own documentation says for many records: `send` in a loop and a flush;
whole answers of a poll, of which every record is looked at. All write idempotently with acks=all, 5 ms of linger and batches
of 16 kB; all check checksums. Client and node share the machine; the clients take turns.
"""

from __future__ import annotations

import asyncio
import gc
import os
import time
import uuid
from collections.abc import Callable, Coroutine
from functools import partial
from importlib.metadata import version as installed
from typing import Any, NamedTuple

import uvloop
from tools.apache_kafka import Barnabas

from barnabas.client import Cluster, controller
from barnabas.client.consumer import Consumer
from barnabas.client.producer import Producer
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataResponse
from bench import codec
from bench.table import Row, from_rounds
from bench.timing import alternating, in_turns

SECTION = "clients"
ROUNDS = 5
PARTITIONS = 4
SIZES = {100: 100_000, 1_000: 50_000}
METADATA_TOPICS = 1_000
METADATA_PARTITIONS = 100
METADATA_VERSIONS = {"kafka-python": 12, "aiokafka": 5}
FASTER = 1.0
SETTINGS = {"log.retention.ms": "-1", "group.initial.rebalance.delay.ms": "0"}


class Contestant(NamedTuple):
    name: str
    produce: Callable[[str, str, bytes, int], float]
    consume: Callable[[str, str, int], float]


def run() -> list[Row]:
    contestants = [
        Contestant("barnabas", _ours_produce, _ours_consume),
        Contestant(f"aiokafka {installed('aiokafka')}", _aiokafka_produce, _aiokafka_consume),
        Contestant(f"kafka-python {installed('kafka-python')}", _kafka_python_produce, _kafka_python_consume),
    ]
    with Barnabas(SETTINGS) as node:
        rows = [row for size, count in SIZES.items() for row in records(node.bootstrap, contestants, size, count)]
    return rows + metadata()


def records(bootstrap: str, contestants: list[Contestant], size: int, count: int) -> list[Row]:
    """Rounds of writing into a new topic, and of reading all of it back; the first round warms everything up."""
    value = os.urandom(size)
    produced: dict[str, list[float]] = {each.name: [] for each in contestants}
    consumed: dict[str, list[float]] = {each.name: [] for each in contestants}
    for number in range(ROUNDS + 1):
        for each in alternating(contestants, number):
            topic = _run(_create(bootstrap))
            gc.collect()
            produced[each.name].append(count / each.produce(bootstrap, topic, value, count))
            gc.collect()
            consumed[each.name].append(count / each.consume(bootstrap, topic, count))
    ours = contestants[0].name
    what = f"{count // 1000},000 records of {size:,} B"
    return [
        from_rounds(
            SECTION, f"{verb} {what}", seen[ours][1:], peer.name, seen[peer.name][1:], "records/s", FASTER, True
        )
        for verb, seen in (("produce", produced), ("consume", consumed))
        for peer in contestants[1:]
    ]


def metadata() -> list[Row]:
    """A Metadata answer of 100,000 partitions, in the newest version that a peer has."""
    rows = []
    for maker, name in ((codec.aiokafka, "aiokafka"), (codec.kafka_python, "kafka-python")):
        version = METADATA_VERSIONS[name]
        ours, peer = codec.barnabas("MetadataResponse", version), maker("MetadataResponse", version)
        data = ours.encode(_large_metadata())
        assert peer.encode(peer.decode(data)) == data
        seen = in_turns(
            {
                "ours": partial(ours.decode, data),
                "theirs": partial(peer.decode, data),
            }
        )
        question = f"decode Metadata v{version} of {METADATA_TOPICS * METADATA_PARTITIONS:,} partitions"
        scaled = ([each * 1000 for each in seen["ours"]], [each * 1000 for each in seen["theirs"]])
        rows.append(from_rounds(SECTION, question, scaled[0], peer.name, scaled[1], "ms", FASTER))
    return rows


def _large_metadata() -> MetadataResponse:
    partitions = [
        MetadataResponse.MetadataResponsePartition(
            partition_index=index, leader_id=1 + index % 3, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        for index in range(METADATA_PARTITIONS)
    ]
    topics = [
        MetadataResponse.MetadataResponseTopic(name=f"topic-{index:05d}", partitions=partitions)
        for index in range(METADATA_TOPICS)
    ]
    brokers = [
        MetadataResponse.MetadataResponseBroker(node_id=1 + index, host="broker.example", port=9092)
        for index in range(3)
    ]
    return MetadataResponse(brokers=brokers, cluster_id="cluster", controller_id=1, topics=topics)


# --- ours


def _run(work: Coroutine[Any, Any, Any]) -> Any:
    return asyncio.Runner(loop_factory=uvloop.new_event_loop).run(work)


async def _create(bootstrap: str) -> str:
    topic = f"bench-{uuid.uuid4()}"
    row = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=PARTITIONS, replication_factor=1)
    async with Cluster({"bootstrap.servers": bootstrap}) as cluster:
        await cluster.call(CreateTopicsRequest(topics=[row], timeout_ms=20_000), controller())
        while topic not in (await cluster.refresh([topic])).topics:
            await asyncio.sleep(0.01)
    return topic


def _ours_produce(bootstrap: str, topic: str, value: bytes, count: int) -> float:
    async def main() -> float:
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            await producer.partitions_for(topic)
            started = time.perf_counter()
            send = producer.send
            for _ in range(count):
                await send(topic, value)
            await producer.flush()
            return time.perf_counter() - started

    elapsed_s: float = _run(main())
    return elapsed_s


def _ours_consume(bootstrap: str, topic: str, count: int) -> float:
    async def main() -> float:
        async with Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}) as consumer:
            started = time.perf_counter()
            consumer.assign([(topic, partition) for partition in range(PARTITIONS)])
            await _read(consumer, count)
            return time.perf_counter() - started

    elapsed_s: float = _run(main())
    return elapsed_s


async def _read(consumer: Any, count: int) -> None:
    """Every value, in batches: aiokafka's consumer has the same method."""
    left, size = count, 0
    while left:
        for some in (await consumer.getmany(timeout_ms=1_000)).values():
            for record in some:
                size += len(record.value or b"")
            left -= len(some)


# --- aiokafka


def _aiokafka_produce(bootstrap: str, topic: str, value: bytes, count: int) -> float:
    from aiokafka import AIOKafkaProducer  # a peer is loaded only when timed

    async def main() -> float:
        async with AIOKafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, linger_ms=5) as producer:
            await producer.partitions_for(topic)
            started = time.perf_counter()
            send = producer.send
            for _ in range(count):
                await send(topic, value)
            await producer.flush()
            return time.perf_counter() - started

    elapsed_s: float = _run(main())
    return elapsed_s


def _aiokafka_consume(bootstrap: str, topic: str, count: int) -> float:
    from aiokafka import AIOKafkaConsumer, TopicPartition

    async def main() -> float:
        async with AIOKafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest") as consumer:
            started = time.perf_counter()
            consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
            await _read(consumer, count)
            return time.perf_counter() - started

    elapsed_s: float = _run(main())
    return elapsed_s


# --- kafka-python


def _kafka_python_produce(bootstrap: str, topic: str, value: bytes, count: int) -> float:
    from kafka import KafkaProducer

    producer = KafkaProducer(bootstrap_servers=bootstrap, enable_idempotence=True, acks="all", linger_ms=5)
    try:
        producer.partitions_for(topic)
        started = time.perf_counter()
        send = producer.send
        for _ in range(count):
            send(topic, value)
        producer.flush()
        return time.perf_counter() - started
    finally:
        producer.close()


def _kafka_python_consume(bootstrap: str, topic: str, count: int) -> float:
    from kafka import KafkaConsumer, TopicPartition

    consumer = KafkaConsumer(bootstrap_servers=bootstrap, auto_offset_reset="earliest", enable_auto_commit=False)
    try:
        started = time.perf_counter()
        consumer.assign([TopicPartition(topic, partition) for partition in range(PARTITIONS)])
        left, size = count, 0
        while left:
            for some in consumer.poll(timeout_ms=1_000).values():
                for record in some:
                    size += len(record.value or b"")
                left -= len(some)
        return time.perf_counter() - started
    finally:
        consumer.close()
