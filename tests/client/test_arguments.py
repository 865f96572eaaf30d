"""Arguments of a wrong type: an error names the argument, the type it has, and what to pass instead."""

from __future__ import annotations

import array
import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest

from barnabas.client import Admin, Cluster, Consumer, Producer
from barnabas.client.admin.topics import NewTopic
from barnabas.client.arguments import _kinds_of, checks_arguments
from barnabas.client.errors import DeserializationError
from barnabas.client.records import ConsumerRecord, TopicPartition
from barnabas.config.values import ConfigError
from barnabas.testing import Broker
from barnabas.wire import Uuid


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2}) as started:
        yield started


def settings(broker: Broker) -> dict[str, object]:
    return {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}


# --- records

Record = dict[str, Any]


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"value": 5},
            "value must be bytes-like or None, not the int 5: encode it to bytes, or pass value_serializer=",
        ),
        (
            {"value": "apples"},
            r"value must be .*, not the str 'apples': encode it, as in 'apples'\.encode\(\), or pass",
        ),
        ({"value": {"a": 1}}, "value must be bytes-like or None, not the dict {'a': 1}"),
        ({"value": [1, 2]}, "value must be bytes-like or None, not the list"),
        ({"value": True}, "value must be bytes-like or None, not the bool True"),
        ({"key": 5}, "key must be bytes-like or None, not the int 5: encode it to bytes, or pass key_serializer="),
        ({"key": "alice"}, "key must be bytes-like or None, not the str 'alice'"),
        ({"headers": {"source": "web"}}, r"headers: the value of 'source' must be .*'web'\.encode\(\)"),
        ({"headers": {"source": 5}}, "headers: the value of 'source' must be bytes-like or None, not the int 5"),
        ({"headers": {b"source": b"web"}}, "headers: a name must be str, not the bytes b'source'"),
        ({"headers": ["source"]}, "headers must be a mapping or .* pairs; the str 'source' is not a pair"),
        ({"headers": "source"}, "headers must be a mapping or .* pairs, not the str 'source'"),
        ({"headers": 5}, "headers must be a mapping or .* pairs, not the int 5"),
        ({"partition": "1"}, "partition must be int or None, not the str '1'"),
        ({"partition": 1.0}, r"partition must be int or None, not the float 1\.0"),
        ({"partition": True}, "partition must be int or None, not the bool True"),
        ({"timestamp_ms": 1.5}, r"timestamp_ms must be int or None, not the float 1\.5: pass milliseconds"),
        ({"topic": b"orders"}, "topic must be str, not the bytes b'orders'"),
        ({"topic": None}, "topic must be str, not None"),
        ({"topic": ["orders"]}, r"topic must be str, not the list \['orders'\]"),
    ],
)
def test_a_record_of_a_wrong_type_is_refused(broker: Broker, record: Record, message: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Producer(settings(broker)) as producer:
            with pytest.raises(TypeError, match=message):
                await producer.send(**{"topic": "orders", "value": b"apples", **record})
            assert (await producer.send_and_wait("orders", b"pears")).offset >= 0  # no batch was harmed

    asyncio.run(main())


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"timestamp_ms": 1 << 63}, "timestamp_ms must be between"),
        ({"timestamp_ms": -2}, "timestamp_ms must be between"),
        ({"headers": {"\ud800": b""}}, "headers: the name .* cannot be encoded"),
    ],
)
def test_a_record_that_cannot_be_encoded_is_refused(broker: Broker, record: Record, message: str) -> None:
    async def main() -> None:
        async with asyncio.timeout(30), Producer(settings(broker)) as producer:
            with pytest.raises(ValueError, match=message):
                await producer.send(**{"topic": "orders", "value": b"apples", **record})

    asyncio.run(main())


def test_everything_bytes_like_is_written_as_its_bytes() -> None:
    async def main(broker: Broker) -> None:
        async with asyncio.timeout(30), Producer(settings(broker)) as producer:
            untyped: Any = producer
            await producer.send("bytes", bytearray(b"a"), memoryview(b"b"), headers=[("c", bytearray(b"d"))])
            await untyped.send("bytes", array.array("B", b"e"), headers=None)
            await untyped.send("bytes", memoryview(b"fxg")[::2], headers=[["h", None]])

    with Broker(["bytes"]) as broker:
        asyncio.run(main(broker))
        written = [(each.key, each.value, each.headers) for each in broker.records("bytes", 3)]
    assert written == [(b"b", b"a", (("c", b"d"),)), (None, b"e", ()), (None, b"fg", (("h", None),))]


# --- serializers


def encode(value: dict[str, int]) -> bytes:
    return json.dumps(value).encode()


def decode(data: bytes) -> dict[str, int]:
    found: dict[str, int] = json.loads(data)
    return found


def test_serializers_write_and_deserializers_read() -> None:
    async def main(broker: Broker) -> list[ConsumerRecord[str, dict[str, int]]]:
        given = settings(broker)
        async with asyncio.timeout(30):
            async with Producer(given, key_serializer=str.encode, value_serializer=encode) as producer:
                await producer.send("orders", {"apples": 2}, "alice")
                await producer.send("orders", None, "alice")
                await producer.send("orders", {"pears": 1}, partition=0)
            async with Consumer(given, key_deserializer=bytes.decode, value_deserializer=decode) as consumer:
                consumer.assign([("orders", 0)])
                first = await consumer.getone()
                rest: list[ConsumerRecord[str, dict[str, int]]] = []
                while len(rest) < 2:
                    rest += await consumer.poll(1_000)
                consumer.seek(("orders", 0), 0)
                raw = [each for rows in (await consumer.getmany(timeout_ms=10_000)).values() for each in rows]
                assert raw[0].value == b'{"apples": 2}'
                return [first, *rest]

    with Broker({"orders": 1}) as broker:
        records = asyncio.run(main(broker))
    assert [(each.key, each.value) for each in records] == [
        ("alice", {"apples": 2}),
        ("alice", None),
        (None, {"pears": 1}),
    ]


def test_a_serializer_must_return_bytes(broker: Broker) -> None:
    async def main() -> None:
        wrong: Any = json.dumps
        untyped: Any = Producer(settings(broker), key_serializer=wrong, value_serializer=lambda _: wrong)
        async with untyped as producer:
            with pytest.raises(TypeError, match="key_serializer must return bytes, not the str '1'"):
                await producer.send("orders", None, 1)
            with pytest.raises(TypeError, match="value_serializer must return bytes, not the function"):
                await producer.send("orders", 1)

    asyncio.run(main())


def test_a_record_that_cannot_be_deserialized_can_be_skipped() -> None:
    async def main(broker: Broker) -> None:
        given = settings(broker)
        async with Producer(given) as producer:
            for value in (b"1", b"2", b"x", b"3"):
                await producer.send("numbers", value, partition=0)
            await producer.send("numbers", b"4", partition=1)
        async with asyncio.timeout(30), Consumer(given, value_deserializer=int) as consumer:
            consumer.assign([("numbers", 0), ("numbers", 1)])
            found: list[int | None] = []
            bad = 0
            while len(found) < 4:
                try:
                    found += [each.value for each in await consumer.poll(1_000)]
                except DeserializationError as error:
                    assert (error.partition, error.offset) == (("numbers", 0), 2)
                    assert "numbers-0 at offset 2 cannot be deserialized: invalid literal" in str(error)
                    bad += 1
                    if bad == 2:  # it stays there until the consumer seeks
                        consumer.seek(error.partition, error.offset + 1)
            assert (sorted(each or 0 for each in found), bad) == ([1, 2, 3, 4], 2)
            consumer.assign([("numbers", 0)])
            consumer.seek(("numbers", 0), 1)
            assert (await consumer.getone()).value == 2
            for _ in range(2):
                with pytest.raises(DeserializationError):
                    await consumer.getone()
            consumer.seek(("numbers", 0), 3)
            assert (await consumer.getone()).value == 3

    with Broker({"numbers": 2}) as broker:
        asyncio.run(main(broker))


# --- settings


@pytest.mark.parametrize("client", [Admin, Producer, Consumer, Cluster])
def test_settings_that_are_no_mapping_are_refused(client: Any) -> None:
    async def main() -> None:
        with pytest.raises(
            TypeError, match=r"config must be one of a mapping of settings, ClientSettings.*'localhost:9092'"
        ):
            client("localhost:9092")
        with pytest.raises(ConfigError, match="the name of a setting must be str, not the int 1"):
            client({"bootstrap.servers": "localhost:9092", 1: 2})
        with pytest.raises(ConfigError, match=r"client\.id must be a string, .* not the bytes b'me'"):
            client({"bootstrap.servers": "localhost:9092", "client.id": b"me"})

    asyncio.run(main())


# --- methods

Call = Callable[[Any], Any]
PLACE = TopicPartition("orders", 0)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda admin: admin.describe_topics("orders"), r"describe_topics: topics must be .*: pass \['orders'\]"),
        (
            lambda admin: admin.delete_topics("abc"),
            "delete_topics: topics must be an iterable of str or Uuid, not the str",
        ),
        (lambda admin: admin.delete_topics([b"abc"]), r"topics\[0\] must be str or Uuid, not the bytes b'abc'"),
        (lambda admin: admin.delete_groups("abc"), "group_ids must be an iterable of str, not the str 'abc'"),
        (lambda admin: admin.create_topics(["abc"]), r"topics\[0\] must be NewTopic, not the str 'abc'"),
        (
            lambda admin: admin.create_topics(NewTopic("abc")),
            "topics must be an iterable of NewTopic, not the NewTopic",
        ),
        (
            lambda admin: admin.create_partitions({"orders": "2"}),
            r"topics\['orders'\] must be NewPartitions or int, not",
        ),
        (lambda admin: admin.create_partitions(["orders"]), "topics must be a mapping of str to NewPartitions or int"),
        (
            lambda admin: admin.api_versions(1),
            r"node_ids must be an iterable of int or None, not the int 1: pass \[1\]",
        ),
        (lambda admin: admin.find_hanging_transactions(topics="a"), "topics must be an iterable of str or None, not"),
        (lambda admin: admin.list_groups(states="Stable"), "states must be an iterable of str, not the str 'Stable'"),
        (lambda admin: admin.elect_leaders(partitions=["a"]), r"partitions\[0\] must be \(str, int\), not the str 'a'"),
        (
            lambda admin: admin.elect_leaders(partitions=PLACE),
            r"partitions must be .*, not the TopicPartition .*: pass \[",
        ),
        (lambda admin: admin.unregister_broker("1"), "broker_id must be int, not the str '1'"),
        (lambda admin: admin.list_offsets({"orders": 0}), "partitions.'orders'. must be TopicPartition, not the str"),
        (lambda admin: admin.list_consumer_group_offsets("g"), r"groups must be .* not the str 'g': pass \['g'\]"),
        (
            lambda admin: admin.list_consumer_group_offsets({"g": ["a"]}),
            r"groups\['g'\]\[0\] must be TopicPartition, not",
        ),
        (lambda admin: admin.list_topics(timeout_ms="1"), "timeout_ms must be a number or None, not the str '1'"),
        (lambda admin: admin.alter_configs({"orders": {}}), "configs.'orders'. must be ConfigResource, not the str"),
        (lambda admin: admin.describe_topics(topic="a"), "describe_topics: missing a required argument: 'topics'"),
    ],
)
def test_admin_names_a_wrong_argument(broker: Broker, call: Call, message: str) -> None:
    async def main() -> None:
        async with Admin(settings(broker)) as admin:
            with pytest.raises(TypeError, match=message):
                await call(admin)

    asyncio.run(main())


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda consumer: consumer.subscribe("orders"), r"subscribe: topics must be .*, not the str 'orders': pass \["),
        (lambda consumer: consumer.subscribe([b"orders"]), r"topics\[0\] must be str, not the bytes"),
        (
            lambda consumer: consumer.assign(PLACE),
            r"partitions must be .*, not the TopicPartition .*: pass \[TopicPart",
        ),
        (lambda consumer: consumer.assign("orders"), r"partitions must be an iterable of \(str, int\), not the str"),
        (lambda consumer: consumer.assign(["orders"]), r"partitions\[0\] must be \(str, int\), not the str 'orders'"),
        (lambda consumer: consumer.assign([("orders", "0")]), r"partitions\[0\] must be \(str, int\), not the tuple"),
        (lambda consumer: consumer.seek("orders", 0), r"partition must be \(str, int\), not the str 'orders'"),
        (lambda consumer: consumer.seek(PLACE, "0"), "offset must be int, not the str '0'"),
        (lambda consumer: consumer.seek_to_end([PLACE]), r"partitions\[0\] must be \(str, int\), not the list"),
        (lambda consumer: consumer.commit({"orders": 1}), r"offsets\['orders'\] must be TopicPartition, not the str"),
        (
            lambda consumer: consumer.commit({PLACE: "1"}),
            r"offsets\[.*\] must be int or OffsetAndMetadata, not the str",
        ),
        (lambda consumer: consumer.committed(PLACE), r"partitions must be .*, not the TopicPartition"),
        (lambda consumer: consumer.offsets_for_times({PLACE: "1"}), r"times_ms\[.*\] must be int, not the str '1'"),
        (lambda consumer: consumer.poll("1"), "timeout_ms must be a number, not the str '1'"),
        (lambda consumer: consumer.getmany(max_records="1"), "max_records must be a number, not the str '1'"),
    ],
)
def test_a_consumer_names_a_wrong_argument(broker: Broker, call: Call, message: str) -> None:
    async def main() -> None:
        async with Consumer({**settings(broker), "group.id": "g"}) as consumer:
            with pytest.raises(TypeError, match=message):
                result = call(consumer)
                if isinstance(result, Awaitable):
                    await result

    asyncio.run(main())


def test_one_topic_is_not_taken_for_a_list_of_letters(broker: Broker) -> None:
    async def main() -> None:
        with pytest.raises(
            TypeError, match=r"topics must be an iterable of str, not the str 'orders': pass \['orders'\]"
        ):
            Consumer({**settings(broker), "group.id": "g"}, topics="orders")

    asyncio.run(main())


def test_offsets_of_a_transaction_are_checked(broker: Broker) -> None:
    async def main() -> None:
        async with Producer({**settings(broker), "transactional.id": "t"}) as producer:
            untyped: Any = producer
            with pytest.raises(TypeError, match=r"offsets\['orders'\] must be TopicPartition"):
                await untyped.send_offsets_to_transaction({"orders": 1}, "g")
            with pytest.raises(TypeError, match="group must be str or GroupMetadata, not None"):
                await untyped.send_offsets_to_transaction({PLACE: 1}, None)

    asyncio.run(main())


def test_every_annotation_of_a_public_argument_is_checked() -> None:
    """Names that are imported for type checkers only would not resolve."""
    checked = 0
    for client in (Admin, Producer, Consumer):
        for name, method in inspect.getmembers(client, inspect.isfunction):
            if not name.startswith("_"):
                _kinds_of(inspect.unwrap(method))
                checked += hasattr(method, "__wrapped__")
    assert checked > 60


def test_iterators_and_plain_tuples_are_accepted(broker: Broker) -> None:
    async def main() -> None:
        async with Admin(settings(broker)) as admin:
            found = await admin.describe_topics(name for name in ["orders"])
            assert list(found) == ["orders"]
            untyped: Any = admin
            assert list(await untyped.list_offsets({("orders", 0): -2})) == [("orders", 0)]
            names = [name async for name, _ in admin.describe_topic_partitions(iter(["orders"]))]
            assert names == ["orders"]

    asyncio.run(main())


def test_a_tuple_of_any_length_is_checked() -> None:
    @checks_arguments
    def join(parts: tuple[str, ...], ids: dict[str, Uuid]) -> str:
        return "".join(parts)

    assert join(("a", "b"), {}) == "ab"
    wrong: Any = ("a", 1)
    with pytest.raises(TypeError, match=r"join: parts\[1\] must be str, not the int 1"):
        join(wrong, {})
