"""Producing and consuming through one client, librdkafka, on a node of barnabas and a node of Apache Kafka, in turns.

Kafka has the JVM settings of its own scripts, both nodes the same settings where they matter here, and every question is
warmed up on both. The client shares the machine with the node that it asks; the other node is idle meanwhile. Rows without a
peer's target only state what was seen: many connections, many consumers, many logs.
"""

from __future__ import annotations

import os
import socket
import statistics
import tempfile
import time
import uuid
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic
from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from bench import load
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "log"
PEER = f"Apache Kafka {VERSION}"

ROUNDS = 5
PARTITIONS = 4
RECORD = os.urandom(512) * 2
RECORDS = 200_000
SINGLE_RECORDS = 500
GROUP_ROUNDS = 7
IDLE_CONNECTIONS = 1_000
CONSUMERS = 500
MANY_PARTITIONS = 10_000
TIMEOUT_S = 120.0

NOT_SLOWER = 1.0
A_FIFTH = 5.0
SETTINGS = {
    "offsets.topic.replication.factor": "1",
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "group.initial.rebalance.delay.ms": "0",
    "log.retention.ms": "-1",
}


def run() -> list[Row]:
    with Barnabas(SETTINGS) as ours, ApacheKafka(SETTINGS, jvm=KAFKA_JVM) as theirs:
        rows = [
            *throughput(ours, theirs, idempotent=False),
            *throughput(ours, theirs, idempotent=True),
            *latency(ours, theirs),
            first_record(ours, theirs),
        ]
        memory = ([float(ours.rss_bytes()) / 1e6], [float(theirs.rss_bytes()) / 1e6])
        rows.append(from_rounds(SECTION, "memory after all this", memory[0], PEER, memory[1], "MB", A_FIFTH))
        theirs.kill()
        rows += many_clients(ours)
    return [*rows, *many_logs()]


# --- beside Kafka


def throughput(ours: Node, theirs: Node, *, idempotent: bool) -> list[Row]:
    """Rounds of producing into a new topic, and of reading all of it back."""
    produced: tuple[list[float], list[float]] = ([], [])
    consumed: tuple[list[float], list[float]] = ([], [])
    for number in range(ROUNDS + 1):
        contestants = [(ours, produced[0], consumed[0]), (theirs, produced[1], consumed[1])]
        for node, producing, consuming in alternating(contestants, number):
            topic = create_topic(node, PARTITIONS)
            producing.append(_produce(node, topic, RECORDS, idempotent=idempotent))
            consuming.append(_consume(node, topic, RECORDS))
            delete_topic(node, topic)
    kind = "idempotent" if idempotent else "not idempotent"
    what = f"{RECORDS // 1000 * len(RECORD) // 1024} MB of 1 kB records"
    question = f"produce {what} to {PARTITIONS} partitions, acks=all, {kind}"
    rows = [
        from_rounds(SECTION, question, produced[0][1:], PEER, produced[1][1:], "MB/s", NOT_SLOWER, more_is_better=True)
    ]
    question = f"consume {what} from {PARTITIONS} partitions ({'second' if idempotent else 'first'} series)"
    rows.append(
        from_rounds(SECTION, question, consumed[0][1:], PEER, consumed[1][1:], "MB/s", NOT_SLOWER, more_is_better=True)
    )
    return rows


def latency(ours: Node, theirs: Node) -> list[Row]:
    """One record after another, each acknowledged before the next is sent."""
    p50: tuple[list[float], list[float]] = ([], [])
    p99: tuple[list[float], list[float]] = ([], [])
    topics = {node: create_topic(node, 1) for node in (ours, theirs)}
    for number in range(ROUNDS + 1):
        for side, node in alternating([(0, ours), (1, theirs)], number):
            seen = sorted(_single_records(node, topics[node]))
            p50[side].append(statistics.median(seen))
            p99[side].append(seen[int(len(seen) * 0.99)])
    return [
        from_rounds(SECTION, f"a single acks=all record, {name}", each[0][1:], PEER, each[1][1:], "ms", NOT_SLOWER)
        for name, each in (("p50", p50), ("p99", p99))
    ]


def first_record(ours: Node, theirs: Node) -> Row:
    """From `subscribe` of the first member of a new group until its first record."""
    times: tuple[list[float], list[float]] = ([], [])
    topics = {node: create_topic(node, 1) for node in (ours, theirs)}
    for node, topic in topics.items():
        _produce(node, topic, 10, idempotent=False)
    for number in range(GROUP_ROUNDS + 1):
        for side, node in alternating([(0, ours), (1, theirs)], number):
            times[side].append(_first_record(node, topics[node]))
    question = "a new group's first record, group.initial.rebalance.delay.ms=0"
    return from_rounds(SECTION, question, times[0][1:], PEER, times[1][1:], "ms", NOT_SLOWER)


# --- stated


def many_clients(node: Node) -> list[Row]:
    """Idle connections, then consumers that wait for records, and what a single record costs beside them."""
    topic = create_topic(node, 1)
    alone = statistics.median(_single_records(node, topic))
    before = node.rss_bytes()
    idle = [load.connect(node.address) for _ in range(IDLE_CONNECTIONS)]
    time.sleep(1)
    per_connection = (node.rss_bytes() - before) / IDLE_CONNECTIONS
    among_idle = statistics.median(_single_records(node, topic))
    _close(idle)
    waiting = create_topic(node, 1)
    consumers = [_consumer(node) for _ in range(CONSUMERS)]
    for consumer in consumers:
        consumer.assign([TopicPartition(waiting, 0, 0)])
    started = time.monotonic()
    _produce(node, waiting, 1, idempotent=False)
    starved = CONSUMERS - sum(len(consumer.consume(1, TIMEOUT_S)) for consumer in consumers)
    all_s = time.monotonic() - started
    among_consumers = statistics.median(_single_records(node, topic))
    memory_mb = node.rss_bytes() / 1e6
    for consumer in consumers:
        consumer.close()
    return [
        _stated(f"memory of an idle connection, of {IDLE_CONNECTIONS:,}", per_connection, "bytes"),
        _stated(f"a single record beside {IDLE_CONNECTIONS:,} idle connections, p50", among_idle, "ms", alone),
        _stated(f"one record reaches {CONSUMERS} consumers that wait", all_s * 1000, "ms"),
        _stated(f"consumers of {CONSUMERS} that got nothing", float(starved), "consumers"),
        _stated(f"a single record beside {CONSUMERS} waiting consumers, p50", among_consumers, "ms", alone),
        _stated(f"memory with {CONSUMERS} consumers", memory_mb, "MB"),
    ]


def many_logs() -> list[Row]:
    """A node with a log in each of many partitions: made, stopped, started again."""
    with tempfile.TemporaryDirectory(prefix="bench-log-") as folder, Barnabas(SETTINGS, directory=Path(folder)) as node:
        empty_mb = node.rss_bytes() / 1e6
        topics = [create_topic(node, 500) for _ in range(MANY_PARTITIONS // 500)]
        producer = _producer(node, idempotent=False)
        for topic in topics:
            for partition in range(500):
                producer.produce(topic, RECORD, partition=partition)
            producer.flush(TIMEOUT_S)
        full_mb, files = node.rss_bytes() / 1e6, _open_files(node)
        node.stop()
        node.start()
        again_mb = node.rss_bytes() / 1e6
        rows = [
            _stated(f"memory with {MANY_PARTITIONS:,} logs that were written to", full_mb, "MB", empty_mb),
            _stated(f"open files with {MANY_PARTITIONS:,} logs", float(files), "files"),
            _stated(f"start on {MANY_PARTITIONS:,} logs", node.started_s, "s"),
            _stated(f"memory after a start on {MANY_PARTITIONS:,} logs", again_mb, "MB", empty_mb),
        ]
        node.kill()
    return rows


def _stated(question: str, value: float, unit: str, beside: float | None = None) -> Row:
    """Nothing is asked; `beside` is what it was without the load."""
    peer = "-" if beside is None else "barnabas without"
    return Row(SECTION, question, value, peer, beside, unit, None, None, None, None)


# --- what a client does


def _producer(node: Node, *, idempotent: bool, linger_ms: float = 5) -> Producer:
    return Producer(
        {
            "bootstrap.servers": node.bootstrap,
            "acks": "all",
            "enable.idempotence": idempotent,
            "linger.ms": linger_ms,
            "queue.buffering.max.messages": 1_000_000,
        }
    )


def _consumer(node: Node, **settings: str | int | bool) -> Consumer:
    return Consumer(
        {
            "bootstrap.servers": node.bootstrap,
            "group.id": uuid.uuid4().hex,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )


def create_topic(node: Node, partitions: int) -> str:
    """The name of a new topic, which has leaders."""
    name = f"bench-{uuid.uuid4().hex}"
    admin = AdminClient({"bootstrap.servers": node.bootstrap})
    admin.create_topics([NewTopic(name, partitions, 1)])[name].result(TIMEOUT_S)
    deadline = time.monotonic() + TIMEOUT_S
    while time.monotonic() < deadline:
        topic = admin.list_topics(name, timeout=TIMEOUT_S).topics[name]
        if len(topic.partitions) == partitions and all(each.leader >= 0 for each in topic.partitions.values()):
            return name
        time.sleep(0.01)
    raise RuntimeError(f"{name} has not become visible")


def delete_topic(node: Node, topic: str) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap})  # it has to outlive the answer
    admin.delete_topics([topic])[topic].result(TIMEOUT_S)


def _produce(node: Node, topic: str, count: int, *, idempotent: bool) -> float:
    """MB a second, all of it acknowledged."""
    producer = _producer(node, idempotent=idempotent)
    failed: list[object] = []

    def delivered(error: object, message: object) -> None:
        if error is not None:
            failed.append(error)

    producer.list_topics(topic, timeout=TIMEOUT_S)
    started = time.perf_counter()
    for _ in range(count):
        while True:
            try:
                producer.produce(topic, RECORD, on_delivery=delivered)
                break
            except BufferError:
                producer.poll(0.01)
        producer.poll(0)
    if producer.flush(TIMEOUT_S) or failed:
        raise RuntimeError(f"records were not acknowledged: {failed[:1]}")
    return count * len(RECORD) / 1e6 / (time.perf_counter() - started)


def _consume(node: Node, topic: str, count: int) -> float:
    """MB a second, from the first record to the last."""
    consumer = _consumer(node)
    consumer.assign([TopicPartition(topic, number, 0) for number in range(PARTITIONS)])
    return drain(consumer, count)


def drain(consumer: Consumer, count: int) -> float:
    """MB a second, from the first record to the last. The consumer is closed."""
    seen = 0
    started: float | None = None
    deadline = time.monotonic() + TIMEOUT_S
    while seen < count and time.monotonic() < deadline:
        seen += len(consumer.consume(min(10_000, count - seen), 1))
        started = started or time.perf_counter()
    seconds = time.perf_counter() - (started or 0)
    consumer.close()
    if seen < count:
        raise RuntimeError(f"{count - seen} records of {count} were not seen")
    return count * len(RECORD) / 1e6 / seconds


def _single_records(node: Node, topic: str) -> list[float]:
    """Milliseconds until each record was acknowledged."""
    producer = _producer(node, idempotent=False, linger_ms=0)
    seen = []
    for _ in range(SINGLE_RECORDS):
        started = time.perf_counter()
        producer.produce(topic, RECORD)
        producer.flush(TIMEOUT_S)
        seen.append((time.perf_counter() - started) * 1000)
    return seen[len(seen) // 10 :]  # the first ones find the leader


def _first_record(node: Node, topic: str) -> float:
    consumer = _consumer(node)
    started = time.perf_counter()
    consumer.subscribe([topic])
    found = consumer.consume(1, TIMEOUT_S)
    seconds = time.perf_counter() - started
    consumer.close()
    if not found:
        raise RuntimeError("the group has not got a record")
    return seconds * 1000


def _open_files(node: Node) -> int:
    return len(list(Path(f"/proc/{node.pid}/fd").iterdir()))


def _close(connections: list[socket.socket]) -> None:
    for connection in connections:
        connection.close()
