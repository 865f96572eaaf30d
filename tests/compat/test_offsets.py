"""Where a partition begins and ends, where a time is, and records that are deleted."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator

import pytest
from aiokafka import TopicPartition as AioTopicPartition
from aiokafka.admin import AIOKafkaAdminClient, RecordsToDelete
from confluent_kafka import IsolationLevel, TopicPartition
from confluent_kafka.admin import AdminClient, OffsetSpec
from kafka.admin import KafkaAdminClient
from kafka.admin import OffsetSpec as KafkaPythonOffsetSpec
from kafka.structs import TopicPartition as KafkaPythonTopicPartition
from tools.apache_kafka import Barnabas

from tests.compat.clients import BEGINNING, CLIENTS, END, WAIT_S, Client, Record, poll_until, sent, take
from tests.compat.conftest import MakeTopic

HOUR_MS = 3_600_000
BEGIN_MS = 1_700_000_000_000
FreshName = Callable[[str], str]
KEPT = {"retention.ms": "-1", "message.timestamp.before.max.ms": "9223372036854775807"}


def hours(count: int) -> list[Record]:
    """A record an hour."""
    return [Record(b"%d" % hour, timestamp_ms=BEGIN_MS + hour * HOUR_MS) for hour in range(count)]


def test_offsets_are_found_by_time(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(2, KEPT)
    with client.producer(node.bootstrap) as producer:
        for record in hours(20):
            producer.send(topic, record._replace(partition=0))
            producer.flush()  # a batch of its own
        for record in hours(20):
            producer.send(topic, record._replace(partition=1))
        producer.flush()
    places = [(topic, 0), (topic, 1)]
    for reader in CLIENTS:
        with reader.consumer(node.bootstrap) as consumer:
            for at_ms, offset in (
                (0, 0),
                (BEGIN_MS, 0),
                (BEGIN_MS + 1, 1),
                (BEGIN_MS + 7 * HOUR_MS, 7),
                (BEGIN_MS + 8 * HOUR_MS - 1, 8),
                (BEGIN_MS + 19 * HOUR_MS, 19),
            ):
                assert consumer.offsets_for_times(dict.fromkeys(places, at_ms)) == dict.fromkeys(places, offset)
            after = consumer.offsets_for_times(dict.fromkeys(places, BEGIN_MS + 20 * HOUR_MS))
            assert set(after.values()) == {None}, reader.name
            consumer.assign(dict.fromkeys(places, 7))
            assert sorted(each.value or b"" for each in take(consumer, 26)) == sorted(
                b"%d" % hour for hour in range(7, 20) for _ in range(2)
            )


def test_a_partition_says_where_it_begins_and_ends(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(2)
    sent(client, node.bootstrap, topic, [Record(b"one", partition=1), Record(b"two", partition=1)])
    with client.consumer(node.bootstrap, {"auto.offset.reset": "earliest"}) as consumer:
        assert consumer.ends([(topic, 0), (topic, 1)]) == {(topic, 0): (0, 0), (topic, 1): (0, 2)}
        consumer.assign({(topic, 1): BEGINNING})
        assert [each.offset for each in take(consumer, 2)] == [0, 1]
        consumer.seek((topic, 1), 1)
        assert [each.value for each in take(consumer, 1)] == [b"two"]
        consumer.seek((topic, 1), 0)
        assert [each.value for each in take(consumer, 2)] == [b"one", b"two"]


def test_a_consumer_that_begins_at_the_end_gets_what_comes(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"before")] * 5)
    with client.consumer(node.bootstrap) as consumer:
        consumer.assign({(topic, 0): END})
        poll_until([consumer], lambda: consumer.is_at((topic, 0), 5), "the end")
        sent(client, node.bootstrap, topic, [Record(b"after")])
        assert [(each.offset, each.value) for each in take(consumer, 1)] == [(5, b"after")]


@pytest.mark.parametrize(("reset", "first"), [("earliest", 3), ("latest", 10)])
def test_an_offset_that_is_gone_is_reset(
    node: Barnabas, make_topic: MakeTopic, session_admin: AdminClient, client: Client, reset: str, first: int
) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"%d" % number) for number in range(10)])
    for future in session_admin.delete_records([TopicPartition(topic, 0, 3)]).values():
        assert future.result(WAIT_S).low_watermark == 3
    with client.consumer(node.bootstrap, {"auto.offset.reset": reset}) as consumer:
        consumer.assign({(topic, 0): 1 if reset == "earliest" else 1000})
        if reset == "latest":
            poll_until([consumer], lambda: consumer.is_at((topic, 0), 10), "the end")
            sent(client, node.bootstrap, topic, [Record(b"10")])
        assert take(consumer, 1)[0].offset == first


def test_records_are_deleted_for_every_client(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"%d" % number) for number in range(10)])
    deleted = {"confluent": delete_by_confluent, "aiokafka": delete_by_aiokafka, "kafka-python": delete_by_kafka_python}
    assert deleted[client.name](node.bootstrap, topic, 4) == 4
    with client.consumer(node.bootstrap, {"auto.offset.reset": "earliest"}) as consumer:
        assert consumer.ends([(topic, 0)]) == {(topic, 0): (4, 10)}
        consumer.assign({(topic, 0): BEGINNING})
        assert [each.value for each in take(consumer, 6)] == [b"%d" % number for number in range(4, 10)]
    assert deleted[client.name](node.bootstrap, topic, -1) == 10
    sent(client, node.bootstrap, topic, [Record(b"new")])
    with client.consumer(node.bootstrap, {"auto.offset.reset": "earliest"}) as consumer:
        assert consumer.ends([(topic, 0)]) == {(topic, 0): (10, 11)}
        consumer.assign({(topic, 0): 0})
        assert [(each.offset, each.value) for each in take(consumer, 1)] == [(10, b"new")]


def delete_by_confluent(bootstrap: str, topic: str, before: int) -> int:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    (future,) = admin.delete_records([TopicPartition(topic, 0, before)]).values()
    low_watermark: int = future.result(WAIT_S).low_watermark
    return low_watermark


def delete_by_kafka_python(bootstrap: str, topic: str, before: int) -> int:
    admin = KafkaAdminClient(bootstrap_servers=bootstrap)
    try:
        place = KafkaPythonTopicPartition(topic, 0)
        low_watermark: int = admin.delete_records({place: before})[place]["low_watermark"]
        return low_watermark
    finally:
        admin.close()


def delete_by_aiokafka(bootstrap: str, topic: str, before: int) -> int:
    async def delete() -> int:
        admin = AIOKafkaAdminClient(bootstrap_servers=bootstrap)
        await admin.start()
        try:
            place = AioTopicPartition(topic, 0)
            low_watermark: int = (await admin.delete_records({place: RecordsToDelete(before)}))[place]
            return low_watermark
        finally:
            await admin.close()

    return asyncio.run(delete())


@pytest.fixture
def open_transaction(node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName) -> Iterator[str]:
    """A topic with five records, of which the second is the last by time, and one of a transaction that is open."""
    topic = make_topic(1, KEPT)
    records = [Record(b"", timestamp_ms=BEGIN_MS + hour * HOUR_MS) for hour in (3, 9, 5, 9, 1)]
    sent(CLIENTS[0], node.bootstrap, topic, records)
    with CLIENTS[0].producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as producer:
        producer.begin()
        producer.send(topic, Record(b"open", timestamp_ms=BEGIN_MS))
        producer.flush()
        yield topic
        producer.abort()


def test_confluent_kafka_lists_offsets_of_every_kind(session_admin: AdminClient, open_transaction: str) -> None:
    place = TopicPartition(open_transaction, 0)

    def listed(spec: OffsetSpec, isolation: IsolationLevel = IsolationLevel.READ_UNCOMMITTED) -> tuple[int, int]:
        (future,) = session_admin.list_offsets({place: spec}, isolation_level=isolation).values()
        found = future.result(WAIT_S)
        return found.offset, found.timestamp

    assert listed(OffsetSpec.earliest()) == (0, -1)
    assert listed(OffsetSpec.latest()) == (6, -1)
    assert listed(OffsetSpec.latest(), IsolationLevel.READ_COMMITTED) == (5, -1)
    assert listed(OffsetSpec.max_timestamp()) == (1, BEGIN_MS + 9 * HOUR_MS)
    assert listed(OffsetSpec.for_timestamp(BEGIN_MS + 4 * HOUR_MS)) == (1, BEGIN_MS + 9 * HOUR_MS)


def test_kafka_python_lists_offsets_of_every_kind(node: Barnabas, open_transaction: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    place = KafkaPythonTopicPartition(open_transaction, 0)
    try:
        found = {spec: admin.list_partition_offsets({place: spec})[place].offset for spec in KafkaPythonOffsetSpec}
    finally:
        admin.close()
    assert {spec.name: offset for spec, offset in found.items()} == {
        "EARLIEST": 0,
        "LATEST": 6,
        "MAX_TIMESTAMP": 1,
        "EARLIEST_LOCAL": 0,
        "LATEST_TIERED": -1,
    }
