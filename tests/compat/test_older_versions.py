"""A client that believes the node to be older asks in older versions, and is answered in them."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, Record, received, sent, take
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]
KAFKA_PYTHON = CLIENTS[2]

VERSIONS = [(2, 1), (2, 4), (2, 8), (3, 5)]  # 2.1 is the oldest that Kafka 4 is for


@pytest.fixture(params=VERSIONS, ids=[".".join(map(str, each)) for each in VERSIONS])
def version(request: pytest.FixtureRequest) -> tuple[int, int]:
    found: tuple[int, int] = request.param
    return found


def test_records_are_written_and_read(node: Barnabas, make_topic: MakeTopic, version: tuple[int, int]) -> None:
    topic = make_topic()
    records = [Record(b"%d" % number, b"key", (("header", b""),), 1_000_000_000_000) for number in range(20)]
    sent(KAFKA_PYTHON, node.bootstrap, topic, records, api_version=version, compression_type="gzip")
    found = received(KAFKA_PYTHON, node.bootstrap, topic, 20, api_version=version)
    assert [each.content for each in found] == [each.content for each in records]


def test_a_transaction_copies_what_a_member_has_read(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, version: tuple[int, int]
) -> None:
    source, target, group = make_topic(), make_topic(), fresh_name("group")
    sent(KAFKA_PYTHON, node.bootstrap, source, [Record(b"%d" % number) for number in range(10)], api_version=version)
    settings = {"api.version": version}
    reading = {"group.id": group, "isolation.level": "read_committed", "auto.offset.reset": "earliest"}
    with (
        KAFKA_PYTHON.producer(node.bootstrap, {"transactional.id": fresh_name("txn"), **settings}) as producer,
        KAFKA_PYTHON.consumer(node.bootstrap, {**reading, **settings}) as member,
    ):
        member.subscribe([source])
        found = take(member, 10)
        for commits in (False, True):
            producer.begin()
            for each in found:
                producer.send(target, Record(each.value))
            producer.flush()
            producer.send_offsets({(source, 0): 10}, member)
            if commits:
                producer.commit()
            else:
                producer.abort()
    copied = received(KAFKA_PYTHON, node.bootstrap, target, 10, isolation_level="read_committed", api_version=version)
    assert [each.value for each in copied] == [b"%d" % number for number in range(10)]
    with KAFKA_PYTHON.consumer(node.bootstrap, {**reading, **settings}) as member:
        assert member.committed([(source, 0)]) == {(source, 0): 10}
