"""Transactions: all or nothing, for readers that ask for it, and once only."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial

import pytest
from kafka.admin import AbortTransactionSpec, KafkaAdminClient
from kafka.structs import TopicPartition
from tools.apache_kafka import Barnabas

from tests.compat.clients import (
    CLIENTS,
    POLL_S,
    Client,
    Consumer,
    Place,
    Record,
    RefusedError,
    received,
    sent,
    take,
    wait_until,
)
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]

END_OF_TOPIC = b"the end"


def values(client: Client, node: Barnabas, topic: str, isolation_level: str, partitions: int = 1) -> list[bytes | None]:
    """All values in a topic that readers of this isolation level see, by partition, up to the end that is written here."""
    ends = [Record(END_OF_TOPIC, partition=partition) for partition in range(partitions)]
    sent(CLIENTS[0], node.bootstrap, topic, ends)
    found: list[Record] = []
    with client.consumer(node.bootstrap, {"isolation.level": isolation_level}) as consumer:
        consumer.assign({(topic, partition): 0 for partition in range(partitions)})
        wait_until(
            lambda: {each.partition for each in found if each.value == END_OF_TOPIC} == set(range(partitions)),
            lambda: found.extend(consumer.poll(POLL_S)),
            "the end of the topic",
        )
    return [each.value for each in sorted(found, key=_place) if each.value != END_OF_TOPIC]


def _place(record: Record) -> tuple[int | None, int]:
    return record.partition, record.offset


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic(3)
    with client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as producer:
        for number in range(6):
            producer.begin()
            for each in range(9):
                producer.send(topic, Record(b"%d-%d" % (number, each), partition=each % 3))
            if number % 3 == 1:
                producer.flush()
                producer.abort()
            else:
                producer.commit()
    everything = [b"%d-%d" % (number, each) for part in range(3) for number in range(6) for each in range(part, 9, 3)]
    committed = [value for value in everything if value[:1] not in (b"1", b"4")]
    for reader in CLIENTS:
        assert values(reader, node, topic, "read_uncommitted", 3) == everything, reader.name
        assert values(reader, node, topic, "read_committed", 3) == committed, reader.name


def test_an_open_transaction_holds_back_what_comes_after_it(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic()
    sent(client, node.bootstrap, topic, [Record(b"before")])
    with client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as producer:
        producer.begin()
        producer.send(topic, Record(b"open"))
        producer.flush()
        sent(client, node.bootstrap, topic, [Record(b"after")])
        settings = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}
        with client.consumer(node.bootstrap, settings) as consumer:
            consumer.assign({(topic, 0): 0})
            assert [each.value for each in take(consumer, 1)] == [b"before"]
            all_of_it = received(client, node.bootstrap, topic, 3, isolation_level="read_uncommitted")
            assert [each.value for each in all_of_it] == [b"before", b"open", b"after"]
            assert consumer.poll(0.2) == []
            producer.commit()
            assert [each.value for each in take(consumer, 2)] == [b"open", b"after"]


def test_two_transactions_that_overlap_end_each_for_itself(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic()
    with (
        client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as one,
        client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as other,
    ):
        for producer in (one, other):
            producer.begin()
        for number in range(4):
            for name, producer in ((b"one", one), (b"other", other)):
                producer.send(topic, Record(b"%s %d" % (name, number)))
                producer.flush()
        other.abort()
        one.commit()
    assert values(client, node, topic, "read_committed") == [b"one %d" % number for number in range(4)]


def test_a_transaction_of_nothing_ends(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic()
    with client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as producer:
        producer.begin()
        producer.commit()
        producer.begin()
        producer.abort()
        producer.begin()
        producer.send(topic, Record(b"something"))
        producer.commit()
    assert values(client, node, topic, "read_committed") == [b"something"]


def test_a_second_producer_of_the_same_id_fences_the_first(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic, transactional_id = make_topic(), fresh_name("txn")
    with client.producer(node.bootstrap, {"transactional.id": transactional_id}) as first:
        first.begin()
        first.send(topic, Record(b"of the first"))
        first.flush()
        with client.producer(node.bootstrap, {"transactional.id": transactional_id}) as second:
            with pytest.raises(RefusedError) as refused:
                first.commit()
            assert refused.value.is_fenced
            second.begin()
            second.send(topic, Record(b"of the second"))
            second.commit()
    assert values(client, node, topic, "read_committed") == [b"of the second"]


def test_a_transaction_that_takes_too_long_is_aborted(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic, transactional_id = make_topic(), fresh_name("txn")
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 1000}
    with client.producer(node.bootstrap, settings) as producer:
        producer.begin()
        producer.send(topic, Record(b"too late"))
        producer.flush()
        assert values(client, node, topic, "read_committed") == []  # waits for the end of the transaction
        with pytest.raises(RefusedError) as refused:
            producer.commit()
        assert refused.value.is_fenced


def _has_committed(consumer: Consumer, wanted: Mapping[Place, int | None]) -> bool:
    return consumer.committed(wanted) == wanted


def test_a_loop_of_transactions_copies_each_record_once(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    source, target, group = make_topic(2), make_topic(2), fresh_name("group")
    sent(client, node.bootstrap, source, [Record(b"%d" % number, partition=number % 2) for number in range(40)])
    places = [(source, 0), (source, 1)]
    settings = {"group.id": group, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    rounds = 0
    with client.producer(node.bootstrap, {"transactional.id": fresh_name("txn")}) as producer:
        positions: dict[Place, int] = dict.fromkeys(places, 0)
        while sum(positions.values()) < 40:
            with client.consumer(node.bootstrap, settings) as consumer:
                consumer.subscribe([source])
                records = take(consumer, 1)
                after = dict(positions)
                assert [each for each in records if each.offset < positions[each.topic, each.partition or 0]] == []
                producer.begin()
                for each in records[:20]:
                    producer.send(target, Record(each.value, partition=each.partition))
                    after[source, each.partition or 0] = each.offset + 1
                changed = {place: offset for place, offset in after.items() if offset != positions[place]}
                producer.flush()
                producer.send_offsets(changed, consumer)
                if rounds % 2 == 0:
                    producer.abort()
                else:
                    producer.commit()
                    positions = after
                rounds += 1
                wanted = {place: offset or None for place, offset in positions.items()}
                # the coordinator answers before its markers are written
                wait_until(partial(_has_committed, consumer, wanted), lambda: None, "the commit")
    assert rounds >= 4
    copied = values(client, node, target, "read_committed", 2)
    assert copied == [b"%d" % number for part in range(2) for number in range(part, 40, 2)]


@pytest.fixture
def admin(node: Barnabas) -> Iterator[KafkaAdminClient]:
    client = KafkaAdminClient(bootstrap_servers=node.bootstrap)
    yield client
    client.close()


def test_an_admin_sees_transactions_and_their_producers(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client, admin: KafkaAdminClient
) -> None:
    topic, transactional_id = make_topic(2), fresh_name("listed")
    settings = {"transactional.id": transactional_id, "transaction.timeout.ms": 60_000}
    with client.producer(node.bootstrap, settings) as producer:
        producer.begin()
        producer.send(topic, Record(b"open", partition=1))
        producer.flush()
        (listed,) = (each for each in admin.list_transactions()[1] if each.transactional_id == transactional_id)
        assert listed.state.value == "Ongoing"
        described = admin.describe_transactions([transactional_id])[transactional_id]
        assert (described.state.value, described.transaction_timeout_ms) == ("Ongoing", 60_000)
        assert (described.producer_id, described.topic_partitions) == (listed.producer_id, {TopicPartition(topic, 1)})
        place = TopicPartition(topic, 1)
        (active,) = admin.describe_producers([place])[place].active_producers
        assert (active.producer_id, active.current_transaction_start_offset) == (listed.producer_id, 0)
        producer.commit()
        wait_until(
            lambda: admin.describe_transactions([transactional_id])[transactional_id].state.value == "CompleteCommit",
            lambda: None,
            "the end of the transaction",
        )
        (ended,) = admin.describe_producers([place])[place].active_producers
        assert (ended.producer_id, ended.current_transaction_start_offset) == (listed.producer_id, -1)


def test_an_admin_may_abort_a_transaction_of_a_partition(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client, admin: KafkaAdminClient
) -> None:
    topic = make_topic()
    place = TopicPartition(topic, 0)
    with client.producer(node.bootstrap, {"transactional.id": fresh_name("aborted")}) as producer:
        producer.begin()
        producer.send(topic, Record(b"hanging"))
        producer.flush()
        (active,) = admin.describe_producers([place])[place].active_producers
        admin.abort_transaction(AbortTransactionSpec(place, active.producer_id, active.producer_epoch))
        assert values(client, node, topic, "read_committed") == []
        producer.abort()
