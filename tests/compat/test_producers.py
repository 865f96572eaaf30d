"""Producers: once and in order, to topics that are not there yet, and while the node comes and goes."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

import pytest
from tools.apache_kafka import Barnabas

from barnabas.testing import Broker
from barnabas.wire import KafkaError
from tests.compat.clients import CLIENTS, Client, Record, RefusedError, received, sent
from tests.compat.conftest import WHERE_NODES_END, MakeTopic

FreshName = Callable[[str], str]

INVALID_TOPIC = 17
INVALID_TIMESTAMP = 32

pytestmark = WHERE_NODES_END


def test_an_idempotent_producer_writes_each_record_once_and_in_order(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(4)
    records = [Record(b"%d" % number, partition=number % 4) for number in range(2000)]
    sent(client, node.bootstrap, topic, records, enable_idempotence=True, linger_ms=2)
    found = received(client, node.bootstrap, topic, 2000, partitions=4)
    for partition in range(4):
        values = [int(each.value or b"") for each in found if each.partition == partition]
        assert values == list(range(partition, 2000, 4))


def test_a_record_of_a_time_to_come_is_refused(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    tomorrow_ms = int(time.time() * 1000) + 86_400_000
    with client.producer(node.bootstrap, {"enable.idempotence": False}) as producer:
        producer.send(topic, Record(b"too early", timestamp_ms=tomorrow_ms))
        with pytest.raises(RefusedError) as refused:
            producer.flush()
    assert refused.value.code == INVALID_TIMESTAMP


@pytest.mark.parametrize(
    "client", CLIENTS[:2], ids=[each.name for each in CLIENTS[:2]]
)  # kafka-python refuses by itself
def test_an_internal_topic_is_not_for_producers(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    place = (make_topic(), 0)
    with client.consumer(node.bootstrap, {"group.id": fresh_name("group")}) as consumer:
        consumer.assign({place: 0})
        consumer.commit({place: 0})  # now there is one
    with client.producer(node.bootstrap, {"enable.idempotence": False}) as producer:
        producer.send("__consumer_offsets", Record(b"not an offset", b"not a group", partition=0))
        with pytest.raises(RefusedError) as refused:
            producer.flush()
    assert refused.value.code == INVALID_TOPIC


def test_a_producer_makes_the_topic_that_it_writes_to(node: Barnabas, fresh_name: FreshName, client: Client) -> None:
    topic = fresh_name("made-by-metadata")
    sent(client, node.bootstrap, topic, [Record(b"first")])
    for reader in CLIENTS:
        assert [each.value for each in received(reader, node.bootstrap, topic, 1)] == [b"first"]


def test_a_producer_outlives_the_node(client: Client) -> None:
    with Broker(topics={"topic": 2}) as broker:
        acknowledged: list[tuple[int, int]] = []
        restarted = threading.Event()
        with client.producer(broker.bootstrap_servers, {"enable.idempotence": True}) as producer:

            def restart() -> None:
                broker.restart()
                restarted.set()

            restarting = threading.Thread(target=restart)
            count = 0
            while not restarted.is_set() or count < 40:
                for _ in range(20):
                    producer.send("topic", Record(b"%d" % count, partition=count % 2))
                    count += 1
                acknowledged += producer.flush()
                if count == 20:
                    restarting.start()
            restarting.join()
        assert len(acknowledged) == count
        records = broker.records("topic")
        for partition in range(2):
            values = [int(each.value or b"") for each in records if each.partition == partition]
            assert values == list(range(partition, count, 2))


IMPATIENT = {
    "confluent": {"message.timeout.ms": 1000, "topic.metadata.propagation.max.ms": 100},
    "aiokafka": {"request.timeout.ms": 1000},
    "kafka-python": {"max.block.ms": 1000},
}


def test_a_topic_that_may_not_be_made_is_not(client: Client) -> None:
    with Broker(config={"auto.create.topics.enable": False}) as broker:
        with client.producer(broker.bootstrap_servers, IMPATIENT[client.name]) as producer, pytest.raises(RefusedError):
            producer.send("missing", Record(b"never written"))
            producer.flush()
        with pytest.raises(KafkaError, match="no topic"):
            broker.records("missing")
