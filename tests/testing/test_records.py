"""Records go in and come out with the clients that people use, and `records` shows what is there."""

from __future__ import annotations

import asyncio
import threading
import time

import pytest
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer
from confluent_kafka import Consumer, Producer, TopicPartition
from kafka import KafkaConsumer, KafkaProducer
from kafka import TopicPartition as KafkaPythonPartition

from barnabas.testing import Broker, Record
from barnabas.wire import ErrorCode, KafkaError

TIMEOUT_S = 20
CODECS = ["none", "gzip", "snappy", "lz4", "zstd"]


def produced(broker: Broker, topic: str, *values: bytes, **settings: object) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, **settings})
    for value in values:
        producer.produce(topic, value)
    assert producer.flush(TIMEOUT_S) == 0


def consumed(broker: Broker, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": broker.bootstrap_servers, "group.id": "none", "enable.auto.commit": False}
    )
    consumer.assign([TopicPartition(topic, 0, 0)])
    deadline_s = time.monotonic() + TIMEOUT_S
    values: list[bytes | None] = []
    while len(values) < count and time.monotonic() < deadline_s:
        message = consumer.poll(0.1)
        if message is not None:
            assert message.error() is None
            values.append(message.value())
    consumer.close()
    return values


@pytest.mark.parametrize("codec", CODECS)
def test_confluent_kafka_writes_and_reads(codec: str) -> None:
    with Broker(["orders"]) as broker:
        values = [b"%d" % number * 100 for number in range(100)]
        produced(broker, "orders", *values, **{"compression.type": codec})
        assert [record.value for record in broker.records("orders")] == values
        assert consumed(broker, "orders", 100) == values


def test_aiokafka_writes_and_reads_in_the_loop_of_the_broker() -> None:
    async def main() -> None:
        async with Broker(["orders"]) as broker:
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait("orders", b"value", key=b"key", headers=[("h", b"1")], timestamp_ms=5)
            assert await broker.records("orders") == [Record(0, 0, 5, b"key", b"value", (("h", b"1"),))]
            settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
            async with AIOKafkaConsumer("orders", **settings) as consumer, asyncio.timeout(TIMEOUT_S):
                assert (await consumer.getone()).value == b"value"

    asyncio.run(main())


def test_kafka_python_writes_and_reads() -> None:
    with Broker(["orders"]) as broker:
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap_servers)
        producer.send("orders", b"value", key=b"key").get(TIMEOUT_S)
        producer.close()
        consumer = KafkaConsumer(bootstrap_servers=broker.bootstrap_servers, consumer_timeout_ms=TIMEOUT_S * 1000)
        partition = KafkaPythonPartition("orders", 0)
        consumer.assign([partition])
        consumer.seek_to_beginning(partition)
        assert next(consumer).value == b"value"
        consumer.close()


def test_records_stand_by_partition_and_offset_with_all_that_they_have() -> None:
    with Broker({"orders": 3}) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        producer.produce("orders", b"last", partition=2, timestamp=30)
        producer.produce("orders", None, b"key", partition=0, timestamp=10, headers=[("a", b"1"), ("b", None)])
        producer.produce("orders", b"", b"", partition=0, timestamp=20)
        assert producer.flush(TIMEOUT_S) == 0
        assert broker.records("orders") == [
            Record(0, 0, 10, b"key", None, (("a", b"1"), ("b", None))),
            Record(0, 1, 20, b"", b"", ()),
            Record(2, 0, 30, None, b"last", ()),
        ]


def test_they_are_waited_for_even_before_there_is_a_topic() -> None:
    with Broker() as broker:
        late = threading.Timer(0.2, produced, (broker, "late", b"1", b"2"))
        late.start()
        assert [record.value for record in broker.records("late", count=2, timeout_s=TIMEOUT_S)] == [b"1", b"2"]
        late.join()


def test_what_does_not_come_is_said_with_what_came() -> None:
    with Broker(["orders"]) as broker:
        produced(broker, "orders", b"only one")
        with pytest.raises(TimeoutError, match=r"1 records after 0\.1 s, not 2: .*only one"):
            broker.records("orders", count=2, timeout_s=0.1)
        with pytest.raises(KafkaError) as refused:
            broker.records("oders")
        assert refused.value.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_what_was_acknowledged_is_there_after_a_restart() -> None:
    with Broker(["orders"]) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "log_level": 0})
        for number in range(10):
            producer.produce("orders", b"%d" % number)
        assert producer.flush(TIMEOUT_S) == 0
        broker.restart()
        producer.produce("orders", b"after")
        assert producer.flush(TIMEOUT_S) == 0
        assert [record.value for record in broker.records("orders")] == [*(b"%d" % n for n in range(10)), b"after"]


def test_only_what_is_committed_is_shown() -> None:
    with Broker(["orders"]) as broker:
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "shop"})
        producer.init_transactions(TIMEOUT_S)
        for value, end in ((b"first", producer.commit_transaction), (b"taken back", producer.abort_transaction)):
            producer.begin_transaction()
            producer.produce("orders", value)
            producer.flush(TIMEOUT_S)
            assert value not in [record.value for record in broker.records("orders")]
            end(TIMEOUT_S)
        producer.begin_transaction()
        producer.produce("orders", b"second")
        producer.commit_transaction(TIMEOUT_S)
        assert [record.value for record in broker.records("orders", count=2)] == [b"first", b"second"]


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_group_goes_on_after_a_restart_where_it_had_come_to(protocol: str) -> None:
    def read_one() -> bytes | None:
        group = {"group.id": "shop", "auto.offset.reset": "earliest", "group.protocol": protocol, "log_level": 0}
        consumer = Consumer({"bootstrap.servers": broker.bootstrap_servers, "enable.auto.commit": False, **group})
        consumer.subscribe(["orders"])
        message = consumer.poll(TIMEOUT_S)
        assert message is not None and message.error() is None
        consumer.commit(message=message, asynchronous=False)
        consumer.close()
        return message.value()

    with Broker(["orders"]) as broker:
        produced(broker, "orders", b"1", b"2")
        assert read_one() == b"1"
        broker.restart()
        assert read_one() == b"2"


def test_groups_of_aiokafka_and_kafka_python_read() -> None:
    async def read_in_loop() -> bytes | None:
        async with Broker(["orders"]) as broker:
            settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
            async with AIOKafkaProducer(bootstrap_servers=broker.bootstrap_servers) as producer:
                await producer.send_and_wait("orders", b"1")
            async with AIOKafkaConsumer("orders", group_id="shop", **settings) as consumer, asyncio.timeout(TIMEOUT_S):
                value: bytes | None = (await consumer.getone()).value
                return value

    assert asyncio.run(read_in_loop()) == b"1"
    with Broker(["orders"]) as broker:
        produced(broker, "orders", b"2")
        settings = {"bootstrap_servers": broker.bootstrap_servers, "auto_offset_reset": "earliest"}
        consumer = KafkaConsumer("orders", group_id="shop", consumer_timeout_ms=TIMEOUT_S * 1000, **settings)
        assert next(consumer).value == b"2"
        consumer.close()
