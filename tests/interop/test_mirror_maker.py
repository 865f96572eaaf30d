"""MirrorMaker 2 of Apache Kafka copies a topic exactly once from one node of barnabas to another, also when it is killed.

It is a Connect cluster with all that belongs to one: compacted topics for its own state, transactions, groups of the type
"connect", and topics, settings and committed offsets that it reads and writes through the administrative APIs.
"""

from __future__ import annotations

import contextlib
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import confluent_kafka as ck
import pytest
from confluent_kafka.admin import AdminClient, ConfigResource, NewTopic, ResourceType
from tools.apache_kafka import HOST, SMALL_JVM, VERSION, Barnabas, Node, ensure, free_ports, maven_jars

from tests.interop.conftest import jars

pytestmark = pytest.mark.interop

TOPIC = "orders"
PARTITIONS = 3
GROUP = "billing"
LIMIT_S = 180
READ_COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "earliest", "enable.auto.commit": False}


@pytest.fixture(scope="module")
def command() -> list[str]:
    jars(VERSION)
    more = maven_jars(f"kafka-mirror-{VERSION}", [("org.apache.kafka", "connect-mirror", VERSION)])
    folder = ensure(VERSION)
    logs = f"-Dlog4j2.configurationFile={folder / 'tools-log4j2.properties'}"
    path = f"{more}/*:{folder / 'libs'}/*"
    return ["java", *SMALL_JVM, logs, "-cp", path, "org.apache.kafka.connect.mirror.MirrorMaker"]


def settings(source: Node, target: Node, file: Path) -> Path:
    (port,) = free_ports(1)
    lines = {
        "clusters": "source, target",
        "source.bootstrap.servers": source.bootstrap,
        "target.bootstrap.servers": target.bootstrap,
        "source->target.enabled": "true",
        "source->target.topics": TOPIC,
        "replication.factor": "1",
        **{f"{name}.topic.replication.factor": "1" for name in ("checkpoints", "heartbeats", "offset-syncs")},
        **{f"{name}.storage.replication.factor": "1" for name in ("offset", "status", "config")},
        **{f"{name}.interval.seconds": "2" for name in ("refresh.topics", "refresh.groups", "sync.topic.configs")},
        **{f"{name}.interval.seconds": "1" for name in ("sync.group.offsets", "emit.checkpoints")},
        "offset.lag.max": "0",
        "sync.group.offsets.enabled": "true",
        "target.exactly.once.source.support": "enabled",
        "dedicated.mode.enable.internal.rest": "true",
        "listeners": f"http://{HOST}:{port}",
        "tasks.max": "2",
        # A worker that was killed is not waited for, and what it read belongs to the transaction that it did not end.
        "target.scheduled.rebalance.max.delay.ms": "0",
        "target.session.timeout.ms": "6000",
        "target.heartbeat.interval.ms": "1000",
    }
    file.write_text("".join(f"{name} = {value}\n" for name, value in lines.items()))
    return file


@contextlib.contextmanager
def mirroring(command: list[str], properties: Path, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    with (
        log.open("ab") as out,
        subprocess.Popen([*command, str(properties)], stdout=out, stderr=out, stdin=subprocess.DEVNULL) as process,
    ):
        try:
            yield process
        finally:
            process.kill()


def produce(node: Node, numbers: range) -> None:
    producer = ck.Producer({"bootstrap.servers": node.bootstrap, "enable.idempotence": True})
    for number in numbers:
        producer.produce(
            TOPIC, b"%d" % number, b"k%d" % number, partition=number % PARTITIONS, headers={"n": b"%d" % number}
        )
    assert producer.flush(LIMIT_S) == 0


def read(node: Node, topic: str, *, is_enough: Callable[[int], bool]) -> dict[int, list[int]]:
    """Return the numbers that were read from each partition, until there are enough."""
    found: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
    consumer = ck.Consumer({"bootstrap.servers": node.bootstrap, "group.id": "reader", **READ_COMMITTED})
    deadline = time.monotonic() + LIMIT_S
    try:
        consumer.assign([ck.TopicPartition(topic, partition, 0) for partition in found])
        while not is_enough(sum(map(len, found.values()))):
            assert time.monotonic() < deadline, {partition: len(numbers) for partition, numbers in found.items()}
            for message in consumer.consume(1000, 0.5):
                if message.error() is not None:
                    continue  # the topic is not there yet
                value, partition = message.value(), message.partition()
                assert value is not None and partition is not None
                assert (message.key(), message.headers()) == (b"k" + value, [("n", value)])
                found[partition].append(int(value))
    finally:
        consumer.close()
    return found


def committed(node: Node, group: str, topic: str) -> int:
    consumer = ck.Consumer({"bootstrap.servers": node.bootstrap, "group.id": group})
    try:
        found = consumer.committed([ck.TopicPartition(topic, partition) for partition in range(PARTITIONS)], LIMIT_S)
        return sum(max(each.offset, 0) for each in found)
    finally:
        consumer.close()


def test_mirror_maker_copies_a_topic_exactly_once_although_it_is_killed(command: list[str], tmp_path: Path) -> None:
    log = tmp_path / "mirror.log"
    copy = f"source.{TOPIC}"
    with Barnabas() as source, Barnabas() as target:
        admin = AdminClient({"bootstrap.servers": source.bootstrap})
        (created,) = admin.create_topics([NewTopic(TOPIC, PARTITIONS, config={"retention.ms": "86400000"})]).values()
        created.result(LIMIT_S)
        produce(source, range(3000))
        properties = settings(source, target, tmp_path / "mirror.properties")
        with mirroring(command, properties, log) as first:
            read(target, copy, is_enough=lambda count: count > 0)
            first.kill()
        produce(source, range(3000, 6000))
        with mirroring(command, properties, log):
            found = read(target, copy, is_enough=lambda count: count >= 6000)
            produce(source, range(6000, 6300))
            found = read(target, copy, is_enough=lambda count: count >= 6300)
            assert found == {partition: list(range(partition, 6300, PARTITIONS)) for partition in range(PARTITIONS)}

            reader = ck.Consumer({"bootstrap.servers": source.bootstrap, "group.id": GROUP})
            ends = [ck.TopicPartition(TOPIC, partition, 6300 // PARTITIONS) for partition in range(PARTITIONS)]
            reader.commit(offsets=ends, asynchronous=False)
            reader.close()
            deadline = time.monotonic() + LIMIT_S
            while not committed(target, GROUP, copy):  # where the group would go on in the copy
                assert time.monotonic() < deadline, log.read_text()[-5000:]
                time.sleep(0.5)
        of_target = AdminClient({"bootstrap.servers": target.bootstrap})
        (described,) = of_target.describe_configs([ConfigResource(ResourceType.TOPIC, copy)]).values()
        assert described.result(LIMIT_S)["retention.ms"].value == "86400000"
        for node in (source, target):
            assert "Traceback" not in node.log.read_text()
