"""The producer, against a node of barnabas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import Barnabas

from barnabas.batches import Compression, iterate_batches
from barnabas.client import CallTimeoutError, ClosedError, Cluster
from barnabas.client.consumer import Consumer
from barnabas.client.producer import GroupMetadata, Producer, TopicPartition
from barnabas.config.values import ConfigError
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError

Scenario = Callable[[Producer], Coroutine[Any, Any, None]]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as started:
        yield started


def produce(broker: Broker, scenario: Scenario, **settings: Any) -> None:
    async def main() -> None:
        given = {"bootstrap.servers": broker.bootstrap_servers} | {
            name.replace("_", "."): value for name, value in settings.items()
        }
        async with asyncio.timeout(30), Producer(given) as producer:
            await scenario(producer)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


def values(broker: Broker, topic: str) -> list[bytes | None]:
    return [record.value for record in broker.records(topic)]


# --- records


def test_a_record_is_written_and_its_metadata_says_where(broker: Broker) -> None:
    broker.create_topic("where", 3)

    async def scenario(producer: Producer) -> None:
        written = await producer.send_and_wait("where", b"value", b"key", partition=2, timestamp_ms=123)
        assert written == ("where", 2, 0, 123)
        assert (await producer.send_and_wait("where", None, partition=2, headers={"a": b"1", "b": None})).offset == 1

    produce(broker, scenario)
    first, second = broker.records("where", 2)
    assert (first.partition, first.timestamp_ms, first.key, first.value) == (2, 123, b"key", b"value")
    assert (second.key, second.value, second.headers) == (None, None, (("a", b"1"), ("b", None)))


def test_the_time_of_a_topic_with_append_time_is_the_brokers(broker: Broker) -> None:
    broker.create_topic("append-time", 1, config={"message.timestamp.type": "LogAppendTime"})

    async def scenario(producer: Producer) -> None:
        assert (await producer.send_and_wait("append-time", b"x", timestamp_ms=5)).timestamp_ms > 5

    produce(broker, scenario)


def test_records_of_one_partition_stay_in_order_in_many_batches(broker: Broker) -> None:
    broker.create_topic("ordered", 1)
    sent = [b"%06d" % number for number in range(5_000)]

    async def scenario(producer: Producer) -> None:
        deliveries = [await producer.send("ordered", value) for value in sent]
        await producer.flush()
        assert [(await each).offset for each in deliveries] == list(range(5_000))
        assert all(each.done() for each in deliveries)

    produce(broker, scenario, batch_size=500)
    assert values(broker, "ordered") == sent


@pytest.mark.parametrize("codec", ["gzip", "snappy", "lz4", "zstd"])
def test_every_codec_is_written(broker: Broker, codec: str) -> None:
    broker.create_topic(f"codec-{codec}", 1)

    async def scenario(producer: Producer) -> None:
        for number in range(200):
            await producer.send(f"codec-{codec}", b"%d" % number * 10)

    produce(broker, scenario, compression_type=codec)
    assert values(broker, f"codec-{codec}") == [b"%d" % number * 10 for number in range(200)]
    segment = next((broker.data_dir / f"codec-{codec}-0").glob("*.log")).read_bytes()
    assert {header.compression for _, header in iterate_batches(segment)} == {Compression[codec.upper()]}


@pytest.mark.parametrize("acks", ["0", "1", "all"])
def test_every_acks_is_written(broker: Broker, acks: str) -> None:
    broker.create_topic(f"acks-{acks}", 1)

    async def scenario(producer: Producer) -> None:
        written = await producer.send_and_wait(f"acks-{acks}", b"x")
        assert written.offset == (-1 if acks == "0" else 0)

    produce(broker, scenario, acks=acks)
    assert [record.value for record in broker.records(f"acks-{acks}", 1)] == [b"x"]


def test_the_same_key_goes_to_the_same_partition_and_none_to_some(broker: Broker) -> None:
    broker.create_topic("keys", 6)

    async def scenario(producer: Producer) -> None:
        places = {(await producer.send_and_wait("keys", b"x", b"alice")).partition for _ in range(5)}
        assert places == {3}  # as every other client says
        spread = [await producer.send("keys", b"y" * 100) for _ in range(3_000)]
        await producer.flush()
        assert len({(await each).partition for each in spread}) == 6

    produce(broker, scenario, batch_size=1_000)


def test_a_topic_is_created_by_its_first_record(broker: Broker) -> None:
    async def scenario(producer: Producer) -> None:
        assert (await producer.send_and_wait("created-by-a-record", b"x")).offset == 0

    produce(broker, scenario)


def test_send_waits_while_the_buffer_is_full_and_not_for_ever(broker: Broker) -> None:
    broker.create_topic("room", 1)

    async def scenario(producer: Producer) -> None:
        for _ in range(500):
            await producer.send("room", b"x" * 500)
            assert producer._accumulator.buffered <= 20_000
        await producer.flush()
        assert producer._accumulator.buffered == 0

    produce(broker, scenario, buffer_memory=20_000, batch_size=4_000)
    assert len(values(broker, "room")) == 500


def test_a_batch_that_is_too_large_for_the_topic_is_split(broker: Broker) -> None:
    broker.create_topic("small", 1, config={"max.message.bytes": 3_000})

    async def scenario(producer: Producer) -> None:
        deliveries = [await producer.send("small", b"%03d" % number + b"x" * 500) for number in range(30)]
        await producer.flush()
        assert [(await each).offset for each in deliveries] == list(range(30))
        with pytest.raises(KafkaError) as caught:
            await producer.send_and_wait("small", b"x" * 5_000)
        assert caught.value.code is ErrorCode.MESSAGE_TOO_LARGE
        assert (await producer.send_and_wait("small", b"after")).offset == 30

    produce(broker, scenario, batch_size=16_000, linger_ms=50)
    assert [value[:3] for value in values(broker, "small") if value][:30] == [b"%03d" % number for number in range(30)]


# --- what is refused


def test_bad_records_are_refused_at_once(broker: Broker) -> None:
    broker.create_topic("refused", 1)

    async def scenario(producer: Producer) -> None:
        with pytest.raises(KafkaError, match="has no partition 7"):
            await producer.send("refused", b"x", partition=7)
        with pytest.raises(KafkaError, match=r"max\.request\.size"):
            await producer.send("refused", b"x" * 2_000_000)
        with pytest.raises(TypeError):
            await producer.send("refused", "text")  # type: ignore[arg-type]
        with pytest.raises(KafkaError, match="INVALID_TOPIC_EXCEPTION"):
            await producer.send("no good name", b"x")
        with pytest.raises(KafkaError, match=r"a transactional\.id"):
            producer.begin_transaction()

    produce(broker, scenario)


def test_a_topic_that_is_not_there_and_not_created_is_unknown() -> None:
    with Broker(config={"auto.create.topics.enable": "false"}) as broker:

        async def scenario(producer: Producer) -> None:
            with pytest.raises(KafkaError, match=r"UNKNOWN_TOPIC_OR_PARTITION: topic nowhere"):
                await producer.send("nowhere", b"x")

        produce(broker, scenario, max_block_ms=300)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"acks": "2"}, "acks"),
        ({"enable.idempotence": True, "acks": "1"}, "enable.idempotence"),
        ({"transactional.id": "t", "enable.idempotence": False}, "transactional.id"),
        ({"delivery.timeout.ms": 10, "linger.ms": 5}, "delivery.timeout.ms"),
        ({"compression.type": "brotli"}, "compression.type"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Producer({"bootstrap.servers": "localhost:1", **settings})
    assert caught.value.key == name


def test_idempotence_gives_way_to_other_settings_unless_it_is_asked_for() -> None:
    assert not Producer({"bootstrap.servers": "localhost:1", "acks": "1"}).settings.enable_idempotence
    assert Producer({"bootstrap.servers": "localhost:1"}).settings.enable_idempotence


def test_a_closed_producer_says_so(broker: Broker) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            producer = await Producer(cluster, {"linger.ms": 0}).start()
            await producer.send_and_wait("closed", b"x")
            await producer.close()
            with pytest.raises(ClosedError):
                await producer.send("closed", b"x")
            await cluster.refresh()  # it is not the producer's to close

    asyncio.run(main())


def test_what_is_not_written_in_time_fails_with_the_reason(broker: Broker) -> None:
    with Broker({"late": 1}) as gone:

        async def main() -> None:
            settings = {
                "bootstrap.servers": gone.bootstrap_servers,
                "delivery.timeout.ms": 700,
                "request.timeout.ms": 300,
            }
            async with Producer(settings) as producer:
                await producer.send_and_wait("late", b"x")
                await asyncio.to_thread(gone.stop)
                with pytest.raises(CallTimeoutError, match=r"late-0: not written within delivery\.timeout\.ms=700"):
                    await producer.send_and_wait("late", b"y")

        asyncio.run(main())


# --- nothing lost, nothing twice


def test_a_node_that_restarts_loses_nothing_and_gets_nothing_twice() -> None:
    with Broker({"restarted": 3}) as broker:

        async def main() -> None:
            async with Producer({"bootstrap.servers": broker.bootstrap_servers, "batch.size": 400}) as producer:
                deliveries = []
                for number in range(3_000):
                    deliveries.append(await producer.send("restarted", b"%d" % number, partition=number % 3))
                    if number % 1_000 == 500:
                        await asyncio.sleep(0.01)
                        asyncio.get_running_loop().run_in_executor(None, broker.restart)
                    if number % 100 == 0:
                        await asyncio.sleep(0.005)
                await producer.flush()
                for each in deliveries:
                    assert (await each).offset >= 0

        asyncio.run(asyncio.wait_for(main(), 60))
        read = [(record.partition, int(record.value or b"")) for record in broker.records("restarted")]
        assert read == [(partition, number) for partition in range(3) for number in range(partition, 3_000, 3)]


def test_a_node_that_is_killed_loses_nothing_and_gets_nothing_twice(tmp_path: Path) -> None:
    with Barnabas(directory=tmp_path) as killed:

        async def main() -> None:
            async with Producer({"bootstrap.servers": killed.bootstrap, "batch.size": 400}) as producer:
                deliveries = []
                for number in range(4_000):
                    deliveries.append(await producer.send("killed", b"%d" % number, b"%d" % (number % 7)))
                    if number in (1_000, 2_500):
                        await asyncio.to_thread(killed.kill)
                        await asyncio.to_thread(killed.start)
                for each in deliveries:
                    await each
                settings = {"bootstrap.servers": killed.bootstrap, "auto.offset.reset": "earliest"}
                async with Consumer(settings) as consumer:
                    consumer.assign([("killed", 0)])
                    read: list[int] = []
                    while len(read) < 4_000 and (some := await consumer.poll(3_000, max_records=10_000)):
                        read += [int(record.value or b"") for record in some]
                    assert read == list(range(4_000))

        asyncio.run(asyncio.wait_for(main(), 60))


def test_a_gap_in_the_order_is_healed_by_a_new_epoch(broker: Broker) -> None:
    broker.create_topic("gap", 2)

    async def scenario(producer: Producer) -> None:
        for partition in range(2):
            await producer.send_and_wait("gap", b"before", partition=partition)
        old = producer._identity.producer
        producer._accumulator.queues[
            TopicPartition("gap", 0)
        ].next_sequence = 100  # as if batches had been lost on the way
        deliveries = [await producer.send("gap", b"%d" % number, partition=0) for number in range(50)]
        await producer.send("gap", b"other", partition=1)
        await producer.flush()
        assert [(await each).offset for each in deliveries] == list(range(1, 51))
        assert producer._identity.producer == (old[0], old[1] + 1)
        assert (await producer.send_and_wait("gap", b"after", partition=1)).offset == 2

    produce(broker, scenario, batch_size=120)
    assert values(broker, "gap")[:51] == [b"before", *(b"%d" % number for number in range(50))]


# --- transactions


def test_what_is_committed_is_seen_and_what_is_aborted_is_not(broker: Broker) -> None:
    broker.create_topic("paid", 2)

    async def scenario(producer: Producer) -> None:
        await producer.init_transactions()
        for number, commits in enumerate([True, False, True]):
            producer.begin_transaction()
            for partition in range(2):
                await producer.send("paid", b"%d" % number, partition=partition)
            if commits:
                await producer.commit_transaction()
            else:
                await producer.flush()
                await producer.abort_transaction()

    produce(broker, scenario, transactional_id="paid")
    assert values(broker, "paid") == [b"0", b"2", b"0", b"2"]


def test_an_empty_transaction_and_one_that_was_never_written_end_well(broker: Broker) -> None:
    broker.create_topic("empty", 1)

    async def scenario(producer: Producer) -> None:
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.commit_transaction()
        producer.begin_transaction()
        delivery = await producer.send("empty", b"dropped")
        await producer.abort_transaction()
        with pytest.raises(KafkaError, match="aborted before"):
            await delivery
        producer.begin_transaction()
        await producer.send("empty", b"kept")
        await producer.commit_transaction()

    produce(broker, scenario, transactional_id="empty", linger_ms=10_000)
    assert values(broker, "empty") == [b"kept"]


def test_the_order_of_calls_is_kept_to(broker: Broker) -> None:
    broker.create_topic("calls", 1)

    async def scenario(producer: Producer) -> None:
        with pytest.raises(KafkaError, match="init_transactions comes first"):
            producer.begin_transaction()
        await producer.init_transactions()
        with pytest.raises(KafkaError, match="records need a transaction"):
            await producer.send("calls", b"x")
        with pytest.raises(KafkaError, match="nothing to commit"):
            await producer.commit_transaction()
        with pytest.raises(KafkaError, match="nothing to abort"):
            await producer.abort_transaction()
        producer.begin_transaction()
        with pytest.raises(KafkaError, match="in a transaction"):
            producer.begin_transaction()

    produce(broker, scenario, transactional_id="calls")


def test_a_second_producer_fences_the_first(broker: Broker) -> None:
    broker.create_topic("fenced", 1)

    async def scenario(producer: Producer) -> None:
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.send_and_wait("fenced", b"old")
        settings = {"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "fenced"}
        async with Producer(settings) as second:
            await second.init_transactions()
            second.begin_transaction()
            await second.send("fenced", b"new")
            await second.commit_transaction()
        with pytest.raises(KafkaError) as caught:
            await producer.commit_transaction()
        assert caught.value.code in (ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH)
        with pytest.raises(KafkaError):
            producer.begin_transaction()

    produce(broker, scenario, transactional_id="fenced")
    assert values(broker, "fenced") == [b"new"]


def test_after_a_failed_record_only_abort_is_left(broker: Broker) -> None:
    broker.create_topic("failing", 1, config={"max.message.bytes": 500})

    async def scenario(producer: Producer) -> None:
        await producer.init_transactions()
        producer.begin_transaction()
        await producer.send("failing", b"x" * 1_000)
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            await producer.commit_transaction()
        with pytest.raises(KafkaError, match="MESSAGE_TOO_LARGE"):
            await producer.send("failing", b"y")
        await producer.abort_transaction()
        producer.begin_transaction()
        await producer.send("failing", b"z")
        await producer.commit_transaction()

    produce(broker, scenario, transactional_id="failing")
    assert values(broker, "failing") == [b"z"]


def test_offsets_are_committed_with_the_transaction(broker: Broker) -> None:
    broker.create_topic("input", 1)
    broker.create_topic("output", 1)
    place = TopicPartition("input", 0)

    async def scenario(producer: Producer) -> None:
        await producer.init_transactions()
        settings = {"bootstrap.servers": broker.bootstrap_servers, "group.id": "copying"}
        async with Consumer(settings) as consumer:
            for offset, commits in ((7, True), (9, False)):
                producer.begin_transaction()
                await producer.send("output", b"copied")
                await producer.send_offsets_to_transaction({place: offset}, GroupMetadata("copying"))
                await (producer.commit_transaction() if commits else producer.abort_transaction())
                committed = (await consumer.committed([place]))[place]
                assert committed is not None and committed.offset == 7

    produce(broker, scenario, transactional_id="copying")
    assert values(broker, "output") == [b"copied"]


def test_with_the_first_version_of_transactions_partitions_are_added_first() -> None:
    with Broker({"explicit": 2}, config={"unstable.feature.versions.enable": "true"}) as broker:

        async def scenario(producer: Producer) -> None:
            await producer.init_transactions()
            producer._identity.is_v2 = False  # as a cluster with transaction.version=1 says
            for commits in (True, False, True):
                producer.begin_transaction()
                await producer.send("explicit", b"%d" % commits, partition=0)
                await producer.send("explicit", b"%d" % commits, partition=1)
                await producer.send_offsets_to_transaction({("explicit", 0): 1}, "explicit")
                await (producer.commit_transaction() if commits else producer.abort_transaction())

        produce(broker, scenario, transactional_id="explicit")
        assert values(broker, "explicit") == [b"1"] * 4
