"""A node that stops, or is killed, and starts again on its directories: clients find what was acknowledged, and go on."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition
from confluent_kafka.admin import AdminClient
from tools.apache_kafka import Barnabas

from barnabas.testing import Broker
from tests.compat.clients import CLIENTS, WAIT_S, Client, Consumer, Record, poll_until, received, sent, take
from tests.compat.conftest import IN_A_HURRY, WHERE_NODES_END, create_topic

CONFLUENT, AIOKAFKA, KAFKA_PYTHON = CLIENTS
PARTITIONS = 6
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")
LOG_DIRS = ("a", "b", "c")

pytestmark = WHERE_NODES_END


@pytest.fixture
def node(tmp_path: Path) -> Iterator[Barnabas]:
    """A node with three log dirs."""
    log_dirs = ",".join(str(tmp_path / name) for name in LOG_DIRS)
    with Barnabas({**IN_A_HURRY, "log.dirs": log_dirs}, directory=tmp_path) as running:
        yield running


def everything(node: Barnabas, topic: str, count: int) -> dict[str, list[tuple[int, bytes | None]]]:
    """What each client reads of a topic's partition 0: offsets and values."""
    found = {}
    for client in CLIENTS:
        records = received(client, node.bootstrap, topic, count, isolation_level="read_committed")
        found[client.name] = [(each.offset, each.value) for each in records]
    return found


@pytest.mark.parametrize("end", [Barnabas.stop, Barnabas.kill], ids=["stop", "kill"])
def test_what_was_acknowledged_is_there_after_the_end_of_a_node(
    node: Barnabas, tmp_path: Path, end: Callable[[Barnabas], Any]
) -> None:
    admin = AdminClient({"bootstrap.servers": node.bootstrap, "log_level": 0})
    create_topic(admin, "records", PARTITIONS)
    written = write_records(node, "records")
    for client in CLIENTS:
        create_topic(admin, f"transactions-{client.name}")
        write_transactions(node, client, f"transactions-{client.name}")
        commit(node, client, f"group-{client.name}", {("records", 0): 7, ("records", 5): 8})
    before = {client.name: everything(node, f"transactions-{client.name}", 4) for client in CLIENTS}
    holds = {name for name in LOG_DIRS if any((tmp_path / name).glob("records-*"))}
    assert holds == set(LOG_DIRS)

    end(node)
    node.start()

    for client in CLIENTS:
        if client.codecs.issuperset(CODECS):
            found = received(client, node.bootstrap, "records", len(written), partitions=PARTITIONS)
            assert sorted((each.partition, each.offset, each.value) for each in found) == written
        assert everything(node, f"transactions-{client.name}", 4) == before[client.name]
        committed = offsets_of(admin, f"group-{client.name}")
        assert committed == {("records", 0): 7, ("records", 5): 8}
    again = write_records(node, "records")
    assert [offset for _, offset, _ in again] == [offset + len(written) // PARTITIONS for _, offset, _ in written]


def write_records(node: Barnabas, topic: str) -> list[tuple[int, int, bytes]]:
    """In every codec: where each has gone."""
    written = []
    for codec in CODECS:
        records = [Record(b"%s %d" % (codec.encode(), number), partition=number % PARTITIONS) for number in range(60)]
        where = sent(CONFLUENT, node.bootstrap, topic, records, compression_type=codec, linger_ms=5)
        by_partition = sorted(records, key=lambda each: each.partition or 0)
        written += [(*place, each.value or b"") for place, each in zip(sorted(where), by_partition, strict=True)]
    return sorted(written)


def write_transactions(node: Barnabas, client: Client, topic: str) -> None:
    """Two that are committed and one that is aborted."""
    with client.producer(node.bootstrap, {"transactional.id": topic}) as producer:
        for name in (b"one", b"two", b"three"):
            producer.begin()
            for number in range(2):
                producer.send(topic, Record(b"%s %d" % (name, number)))
            producer.flush()
            if name == b"two":
                producer.abort()
            else:
                producer.commit()


def commit(node: Barnabas, client: Client, group: str, offsets: dict[tuple[str, int], int]) -> None:
    with client.consumer(node.bootstrap, {"group.id": group}) as consumer:
        consumer.assign(offsets)
        consumer.commit(offsets)


def offsets_of(admin: AdminClient, group: str) -> dict[tuple[str, int], int]:
    (future,) = admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group)]).values()
    return {(each.topic, each.partition): each.offset for each in future.result(WAIT_S).topic_partitions}


def test_records_that_were_deleted_stay_deleted() -> None:
    with Broker(topics=["topic"]) as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        sent(CONFLUENT, broker.bootstrap_servers, "topic", [Record(b"%d" % number) for number in range(10)])
        (future,) = admin.delete_records([TopicPartition("topic", 0, 4)]).values()
        future.result(WAIT_S)
        broker.restart()
        with CONFLUENT.consumer(broker.bootstrap_servers) as consumer:
            assert consumer.ends([("topic", 0)]) == {("topic", 0): (4, 10)}


def test_a_transaction_goes_on_after_a_restart(client: Client) -> None:
    with Broker(topics=["topic"]) as broker:
        with client.producer(broker.bootstrap_servers, {"transactional.id": "someone"}) as producer:
            producer.begin()
            producer.send("topic", Record(b"before"))
            producer.flush()
            broker.restart()
            producer.send("topic", Record(b"after"))
            producer.flush()
            assert broker.records("topic") == []
            producer.commit()
        values = [each.value for each in broker.records("topic", count=2)]
        assert values == [b"before", b"after"]


MEMBERS = {
    "confluent": (CONFLUENT, {"partition.assignment.strategy": "cooperative-sticky"}),
    "confluent-consumer": (CONFLUENT, {"group.protocol": "consumer"}),
    "aiokafka": (AIOKAFKA, {}),
    "kafka-python": (KAFKA_PYTHON, {}),
}


@pytest.mark.parametrize(("client", "settings"), MEMBERS.values(), ids=MEMBERS)
def test_members_of_a_group_go_on_after_a_restart(client: Client, settings: dict[str, Any]) -> None:
    quick = {"group.consumer.min.heartbeat.interval.ms": 100, "group.consumer.heartbeat.interval.ms": 100}
    with Broker(topics={"topic": 2}, config=quick) as broker:
        wanted = {"group.id": "group", "auto.offset.reset": "earliest", **settings}
        members: list[Consumer] = [client.consumer(broker.bootstrap_servers, wanted) for _ in range(2)]

        def is_shared() -> bool:
            return [len(each.assignment()) for each in members] == [1, 1]

        for member in members:
            member.subscribe(["topic"])
        poll_until(members, is_shared, "the sharing")
        sent(client, broker.bootstrap_servers, "topic", [Record(b"one", partition=each) for each in range(2)])
        for member in members:
            assert [each.value for each in take(member, 1)] == [b"one"]
            member.commit(dict.fromkeys(member.assignment(), 1))
        broker.restart()
        sent(client, broker.bootstrap_servers, "topic", [Record(b"two", partition=each) for each in range(2)])
        received: list[Record] = []

        def poll() -> bool:
            for each in members:
                received.extend(each.poll(0.02))
            return len(received) >= 2

        poll_until([], poll, "two records")
        assert sorted((each.partition, each.value) for each in received) == [(0, b"two"), (1, b"two")]
        for member in members:
            member.close()
