"""Quotas as librdkafka sees them: it is told its throttle times, and its records arrive."""

from __future__ import annotations

from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from tools.apache_kafka import Barnabas

from barnabas.client.sync import Admin
from tests.compat.conftest import MakeTopic

VALUE = b"v" * 100_000
COUNT = 12
WAIT_S = 60.0


def produced(config: dict[str, Any], topic: str) -> None:
    producer = Producer({**config, "linger.ms": 0, "batch.num.messages": 1})
    errors: list[object] = []
    for _ in range(COUNT):
        producer.produce(topic, VALUE, on_delivery=lambda error, message: errors.append(error))
    assert producer.flush(WAIT_S) == 0
    assert errors == [None] * COUNT


def consumed(config: dict[str, Any], topic: str) -> int:
    consumer = Consumer({**config, "group.id": topic, "fetch.message.max.bytes": 200_000})
    consumer.assign([TopicPartition(topic, 0, 0)])
    found = len(consumer.consume(COUNT, WAIT_S))
    consumer.close()
    return found


@pytest.mark.parametrize(("key", "rate"), [("producer_byte_rate", 110_000.0), ("consumer_byte_rate", 110_000.0)])
def test_librdkafka_is_told_how_long_it_is_throttled(
    node: Barnabas, make_topic: MakeTopic, key: str, rate: float
) -> None:
    topic = make_topic()
    name = f"{topic}-client"
    with Admin({"bootstrap.servers": node.bootstrap}) as admin:
        admin.alter_client_quotas({(("client-id", name),): {key: rate}})
    times_s: list[float] = []
    plain = {"bootstrap.servers": node.bootstrap}
    limited = {**plain, "client.id": name, "throttle_cb": lambda event: times_s.append(event.throttle_time)}
    produced(limited if key == "producer_byte_rate" else plain, topic)
    assert consumed(limited if key == "consumer_byte_rate" else plain, topic) == COUNT
    assert max(times_s) > 0
