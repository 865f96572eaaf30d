"""A compacted topic as consumers see it: of each key the last value, at its offset."""

from __future__ import annotations

from collections.abc import Callable

from tools.apache_kafka import Barnabas

from tests.compat.clients import CLIENTS, Client, Record, poll_until, received, sent, wait_until
from tests.compat.conftest import MakeTopic

FreshName = Callable[[str], str]

COMPACTED = {
    "cleanup.policy": "compact",
    "segment.ms": "100",
    "min.cleanable.dirty.ratio": "0.01",
    "delete.retention.ms": "0",
}
FILLER = b"filler"
READ_COMMITTED = {"isolation.level": "read_committed", "auto.offset.reset": "earliest"}


def written(
    node: Barnabas, client: Client, topic: str, transactional_id: str
) -> list[tuple[bytes | None, bytes | None]]:
    """Many values of few keys, one that is deleted and one in a transaction that is aborted: what is left of them."""
    records = [Record(b"%d" % number, b"key %d" % (number % 10)) for number in range(300)]
    sent(client, node.bootstrap, topic, [*records, Record(None, b"key 9")], linger_ms=2)
    with client.producer(node.bootstrap, {"transactional.id": transactional_id}) as producer:
        for value in (b"committed", b"aborted"):
            producer.begin()
            producer.send(topic, Record(value, b"key 0"))
            producer.flush()
            if value == b"aborted":
                producer.abort()
            else:
                producer.commit()
    return [*((b"key %d" % number, b"%d" % (290 + number)) for number in range(1, 9)), (b"key 0", b"committed")]


def test_of_each_key_the_last_value_is_left(
    node: Barnabas, make_topic: MakeTopic, fresh_name: FreshName, client: Client
) -> None:
    topic = make_topic(config=COMPACTED)
    left = written(node, client, topic, fresh_name("txn"))
    seen: list[Record] = []
    with client.producer(node.bootstrap) as producer, client.consumer(node.bootstrap, READ_COMMITTED) as consumer:

        def read_again() -> None:
            producer.send(topic, Record(b"", FILLER))  # ends the segment before it, which can be compacted then
            ((_, last),) = producer.flush()
            consumer.assign({(topic, 0): 0})
            (seen[:],) = poll_until([consumer], lambda: consumer.is_at((topic, 0), last + 1), "the end")

        def is_compacted() -> bool:
            return [(each.key, each.value) for each in seen if each.key != FILLER] == left

        wait_until(is_compacted, read_again, "the compaction")
    for reader in CLIENTS:
        found = received(reader, node.bootstrap, topic, len(left), isolation_level="read_committed")
        kept = [each for each in found if each.key != FILLER]
        assert [(each.key, each.value) for each in kept] == left
        assert [each.offset for each in kept] == [*range(291, 299), 301]
