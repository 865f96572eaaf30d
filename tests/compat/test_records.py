"""What a producer sends is what consumers get, whoever wrote the producer and whoever the consumer."""

from __future__ import annotations

import os
import time
from typing import Any

import pytest
from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, Client, Record, RefusedError, received, sent
from tests.compat.conftest import MakeTopic

UNKNOWN = -1
MESSAGE_TOO_LARGE = 10
INVALID_RECORD = 87
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


def now_ms() -> int:
    return int(time.time() * 1000)


NOW_MS = now_ms()
HEADERS = (("one", b"1"), ("one", b"2"), ("nothing", None), ("empty", b""), ("schlüssel 🔑", "wert ✓".encode()))
KINDS = [
    Record(b"value", b"key", (), NOW_MS),
    Record(b"no key", None, (), NOW_MS),
    Record(None, b"a tombstone", (), NOW_MS + 1),
    Record(b"", b"", (), NOW_MS),
    Record(None, None, (), NOW_MS),
    Record(b"\x00\xff" * 50, "ключ".encode(), HEADERS, NOW_MS - 1000),
]
PLAIN = [Record(b"%d " % number * 20, b"%d" % (number % 7), HEADERS[:1], NOW_MS) for number in range(300)]
MADE = [(each, codec) for each in CLIENTS for codec in CODECS if codec in each.codecs]


def kinds(client: Client) -> list[Record]:
    """All kinds of records that a client can send."""
    records = [
        each for each in KINDS + PLAIN if client.sends_null_records or each.key is not None or each.value is not None
    ]
    if client.sends_null_headers:
        return records
    return [each._replace(headers=tuple(h for h in each.headers if h[1] is not None)) for each in records]


@pytest.mark.parametrize(("client", "codec"), MADE, ids=[f"{each.name}-{codec}" for each, codec in MADE])
def test_every_client_reads_what_a_client_has_written(
    node: Barnabas, make_topic: MakeTopic, client: Client, codec: str
) -> None:
    topic, records = make_topic(), kinds(client)
    offsets = sent(client, node.bootstrap, topic, records, compression_type=codec, linger_ms=5)
    assert offsets == [(0, offset) for offset in range(len(records))]
    for reader in CLIENTS:
        if codec in reader.codecs:
            found = received(reader, node.bootstrap, topic, len(records))
            assert [each.content for each in found] == [each.content for each in records], reader.name
            assert [(each.partition, each.offset) for each in found] == offsets


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_records_are_written_with_any_acks(node: Barnabas, make_topic: MakeTopic, client: Client, acks: str) -> None:
    topic = make_topic()
    wanted: Any = acks if acks == "all" or client.name == "confluent" else int(acks)
    sent(client, node.bootstrap, topic, PLAIN[:10], acks=wanted, enable_idempotence=False)
    assert [each.content for each in received(client, node.bootstrap, topic, 10)] == [
        each.content for each in PLAIN[:10]
    ]


def test_records_without_a_time_get_the_one_of_their_producer(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic, before_ms = make_topic(), now_ms()
    sent(client, node.bootstrap, topic, [Record(b"now")])
    (found,) = received(client, node.bootstrap, topic, 1)
    assert found.timestamp_ms is not None
    assert before_ms <= found.timestamp_ms <= now_ms()
    assert not found.is_log_append_time


def test_a_topic_can_stamp_its_own_time(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic, before_ms = make_topic(config={"message.timestamp.type": "LogAppendTime"}), now_ms()
    sent(client, node.bootstrap, topic, [Record(b"%d" % number, timestamp_ms=1) for number in range(3)])
    for reader in CLIENTS:
        for found in received(reader, node.bootstrap, topic, 3):
            assert found.is_log_append_time
            assert found.timestamp_ms is not None
            assert before_ms <= found.timestamp_ms <= now_ms()


@pytest.mark.parametrize("wanted", ["uncompressed", "gzip", "zstd"])
def test_a_topic_that_asks_for_a_codec_gets_it(node: Barnabas, make_topic: MakeTopic, wanted: str) -> None:
    topic = make_topic(config={"compression.type": wanted})
    for writer in CLIENTS:
        sent(writer, node.bootstrap, topic, PLAIN[:50], compression_type="gzip", linger_ms=5)
    for reader in CLIENTS:
        if wanted in {*reader.codecs, "uncompressed"}:
            found = received(reader, node.bootstrap, topic, 150)
            assert [each.content for each in found] == [each.content for each in PLAIN[:50]] * 3


def test_a_record_may_be_nearly_a_megabyte(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    big = [Record(os.urandom(900_000)), Record(b"small"), Record(os.urandom(900_000), b"k" * 90_000)]
    sent(client, node.bootstrap, topic, big)
    for reader in CLIENTS:
        found = received(reader, node.bootstrap, topic, 3)
        assert [(each.key, each.value) for each in found] == [(each.key, each.value) for each in big]


def test_a_record_larger_than_what_a_fetch_asks_for_comes_alone(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic()
    big = [Record(os.urandom(100_000)) for _ in range(4)]
    with client.producer(node.bootstrap) as producer:
        for record in big:
            producer.send(topic, record)
            producer.flush()
    found = received(client, node.bootstrap, topic, 4, max_partition_fetch_bytes=1024)
    assert [each.value for each in found] == [each.value for each in big]


def test_a_record_larger_than_the_topic_allows_is_refused_and_others_are_not(
    node: Barnabas, make_topic: MakeTopic, client: Client
) -> None:
    topic = make_topic(config={"max.message.bytes": "10000"})
    # an idempotent producer of kafka-python ends with what was refused
    with client.producer(node.bootstrap, {"enable.idempotence": False}) as producer:
        producer.send(topic, Record(b"before"))
        producer.flush()
        producer.send(topic, Record(os.urandom(20_000)))
        with pytest.raises(RefusedError) as refused:
            producer.flush()
        assert refused.value.code == MESSAGE_TOO_LARGE
        producer.send(topic, Record(b"after"))
        producer.flush()
    assert [each.value for each in received(client, node.bootstrap, topic, 2)] == [b"before", b"after"]


def test_a_record_larger_than_the_default_is_refused(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic()
    with client.producer(node.bootstrap, {"max.request.size": 3_000_000}) as producer:
        producer.send(topic, Record(os.urandom(2_000_000)))
        with pytest.raises(RefusedError) as refused:
            producer.flush()
        assert refused.value.code == MESSAGE_TOO_LARGE


def test_a_topic_may_allow_more_than_the_default(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(config={"max.message.bytes": "4000000"})
    big = os.urandom(3_000_000)
    sent(client, node.bootstrap, topic, [Record(big)], max_request_size=4_000_000)
    assert [each.value for each in received(client, node.bootstrap, topic, 1)] == [big]


def test_a_compacted_topic_refuses_records_without_a_key(node: Barnabas, make_topic: MakeTopic, client: Client) -> None:
    topic = make_topic(config={"cleanup.policy": "compact"})
    with client.producer(node.bootstrap) as producer:
        producer.send(topic, Record(b"kept", b"key"))
        producer.flush()
        producer.send(topic, Record(b"no key"))
        with pytest.raises(RefusedError) as refused:
            producer.flush()
        assert refused.value.code == (INVALID_RECORD if client.name != "aiokafka" else UNKNOWN)  # it has no name for it
