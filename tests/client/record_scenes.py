"""What producers and consumers do, and what must then be true, against any cluster: ours, Apache Kafka, old and new.

Each scene takes the address of a cluster and a prefix for names, so that scenes can share a cluster.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import confluent_kafka
from aiokafka import AIOKafkaConsumer, AIOKafkaProducer

from barnabas.client import Cluster, controller, node
from barnabas.client.consumer import Consumer, ConsumerRecord, TopicPartition
from barnabas.client.producer import Producer
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse

KEYS = [b"", b"a", b"alice", b"21", b"foobar", "schlüssel".encode(), *(b"key-%d" % number for number in range(40))]
CODECS = ("none", "gzip", "snappy", "lz4", "zstd")


async def create(bootstrap: str, topic: str, partitions: int = 1, **configs: str) -> str:
    rows = [
        CreateTopicsRequest.CreatableTopicConfig(name=name.replace("_", "."), value=value)
        for name, value in configs.items()
    ]
    row = CreateTopicsRequest.CreatableTopic(name=topic, num_partitions=partitions, replication_factor=1, configs=rows)
    async with Cluster({"bootstrap.servers": bootstrap}) as cluster:
        made = await cluster.call(CreateTopicsRequest(topics=[row], timeout_ms=20_000), controller())
        assert made.topics[0].error_code in (ErrorCode.NONE, ErrorCode.TOPIC_ALREADY_EXISTS)
        while topic not in (await cluster.refresh([topic])).topics:
            await asyncio.sleep(0.05)
    return topic


async def read(bootstrap: str, topic: str, count: int, partitions: int = 1, **settings: Any) -> list[ConsumerRecord]:
    """So many records of all partitions, and no more."""
    given = {"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest"}
    async with Consumer(given | {name.replace("_", "."): value for name, value in settings.items()}) as consumer:
        consumer.assign([(topic, partition) for partition in range(partitions)])
        found: list[ConsumerRecord] = []
        while len(found) < count:
            found += await consumer.poll(10_000)
        assert await consumer.poll(300) == []
        return found


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


# --- scenes


async def every_codec_comes_back(bootstrap: str, prefix: str) -> None:
    for codec in CODECS:
        topic = await create(bootstrap, f"{prefix}-{codec}")
        async with Producer({"bootstrap.servers": bootstrap, "compression.type": codec}) as producer:
            for number in range(300):
                await producer.send(topic, b"%d" % number * 20, b"k", headers=[("h", b"v")], timestamp_ms=number)
        found = await read(bootstrap, topic, 300)
        assert [record.offset for record in found] == list(range(300))
        assert found[7] == (topic, 0, 7, 7, b"k", b"7" * 20, (("h", b"v"),))


async def transactions_are_seen_whole_or_not_at_all(bootstrap: str, prefix: str) -> None:
    topic = await create(bootstrap, f"{prefix}-transactions", 2)
    async with Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{prefix}-id"}) as producer:
        await producer.init_transactions()
        for number in range(6):
            producer.begin_transaction()
            for partition in range(2):
                await producer.send(topic, b"%d" % number, partition=partition)
            await producer.send_offsets_to_transaction({(topic, 0): number}, f"{prefix}-group")
            if number % 3 == 1:
                await producer.flush()
                await producer.abort_transaction()
            else:
                await producer.commit_transaction()
    found = await read(bootstrap, topic, 8, 2, isolation_level="read_committed")
    for partition in range(2):
        assert [record.value for record in found if record.partition == partition] == [b"0", b"2", b"3", b"5"]
    assert len(await read(bootstrap, topic, 12, 2)) == 12
    async with Consumer({"bootstrap.servers": bootstrap, "group.id": f"{prefix}-group"}) as consumer:
        committed = (await consumer.committed([(topic, 0)]))[TopicPartition(topic, 0)]
        assert committed is not None
        assert committed.offset == 5


async def members_share_and_take_over(bootstrap: str, prefix: str, **settings: Any) -> None:
    topic = await create(bootstrap, f"{prefix}-shared", 4)
    given = {
        "bootstrap.servers": bootstrap,
        "group.id": f"{prefix}-group",
        "auto.offset.reset": "earliest",
        **{name.replace("_", "."): value for name, value in settings.items()},
    }
    seen: list[int] = []

    async def keep_reading(consumer: Consumer) -> None:
        while True:
            seen.extend(int(record.value or b"") for record in await consumer.poll(100))

    async with Consumer(given, topics=[topic]) as first:
        one = asyncio.create_task(keep_reading(first))
        await until(lambda: len(first.assignment()) == 4)
        second = await Consumer(given, topics=[topic]).start()
        two = asyncio.create_task(keep_reading(second))
        await until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            for number in range(400):
                await producer.send(topic, b"%d" % number, partition=number % 4)
        await until(lambda: len(seen) >= 400)
        two.cancel()
        await asyncio.wait([two])
        await second.close()
        await until(lambda: len(first.assignment()) == 4)
        one.cancel()
        await asyncio.wait([one])
    assert sorted(seen) == list(range(400))


async def keys_go_where_other_clients_send_them(bootstrap: str, prefix: str) -> None:
    topic = await create(bootstrap, f"{prefix}-keys", 7)
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        ours = {key: (await producer.send_and_wait(topic, b"ours", key)).partition for key in KEYS}
    async with AIOKafkaProducer(bootstrap_servers=bootstrap) as theirs:
        for key in KEYS:
            assert (await theirs.send_and_wait(topic, b"theirs", key)).partition == ours[key], key
    other = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "partitioner": "murmur2_random"})
    places: dict[bytes, int | None] = {}
    for key in KEYS:
        other.produce(
            topic,
            b"theirs",
            key,
            on_delivery=lambda _, message: places.update({message.key() or b"": message.partition()}),
        )
    await asyncio.to_thread(other.flush, 20)
    assert {key: places[key] for key in KEYS if key} == {key: ours[key] for key in KEYS if key}


async def records_are_exchanged_with_other_clients(bootstrap: str, prefix: str) -> None:
    topic = await create(bootstrap, f"{prefix}-exchanged")
    async with Producer({"bootstrap.servers": bootstrap, "compression.type": "lz4"}) as producer:
        for number in range(50):
            await producer.send(topic, b"ours-%d" % number, b"k", headers=[("h", b"1")], timestamp_ms=1_000 + number)
    async with AIOKafkaProducer(
        bootstrap_servers=bootstrap, compression_type="zstd", enable_idempotence=True
    ) as theirs:
        for number in range(50):
            await theirs.send(topic, b"aiokafka-%d" % number, b"k", timestamp_ms=2_000 + number, headers=[("h", b"2")])
    other = confluent_kafka.Producer({"bootstrap.servers": bootstrap, "compression.type": "gzip"})
    for number in range(50):
        other.produce(topic, b"confluent-%d" % number, b"k", timestamp=3_000 + number, headers=[("h", b"3")])
    await asyncio.to_thread(other.flush, 20)
    found = await read(bootstrap, topic, 150)
    expected = [
        (
            topic,
            0,
            who * 50 + number,
            (who + 1) * 1_000 + number,
            b"k",
            b"%b-%d" % (name, number),
            (("h", b"%d" % (who + 1)),),
        )
        for who, name in enumerate((b"ours", b"aiokafka", b"confluent"))
        for number in range(50)
    ]
    assert found == expected
    async with AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, auto_offset_reset="earliest") as reader:
        theirs_read = [await reader.getone() for _ in range(150)]
    rows = [
        (each.topic, each.partition, each.offset, each.timestamp, each.key, each.value, tuple(each.headers))
        for each in theirs_read
    ]
    assert rows == expected
    consumer = confluent_kafka.Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"{prefix}-c", "auto.offset.reset": "earliest"}
    )
    consumer.assign([confluent_kafka.TopicPartition(topic, 0, 0)])
    messages = await asyncio.to_thread(consumer.consume, 150, 20)
    consumer.close()
    assert [(each.offset(), each.key(), each.value()) for each in messages] == [
        (row[2], row[4], row[5]) for row in expected
    ]


async def a_group_is_shared_with_aiokafka(bootstrap: str, prefix: str) -> None:
    """Each may lead: the one that came first, and the other after that has left."""
    topic = await create(bootstrap, f"{prefix}-mixed", 4)
    group = f"{prefix}-mixed"
    given = {"bootstrap.servers": bootstrap, "group.id": group, "heartbeat.interval.ms": 200}
    ours = Consumer({**given, "partition.assignment.strategy": "roundrobin"}, topics=[topic])
    theirs = AIOKafkaConsumer(topic, bootstrap_servers=bootstrap, group_id=group, heartbeat_interval_ms=200)
    async with ours:
        await until(lambda: len(ours.assignment()) == 4)
        await theirs.start()
        try:
            await until(lambda: len(ours.assignment()) == 2 and len(theirs.assignment()) == 2)
            assert {(each.topic, each.partition) for each in theirs.assignment()} | ours.assignment() == {
                (topic, partition) for partition in range(4)
            }
            await ours.unsubscribe()
            await until(lambda: len(theirs.assignment()) == 4)
            await ours.subscribe([topic])  # now the other one leads
            await until(lambda: len(ours.assignment()) == 2 and len(theirs.assignment()) == 2)
        finally:
            await theirs.stop()
        await until(lambda: len(ours.assignment()) == 4)


async def offsets_are_found_by_time(bootstrap: str, prefix: str) -> None:
    topic = await create(bootstrap, f"{prefix}-times", 2)
    async with Producer({"bootstrap.servers": bootstrap}) as producer:
        for number in range(10):
            await producer.send(topic, b"x", partition=0, timestamp_ms=1_700_000_000_000 + number * 1000)
    async with Consumer({"bootstrap.servers": bootstrap}) as consumer:
        at = 1_700_000_004_500
        found = await consumer.offsets_for_times({(topic, 0): at, (topic, 1): at})
        assert found[TopicPartition(topic, 0)][:2] == (5, 1_700_000_005_000)  # type: ignore[index]
        assert found[TopicPartition(topic, 1)] is None
        assert await consumer.end_offsets([(topic, 0), (topic, 1)]) == {(topic, 0): 10, (topic, 1): 0}


async def patterns_are_matched_by_the_broker(bootstrap: str, prefix: str) -> None:
    """The consumer protocol, with RE2 syntax: Python does not know [[:digit:]]."""
    for name in ("1", "2", "x", "1x"):
        await create(bootstrap, f"{prefix}-{name}")
    given = {"bootstrap.servers": bootstrap, "group.id": prefix, "group.protocol": "consumer"}
    async with Consumer({**given, "auto.offset.reset": "earliest"}) as consumer:
        await consumer.subscribe(pattern="broken[")
        try:
            await consumer.poll(20_000)
        except KafkaError as error:
            assert error.code is ErrorCode.INVALID_REGULAR_EXPRESSION
            assert "SubscribedTopicRegex `broken[` is not a valid regular expression" in str(error)
        else:
            raise AssertionError("the pattern was accepted")
        await consumer.subscribe(pattern=f"{prefix}-[[:digit:]]")
        await until(lambda: consumer.subscription() == (f"{prefix}-1", f"{prefix}-2"))
        await consumer.subscribe([f"{prefix}-x"])
        await until(lambda: consumer.assignment() == {(f"{prefix}-x", 0)})


async def fetch_sessions_list_only_changes_and_are_closed(bootstrap: str, prefix: str) -> None:
    """One broker. The session is found and lost by requests of a second client."""
    topic = await create(bootstrap, f"{prefix}-sessions", 4)
    async with (
        Producer({"bootstrap.servers": bootstrap}) as producer,
        Cluster({"bootstrap.servers": bootstrap}) as other,
    ):
        consumer = Consumer({"bootstrap.servers": bootstrap, "auto.offset.reset": "earliest", "fetch.max.wait.ms": 100})
        sent = _recorded(consumer)
        read_from: list[int] = []

        async def write_and_read(*partitions: int) -> None:
            for partition in partitions:
                await producer.send_and_wait(topic, b"x", partition=partition)
            expected = len(read_from) + len(partitions)
            while len(read_from) < expected:
                read_from.extend(record.partition for record in await consumer.poll(5_000))

        async def next_request(condition: Callable[[FetchRequest], bool]) -> FetchRequest:
            """The first request from now on that meets the condition, once it is answered."""
            begin = len(sent)
            while True:
                assert await consumer.poll(50) == []
                for request, response in sent[begin:]:
                    if condition(request):
                        assert response.error_code == 0
                        return request

        async with consumer:
            consumer.assign([(topic, partition) for partition in range(4)])
            await write_and_read(0, 1, 2, 3)
            first, response = sent[0]
            assert (first.session_id, first.session_epoch) == (0, 0)
            session_id = response.session_id
            assert session_id > 0
            await next_request(lambda request: request.session_id == session_id and not request.topics)
            begin = len(sent)
            await write_and_read(2)
            await next_request(lambda request: not request.topics)
            assert {tuple(_listed(request)) for request, _ in sent[begin:]} == {(), (2,)}
            epochs = [request.session_epoch for request, _ in sent if request.session_id == session_id]
            assert epochs == list(range(epochs[0], epochs[0] + len(epochs)))

            consumer.pause([(topic, 1)])
            assert _forgotten(await next_request(lambda request: bool(_forgotten(request)))) == [1]
            await write_and_read(3)
            await next_request(lambda request: not request.topics)
            consumer.resume([(topic, 1)])
            assert _listed(await next_request(lambda request: bool(request.topics))) == [1]
            await write_and_read(1)

            consumer.assign([(topic, 0), (topic, 1)])
            changed = await next_request(lambda request: not request.session_epoch or _forgotten(request) == [2, 3])
            assert changed.session_id == session_id
            if changed.session_epoch == 0:  # a request was in flight, and was abandoned
                assert sorted(_listed(changed)) == [0, 1]
            session_id = sent[-1][1].session_id
            await other.send(FetchRequest(session_id=session_id, session_epoch=-1), node(1))
            await write_and_read(0, 1)
            assert ErrorCode.FETCH_SESSION_ID_NOT_FOUND in [response.error_code for _, response in sent]
            session_id = sent[-1][1].session_id
            assert session_id > 0
            consumer.assign([(topic, 0)])
            await write_and_read(0)
            session_id = sent[-1][1].session_id
            answered = await other.send(FetchRequest(session_id=session_id, session_epoch=99_999), node(1))
            assert answered.error_code == ErrorCode.INVALID_FETCH_SESSION_EPOCH
        answered = await other.send(FetchRequest(session_id=session_id, session_epoch=99_999), node(1))
        assert answered.error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND
    assert sorted(read_from) == [0, 0, 0, 1, 1, 1, 2, 2, 3, 3]


def _listed(request: FetchRequest) -> list[int]:
    return [row.partition for topic in request.topics for row in topic.partitions]


def _forgotten(request: FetchRequest) -> list[int]:
    return sorted(index for topic in request.forgotten_topics_data for index in topic.partitions)


def _recorded(consumer: Consumer) -> list[tuple[FetchRequest, FetchResponse]]:
    """The requests that a consumer sends from now on and their responses, added to a list as they are answered."""
    sent: list[tuple[FetchRequest, FetchResponse]] = []
    send = consumer._cluster.send

    async def recording(request: Any, *how: Any, **more: Any) -> Any:
        response = await send(request, *how, **more)
        if isinstance(request, FetchRequest):
            sent.append((request, response))
        return response

    consumer._cluster.send = recording  # type: ignore[method-assign]
    return sent
