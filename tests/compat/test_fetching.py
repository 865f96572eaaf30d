"""How consumers wait and how much they ask for: sessions over many partitions, long polls, pauses."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from confluent_kafka.admin import AdminClient
from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, WAIT_S, Client, Record, poll_until, sent, take
from tests.compat.clients.confluent import ConfluentConsumer
from tests.compat.conftest import MakeTopic

MANY = 200
QUICK = {"fetch.max.wait.ms": 20}  # a partition that is new waits for the fetch that is under way
FreshName = Callable[[str], str]


def numbered(numbers: range) -> list[Record]:
    return [Record(b"%d" % number, partition=number % MANY) for number in numbers]


def test_a_session_over_many_partitions_brings_what_is_new(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(MANY)
    with client.consumer(node.bootstrap) as consumer, client.producer(node.bootstrap) as producer:
        consumer.assign({(topic, partition): 0 for partition in range(MANY)})
        received: list[int] = []
        # once everywhere, then here and there in a session that is there already
        for numbers in (range(MANY), range(MANY, 2 * MANY, 50), range(2 * MANY, 3 * MANY, 7), range(399, 400)):
            for record in numbered(numbers):
                producer.send(topic, record)
            producer.flush()
            found = sorted(int(each.value or b"") for each in take(consumer, len(numbers)))
            assert found == list(numbers)
            received += found
        assert len(received) == len(set(received))


def test_partitions_come_to_a_session_and_leave_it(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(20)
    with client.consumer(node.bootstrap, QUICK) as consumer, client.producer(node.bootstrap) as producer:
        for turn in range(5):
            # each turn other partitions, some of them those of the turn before
            mine = [(topic, partition) for partition in range(turn * 3, turn * 3 + 8)]
            for partition in range(20):
                producer.send(topic, Record(b"%d" % turn, partition=partition))
            producer.flush()
            consumer.assign(dict.fromkeys(mine, turn))
            found = take(consumer, 8)
            assert sorted((each.topic, each.partition, each.value) for each in found) == [
                (*place, b"%d" % turn) for place in mine
            ]


def test_partitions_are_added_and_taken_away_one_by_one(node: Barnabas, make_topic: MakeTopic) -> None:
    topic = make_topic(10)
    consumer = CLIENTS[0].consumer(node.bootstrap, QUICK)
    assert isinstance(consumer, ConfluentConsumer)
    with consumer, CLIENTS[0].producer(node.bootstrap) as producer:
        for partition in range(10):
            consumer.incremental_assign({(topic, partition): 0})
            producer.send(topic, Record(b"first", partition=partition))
            producer.flush()
            assert [each.partition for each in take(consumer, 1)] == [partition]
        consumer.incremental_unassign([(topic, partition) for partition in range(1, 10)])
        for partition in range(9, -1, -1):
            producer.send(topic, Record(b"second", partition=partition))
            producer.flush()
        assert [(each.partition, each.value) for each in take(consumer, 1)] == [(0, b"second")]


def test_partitions_that_are_paused_bring_nothing_until_they_are_resumed(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(2)
    with client.consumer(node.bootstrap) as consumer, client.producer(node.bootstrap) as producer:
        consumer.assign({(topic, 0): 0, (topic, 1): 0})
        consumer.pause([(topic, 0)])
        for number in range(6):
            producer.send(topic, Record(b"%d" % number, partition=number % 2))
        producer.flush()
        assert [each.value for each in take(consumer, 3)] == [b"1", b"3", b"5"]
        consumer.resume([(topic, 0)])
        assert [each.value for each in take(consumer, 3)] == [b"0", b"2", b"4"]


def test_a_consumer_that_waits_long_gets_a_record_at_once(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    longer_than_take_ms = int(2_000 * WAIT_S)
    timeout = "socket.timeout.ms" if client.name == "confluent" else "request.timeout.ms"
    settings = {"fetch.max.wait.ms": longer_than_take_ms, timeout: longer_than_take_ms + 10_000}
    with client.consumer(node.bootstrap, settings) as consumer, client.producer(node.bootstrap) as producer:
        consumer.assign({(topic, 0): 0})
        for number in range(5):
            producer.send(topic, Record(b"%d" % number))
            producer.flush()
            assert [each.value for each in take(consumer, 1)] == [b"%d" % number]


def test_a_consumer_waits_for_as_many_bytes_as_it_wants(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    settings = {"fetch.max.wait.ms": 50_000, "fetch.min.bytes": 5000}
    if client.name != "confluent":
        settings["request.timeout.ms"] = 60_000
    with client.consumer(node.bootstrap, settings) as consumer, client.producer(node.bootstrap) as producer:
        consumer.assign({(topic, 0): 0})
        producer.send(topic, Record(b"x" * 1000))
        producer.flush()
        assert consumer.poll(0.3) == []
        producer.send(topic, Record(b"y" * 5000))
        producer.flush()
        assert [len(each.value or b"") for each in take(consumer, 2)] == [1000, 5000]


def test_a_consumer_does_not_wait_longer_than_it_wants(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"few")])
    settings = {"fetch.max.wait.ms": 100, "fetch.min.bytes": 1_000_000}
    with client.consumer(node.bootstrap, settings) as consumer:
        consumer.assign({(topic, 0): 0})
        assert [each.value for each in take(consumer, 1)] == [b"few"]


def test_a_topic_that_is_made_again_is_read_from_its_beginning(
    node: Barnabas, make_topic: MakeTopic, session_admin: AdminClient, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic(name=fresh_name("again"))
    sent(client, node.bootstrap, topic, [Record(b"old")] * 3)
    for future in session_admin.delete_topics([topic]).values():
        future.result(WAIT_S)
    make_topic(name=topic)
    sent(client, node.bootstrap, topic, [Record(b"new")])
    with client.consumer(node.bootstrap) as consumer:
        consumer.assign({(topic, 0): 0})
        assert [(each.offset, each.value) for each in take(consumer, 1)] == [(0, b"new")]


@pytest.mark.parametrize("isolation_level", ["read_uncommitted", "read_committed"])
def test_a_consumer_reads_to_the_end_and_waits_there(
    node: Barnabas, make_topic: MakeTopic, client: Client, isolation_level: str
) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"x" * 10_000)] * 150, linger_ms=5)
    with client.consumer(node.bootstrap, {"isolation.level": isolation_level}) as consumer:
        consumer.assign({(topic, 0): 0})
        (received,) = poll_until([consumer], lambda: consumer.is_at((topic, 0), 150), "the end")
        assert [each.offset for each in received] == list(range(150))
