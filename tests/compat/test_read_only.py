"""Directories that a node of Apache Kafka left, after the end of its cluster, as librdkafka reads them from a node."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import (
    OFFSET_BEGINNING,
    Consumer,
    ConsumerGroupTopicPartitions,
    KafkaError,
    KafkaException,
    Producer,
    TopicPartition,
)
from confluent_kafka.admin import AdminClient

from tests.compat.clients import WAIT_S
from tests.storage import golden
from tests.storage.looking import state
from tests.testing.test_serve_ready_file import running

ABORTED = {3, 5, 13, 14, 16}  # and markers between them


@pytest.fixture(scope="module")
def bootstrap(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Where the node is; in the end not a byte of the directories has changed."""
    node = golden.extract_node(tmp_path_factory.mktemp("golden"))
    before = state(node)
    ready = tmp_path_factory.mktemp("ready") / "ready"
    with running(ready, "--port", 0, "--read-only", node) as (_, told):
        yield told["bootstrap.servers"]
    assert state(node) == before


def stored(topic: str) -> list[tuple[int, str | None]]:
    """The records of the only partition of a topic that this node has, without markers."""
    return [
        (record["offset"], record["value"])
        for file, batches in golden.data_batches().items()
        if file.split("/")[1] == f"{topic}-0"
        for batch in batches
        if not batch["control"]
        for record in batch["records"]
    ]


def read(bootstrap: str, topic: str, isolation: str = "read_uncommitted") -> list[tuple[int, str | None]]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap,
        "group.id": "looks-only",
        "enable.auto.commit": False,
        "enable.partition.eof": True,
        "isolation.level": isolation,
        "log_level": 0,
    }
    consumer = Consumer(settings)
    consumer.assign([TopicPartition(topic, 0, OFFSET_BEGINNING)])
    found: list[tuple[int, str | None]] = []
    try:
        while True:
            message = consumer.poll(WAIT_S)
            assert message is not None
            error = message.error()
            if error is not None:
                assert error.code() == KafkaError._PARTITION_EOF
                return found
            value, offset = message.value(), message.offset()
            assert offset is not None
            found.append((offset, None if value is None else value.hex()))
    finally:
        consumer.close()


@pytest.mark.parametrize("topic", ["d-none", "d-gzip", "d-snappy", "d-lz4", "d-zstd", "d-txn", "d-compact"])
def test_every_record_is_read(bootstrap: str, topic: str) -> None:
    assert read(bootstrap, topic) == stored(topic) != []


def test_what_was_aborted_is_not_seen_by_readers_of_committed_records(bootstrap: str) -> None:
    found = read(bootstrap, "d-txn", "read_committed")
    assert found == [record for record in stored("d-txn") if record[0] not in ABORTED]


def test_groups_are_shown_with_their_offsets(bootstrap: str) -> None:
    admin = AdminClient({"bootstrap.servers": bootstrap, "log_level": 0})
    listed = admin.list_consumer_groups().result(WAIT_S)
    assert {each.group_id for each in listed.valid} == {"g-simple", "g-classic", "g-consumer-empty"}
    asked = ConsumerGroupTopicPartitions("g-classic")
    (answer,) = admin.list_consumer_group_offsets([asked]).values()
    offsets = {(each.topic, each.partition): each.offset for each in answer.result(WAIT_S).topic_partitions}
    assert offsets == {("d-none", 0): 30, ("d-none", 1): 30, ("d-gzip", 0): 60}


def test_a_producer_and_a_commit_are_refused_at_once(bootstrap: str) -> None:
    told: list[Any] = []
    producer = Producer({"bootstrap.servers": bootstrap, "log_level": 0})
    producer.produce("d-none", b"x", partition=0, on_delivery=lambda error, message: told.append(error))
    assert producer.flush(WAIT_S) == 0
    assert told[0].code() == KafkaError.POLICY_VIOLATION
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g-classic", "log_level": 0})
    with pytest.raises(KafkaException) as refused:
        consumer.commit(offsets=[TopicPartition("d-none", 0, 1)], asynchronous=False)
    assert refused.value.args[0].code() == KafkaError.POLICY_VIOLATION
    consumer.close()
