"""The consumer, against a node of barnabas: positions, isolation, groups of both protocols."""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable, Coroutine, Iterator
from typing import Any

import pytest

from barnabas.client import ClosedError, Cluster, controller, leader
from barnabas.client.consumer import Consumer, ConsumerRecord, OffsetAndMetadata, TopicPartition
from barnabas.client.producer import Producer
from barnabas.config.values import ConfigError
from barnabas.testing import Broker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest

PROTOCOLS = ["classic", "consumer"]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    hurry = {"group.consumer.heartbeat.interval.ms": 100, "group.consumer.min.heartbeat.interval.ms": 100}
    with Broker(config={"group.initial.rebalance.delay.ms": 0, **hurry}) as started:
        yield started


def run(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def guarded() -> None:
        async with asyncio.timeout(30):
            await main()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(guarded())


def consumer_of(broker: Broker, topics: list[str] | None = None, **settings: Any) -> Consumer:
    given = {"bootstrap.servers": broker.bootstrap_servers, "auto.offset.reset": "earliest"}
    return Consumer(given | {name.replace("_", "."): value for name, value in settings.items()}, topics=topics or ())


async def write(broker: Broker, topic: str, count: int, partitions: int = 1, **settings: Any) -> None:
    async with Producer({"bootstrap.servers": broker.bootstrap_servers, **settings}) as producer:
        for number in range(count):
            await producer.send(topic, b"%d" % number, partition=number % partitions, timestamp_ms=1_000 + number)


async def read(consumer: Consumer, count: int) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    while len(found) < count:
        found += await consumer.poll(10_000, max_records=count - len(found))
    return found


# --- assigned


def test_records_come_in_order_with_all_they_have(broker: Broker) -> None:
    broker.create_topic("all", 1)

    async def main() -> None:
        async with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            await producer.send("all", b"v", b"k", headers=[("h", b"1"), ("h", None)], timestamp_ms=5)
            await producer.send("all", None)
        async with consumer_of(broker) as consumer:
            consumer.assign([("all", 0)])
            first, second = await read(consumer, 2)
            assert first == ("all", 0, 0, 5, b"k", b"v", (("h", b"1"), ("h", None)))
            assert (second.offset, second.key, second.value, second.headers) == (1, None, None, ())
            assert await consumer.position(("all", 0)) == 2
            assert await consumer.poll(10) == []

    run(main)


def test_a_poll_returns_no_more_than_is_asked_for_and_loses_nothing(broker: Broker) -> None:
    broker.create_topic("limited", 2)

    async def main() -> None:
        await write(broker, "limited", 1_000, 2)
        async with consumer_of(broker, max_poll_records=70, max_partition_fetch_bytes=2_000) as consumer:
            consumer.assign([("limited", 0), ("limited", 1)])
            seen: dict[int, list[int]] = {0: [], 1: []}
            while sum(map(len, seen.values())) < 1_000:
                found = await consumer.getmany(timeout_ms=5_000)
                assert sum(map(len, found.values())) <= 70
                for (_, partition), records in found.items():
                    seen[partition] += [record.offset for record in records]
            assert seen == {0: list(range(500)), 1: list(range(500))}

    run(main)


def test_large_responses_are_not_copied_but_their_values_are_bytes(broker: Broker) -> None:
    broker.create_topic("large", 2)

    async def main() -> None:
        async with Producer({"bootstrap.servers": broker.bootstrap_servers, "max.request.size": 1 << 24}) as producer:
            for number in range(400):
                await producer.send(
                    "large", b"%d" % number * 1_000, b"key", partition=number % 2, headers=[("h", b"v")]
                )
        async with consumer_of(broker) as consumer:
            consumer.assign([("large", 0), ("large", 1)])
            found = await read(consumer, 400)
            for partition in range(2):
                values = [record.value for record in found if record.partition == partition]
                assert values == [b"%d" % number * 1_000 for number in range(partition, 400, 2)]
            assert {type(each) for record in found for each in (record.key, record.value)} == {bytes}
            assert {record.headers for record in found} == {(("h", b"v"),)}

    run(main)


def test_seek_goes_where_it_is_told(broker: Broker) -> None:
    broker.create_topic("seek", 2)

    async def main() -> None:
        await write(broker, "seek", 200, 2)
        place = TopicPartition("seek", 0)
        async with consumer_of(broker) as consumer:
            consumer.assign([place])
            for offset in (50, 99, 7, 0):
                consumer.seek(place, offset)
                assert [record.offset for record in await read(consumer, 1)] == [offset]
            consumer.seek_to_end()
            assert await consumer.position(place) == 100
            consumer.seek_to_beginning(place)
            assert await consumer.position(place) == 0
            assert await consumer.beginning_offsets([place]) == {place: 0}
            assert await consumer.end_offsets([place, ("seek", 1)]) == {place: 100, ("seek", 1): 100}
            found = await consumer.offsets_for_times({place: 1_020, ("seek", 1): 99_999})
            at_place = found[place]
            assert at_place is not None and at_place.offset == 10
            assert found[TopicPartition("seek", 1)] is None
            with pytest.raises(KafkaError, match="seek-1 is not assigned"):
                consumer.seek(("seek", 1), 0)

    run(main)


def test_paused_partitions_are_silent_until_they_are_resumed(broker: Broker) -> None:
    broker.create_topic("paused", 2)

    async def main() -> None:
        await write(broker, "paused", 20, 2)
        async with consumer_of(broker) as consumer:
            consumer.assign([("paused", 0), ("paused", 1)])
            consumer.pause([("paused", 1)])
            assert {record.partition for record in await read(consumer, 10)} == {0}
            assert await consumer.poll(100) == []
            assert consumer.paused() == {("paused", 1)}
            consumer.resume([("paused", 1)])
            assert {record.partition for record in await read(consumer, 10)} == {1}

    run(main)


@pytest.mark.parametrize(("reset", "expected"), [("earliest", 5), ("latest", 10), ("none", None)])
def test_an_offset_that_is_gone_is_reset_as_the_setting_says(broker: Broker, reset: str, expected: int | None) -> None:
    topic = f"gone-{reset}"
    broker.create_topic(topic, 1)

    async def main() -> None:
        await write(broker, topic, 10)
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            row = DeleteRecordsRequest.DeleteRecordsPartition(partition_index=0, offset=5)
            rows = [DeleteRecordsRequest.DeleteRecordsTopic(name=topic, partitions=[row])]
            await cluster.call(DeleteRecordsRequest(topics=rows, timeout_ms=5_000), leader(topic, 0))
        async with consumer_of(broker, auto_offset_reset=reset) as consumer:
            consumer.assign([(topic, 0)])
            consumer.seek((topic, 0), 1)
            if expected is None:
                with pytest.raises(KafkaError, match=r"OFFSET_OUT_OF_RANGE: .* offset 1 is not there"):
                    await consumer.poll(5_000)
                return
            await consumer.poll(500, max_records=1)
            assert await consumer.position((topic, 0)) in (expected, expected + 1)

    run(main)


def test_without_an_offset_a_duration_says_where_to_begin(broker: Broker) -> None:
    broker.create_topic("lately", 1)

    async def main() -> None:
        now_ms = int(time.time() * 1000)
        async with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for age_s in (7_200, 1_800, 10):
                await producer.send("lately", b"%d" % age_s, timestamp_ms=now_ms - age_s * 1000)
        async with consumer_of(broker, auto_offset_reset="by_duration:PT1H") as consumer:
            consumer.assign([("lately", 0)])
            assert [record.value for record in await read(consumer, 2)] == [b"1800", b"10"]

    run(main)


def test_what_is_aborted_or_open_is_not_read_when_only_what_is_committed_is_wanted(broker: Broker) -> None:
    broker.create_topic("isolated", 1)

    async def main() -> None:
        settings = {"bootstrap.servers": broker.bootstrap_servers}
        async with Producer({**settings, "transactional.id": "isolated"}) as producer, Producer(settings) as plain:
            await producer.init_transactions()
            for number in range(6):
                producer.begin_transaction()
                for part in range(3):
                    await producer.send_and_wait("isolated", b"%d%d" % (number, part))
                    await plain.send_and_wait("isolated", b"plain")
                await (producer.abort_transaction() if number % 2 else producer.commit_transaction())
            producer.begin_transaction()
            await producer.send_and_wait("isolated", b"open")
            async with consumer_of(broker, isolation_level="read_committed") as consumer:
                consumer.assign([("isolated", 0)])
                seen = [record.value for record in await read(consumer, 27)]
                assert [value for value in seen if value != b"plain"] == [
                    b"%d%d" % (number, part) for number in (0, 2, 4) for part in range(3)
                ]
                assert seen.count(b"plain") == 18
                assert await consumer.poll(200) == []
                end = (await consumer.end_offsets([("isolated", 0)]))[TopicPartition("isolated", 0)]
                assert await consumer.position(("isolated", 0)) == end
            async with consumer_of(broker) as consumer:
                consumer.assign([("isolated", 0)])
                assert len(await read(consumer, 37)) == 37  # all six transactions, what is plain, and the open one

    run(main)


def test_a_topic_that_is_not_there_is_said_to_be_unknown(broker: Broker) -> None:
    async def main() -> None:
        async with consumer_of(broker, default_api_timeout_ms=500, request_timeout_ms=500) as consumer:
            with pytest.raises(KafkaError, match="UNKNOWN_TOPIC_OR_PARTITION: nowhere-0"):
                await consumer.end_offsets([("nowhere", 0)])

    run(main)


def test_a_node_that_restarts_is_read_on_where_it_was() -> None:
    with Broker({"restarted": 1}) as broker:

        async def main() -> None:
            await write(broker, "restarted", 10)
            async with consumer_of(broker) as consumer:
                consumer.assign([("restarted", 0)])
                assert len(await read(consumer, 10)) == 10
                await asyncio.to_thread(broker.restart)
                await write(broker, "restarted", 5)
                assert [record.offset for record in await read(consumer, 5)] == list(range(10, 15))

        run(main)


def test_a_poll_does_not_wait_for_an_automatic_commit_to_a_node_that_is_down() -> None:
    with Broker({"down": 1}) as broker:

        async def main() -> None:
            await write(broker, "down", 5)
            async with consumer_of(broker, group_id="down", auto_commit_interval_ms=1) as consumer:
                consumer.assign([("down", 0)])
                assert len(await read(consumer, 3)) == 3
                await asyncio.to_thread(broker.stop)
                await asyncio.sleep(0.01)
                async with asyncio.timeout(10):  # an attempt to commit takes default.api.timeout.ms: a minute
                    for _ in range(3):
                        await consumer.poll(50, max_records=1)
                await asyncio.to_thread(broker.start)
            async with consumer_of(broker, group_id="down") as consumer:
                assert await consumer.committed([("down", 0)]) == {("down", 0): OffsetAndMetadata(5)}

        run(main)


# --- groups


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_group_goes_on_where_it_was(broker: Broker, protocol: str) -> None:
    topic = f"goes-on-{protocol}"
    broker.create_topic(topic, 1)

    async def main() -> None:
        await write(broker, topic, 10)
        how = {"group_id": topic, "group_protocol": protocol}
        async with consumer_of(broker, [topic], **how) as consumer:
            assert [record.offset for record in await read(consumer, 4)] == [0, 1, 2, 3]
        async with consumer_of(broker, [topic], **how, enable_auto_commit=False) as consumer:
            assert [record.offset for record in await read(consumer, 2)] == [4, 5]
        async with consumer_of(broker, [topic], **how, enable_auto_commit=False) as consumer:
            assert [record.offset for record in await read(consumer, 3)] == [4, 5, 6]
            await consumer.commit()
            assert await consumer.committed([(topic, 0)]) == {(topic, 0): OffsetAndMetadata(7, "", -1)}
            await consumer.commit({(topic, 0): OffsetAndMetadata(9, "noted")})
        async with consumer_of(broker, [topic], **how) as consumer:
            assert [record.offset async for record in _first(consumer, 1)] == [9]

    run(main)


async def _first(consumer: Consumer, count: int) -> Any:
    async for record in consumer:
        yield record
        count -= 1
        if not count:
            return


@pytest.mark.parametrize(
    ("protocol", "assignor"),
    [("classic", "range"), ("classic", "roundrobin"), ("classic", "cooperative-sticky"), ("consumer", None)],
)
def test_members_share_partitions_and_take_over_from_those_who_leave(
    broker: Broker, protocol: str, assignor: str | None
) -> None:
    topic = f"shared-{protocol}-{assignor}"
    broker.create_topic(topic, 4)
    how: dict[str, Any] = {"group_id": topic, "group_protocol": protocol}
    if assignor is not None:
        how |= {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 100}

    async def main() -> None:
        everything = {TopicPartition(topic, partition) for partition in range(4)}
        seen: list[int] = []

        async def keep_reading(consumer: Consumer) -> None:
            while True:
                seen.extend(int(record.value or b"") for record in await consumer.poll(100))

        async with consumer_of(broker, [topic], **how) as first:
            one = asyncio.create_task(keep_reading(first))
            await _until(lambda: first.assignment() == everything)
            second = await consumer_of(broker, [topic], **how).start()
            two = asyncio.create_task(keep_reading(second))
            await _until(lambda: len(first.assignment()) == len(second.assignment()) == 2)
            assert first.assignment() | second.assignment() == everything
            await write(broker, topic, 400, 4)
            await _until(lambda: len(seen) >= 400)
            two.cancel()
            await asyncio.wait([two])
            await second.close()
            await _until(lambda: first.assignment() == everything)
            one.cancel()
            await asyncio.wait([one])
        assert sorted(seen) == list(range(400))

    run(main)


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.02)


@pytest.mark.parametrize(
    ("protocol", "assignor"), [("classic", "range"), ("classic", "cooperative-sticky"), ("consumer", None)]
)
def test_partitions_are_revoked_only_when_what_was_read_is_processed(
    broker: Broker, protocol: str, assignor: str | None
) -> None:
    topic = f"processed-{protocol}-{assignor}"
    broker.create_topic(topic, 2)
    how: dict[str, Any] = {"group_id": topic, "group_protocol": protocol, "enable_auto_commit": "false"}
    if assignor is not None:
        how |= {"partition_assignment_strategy": assignor, "heartbeat_interval_ms": 50}
    everything = {TopicPartition(topic, 0), TopicPartition(topic, 1)}

    class CommittingListener:
        """Ends the work on what was read before others read on."""

        def __init__(self, consumer: Consumer):
            self.consumer = consumer
            self.revoked: list[TopicPartition] = []

        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            assert processed, "partitions were revoked while their records were processed"
            await self.consumer.commit()
            self.revoked += partitions

    processed = False

    async def main() -> None:
        nonlocal processed
        await write(broker, topic, 20, 2)
        async with consumer_of(broker, **how) as first, consumer_of(broker, **how) as second:
            listener = CommittingListener(first)
            await first.subscribe([topic], listener)
            seen = await read(first, 10)
            await second.subscribe([topic])
            await _until(lambda: first._subscription.is_revoking)
            for _ in range(10):  # heartbeats go on: the member stays in the group
                await asyncio.sleep(0.1)
                assert first.assignment() == everything
                assert not listener.revoked
            processed = True
            while not listener.revoked:
                seen += await first.poll(20)
                assert listener.revoked or len(seen) == 10, "no record comes before the revocation"
            while len(seen) < 20:
                seen += await second.poll(20)
                seen += await first.poll(20)
            assert sorted(int(record.value or b"") for record in seen) == list(range(20))

    run(main)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_listener_is_told_what_comes_and_goes(broker: Broker, protocol: str) -> None:
    topic = f"told-{protocol}"
    broker.create_topic(topic, 2)
    told: list[tuple[str, list[TopicPartition]]] = []

    class Listener:
        def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
            told.append(("assigned", partitions))

        async def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
            told.append(("revoked", partitions))

    async def main() -> None:
        async with consumer_of(broker, group_id=topic, group_protocol=protocol) as consumer:
            await consumer.subscribe([topic], Listener())
            await _until(lambda: len(consumer.assignment()) == 2)
            await _until(lambda: bool(told))
            await consumer.unsubscribe()
            assert consumer.assignment() == frozenset()
        both = [TopicPartition(topic, 0), TopicPartition(topic, 1)]
        assert told == [("assigned", both), ("revoked", both)]

    run(main)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_takes_in_topics_that_come_later(broker: Broker, protocol: str) -> None:
    broker.create_topic(f"pattern-{protocol}-a", 1)

    async def main() -> None:
        how: dict[str, Any] = {
            "metadata_max_age_ms": 100,
            "group_id": f"pattern-{protocol}",
            "group_protocol": protocol,
        }
        async with consumer_of(broker, **how) as consumer:
            await consumer.subscribe(re.compile(f"pattern-{protocol}-.*"))
            await _until(lambda: len(consumer.assignment()) == 1)
            await asyncio.to_thread(broker.create_topic, f"pattern-{protocol}-b", 1)
            await _until(lambda: len(consumer.assignment()) == 2)

    run(main)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_as_text_is_matched_by_the_broker_or_in_a_classic_group_by_the_client(
    broker: Broker, protocol: str
) -> None:
    for name in ("a", "b", "ab"):
        broker.create_topic(f"text-{protocol}-{name}", 1)

    async def main() -> None:
        how: dict[str, Any] = {
            "metadata_max_age_ms": 100,
            "group_id": f"text-{protocol}",
            "group_protocol": protocol,
        }
        async with consumer_of(broker, **how) as consumer:
            await consumer.subscribe(pattern=f"text-{protocol}-[a-b]")
            await _until(lambda: len(consumer.assignment()) == 2)
            assert consumer.subscription() == (f"text-{protocol}-a", f"text-{protocol}-b")
            assert consumer._cluster._follows_all is (protocol == "classic")
            await consumer.subscribe(pattern=f"text-{protocol}-.*b")
            await _until(lambda: consumer.subscription() == (f"text-{protocol}-ab", f"text-{protocol}-b"))
            await _until(lambda: {place.topic for place in consumer.assignment()} == set(consumer.subscription()))
            await consumer.subscribe([f"text-{protocol}-a"])
            await _until(lambda: consumer.assignment() == {(f"text-{protocol}-a", 0)})
            assert consumer.subscription() == (f"text-{protocol}-a",)
            await write(broker, f"text-{protocol}-a", 1)
            assert [record.value for record in await read(consumer, 1)] == [b"0"]

    run(main)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_pattern_that_is_not_one_is_an_invalid_regular_expression(broker: Broker, protocol: str) -> None:
    broker.create_topic(f"invalid-{protocol}", 1)

    async def main() -> None:
        async with consumer_of(broker, group_id=f"invalid-{protocol}", group_protocol=protocol) as consumer:
            with pytest.raises(KafkaError, match="`broken\\[` is not a valid regular expression") as raised:
                await consumer.subscribe(pattern="broken[")
                await consumer.poll(10_000)
            assert raised.value.code is ErrorCode.INVALID_REGULAR_EXPRESSION
            await consumer.subscribe(pattern=f"invalid-{protocol}")
            await _until(lambda: len(consumer.assignment()) == 1)
            with pytest.raises(ValueError, match="topics or a pattern, not both"):
                await consumer.subscribe(["orders"], pattern="orders")

    run(main)


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_a_static_member_comes_back_to_what_it_had(broker: Broker, protocol: str) -> None:
    topic = f"static-{protocol}"
    broker.create_topic(topic, 2)

    async def main() -> None:
        how = {"group_id": topic, "group_protocol": protocol, "group_instance_id": "one"}
        for _ in range(2):
            async with consumer_of(broker, [topic], **how) as consumer:
                await _until(lambda: len(consumer.assignment()) == 2)
                assert consumer.group_metadata().group_instance_id == "one"

    run(main)


def test_more_partitions_are_shared_out_by_the_leader(broker: Broker) -> None:
    broker.create_topic("grown", 1)

    async def main() -> None:
        async with consumer_of(broker, ["grown"], group_id="grown", metadata_max_age_ms=100) as consumer:
            await _until(lambda: len(consumer.assignment()) == 1)
            async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
                row = CreatePartitionsRequest.CreatePartitionsTopic(name="grown", count=3, assignments=None)
                await cluster.call(CreatePartitionsRequest(topics=[row], timeout_ms=5_000), controller())
            await _until(lambda: len(consumer.assignment()) == 3)

    run(main)


def test_a_member_that_does_not_poll_leaves(broker: Broker) -> None:
    broker.create_topic("lazy", 1)

    async def main() -> None:
        how = {"group_id": "lazy", "max_poll_interval_ms": 300, "heartbeat_interval_ms": 50}
        async with consumer_of(broker, ["lazy"], **how) as consumer:
            await _until(lambda: len(consumer.assignment()) == 1)
            await asyncio.sleep(0.6)
            assert consumer.assignment() == frozenset()
            polling = asyncio.create_task(read(consumer, 1))
            await _until(lambda: len(consumer.assignment()) == 1)
            polling.cancel()
            await asyncio.wait([polling])

    run(main)


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_member_that_waits_for_a_record_is_polling(broker: Broker, protocol: str) -> None:
    topic = f"patient-{protocol}"
    broker.create_topic(topic, 1)

    async def main() -> None:
        how = {"group_id": topic, "max_poll_interval_ms": 300, "group_protocol": protocol}
        async with consumer_of(broker, [topic], **how) as consumer:
            waiting = asyncio.create_task(consumer.getone())
            await _until(lambda: len(consumer.assignment()) == 1)
            await asyncio.sleep(1)  # several times as long
            assert not waiting.done()
            assert len(consumer.assignment()) == 1
            await write(broker, topic, 1)
            assert (await asyncio.wait_for(waiting, 30)).offset == 0

    run(main)


# --- what is refused


def test_calls_that_need_something_say_what(broker: Broker) -> None:
    broker.create_topic("needs", 1)

    async def main() -> None:
        async with consumer_of(broker) as consumer:
            with pytest.raises(KafkaError, match=r"a group\.id is needed to subscribe"):
                await consumer.subscribe(["needs"])
            with pytest.raises(KafkaError, match=r"a group\.id is needed to keep"):
                await consumer.commit()
        with pytest.raises(ClosedError):
            await consumer.poll()
        async with consumer_of(broker, ["needs"], group_id="needs") as consumer:
            with pytest.raises(KafkaError, match="exclude each other"):
                consumer.assign([("needs", 0)])

    run(main)


def test_a_group_that_cannot_be_joined_is_told_by_the_next_poll(broker: Broker) -> None:
    broker.create_topic("refused", 1)

    async def main() -> None:
        how = {"group_id": "refused", "session_timeout_ms": 1}
        async with consumer_of(broker, ["refused"], **how) as consumer:
            with pytest.raises(KafkaError) as caught:
                await consumer.poll(5_000)
            assert caught.value.code is ErrorCode.INVALID_SESSION_TIMEOUT

    run(main)


@pytest.mark.parametrize(
    ("settings", "name"),
    [
        ({"enable.auto.commit": True}, "enable.auto.commit"),
        ({"group.id": "g", "group.protocol": "consumer", "session.timeout.ms": 1}, "session.timeout.ms"),
        ({"group.id": "g", "partition.assignment.strategy": "chance"}, "partition.assignment.strategy"),
        ({"group.id": "g", "group.remote.assignor": "range"}, "group.remote.assignor"),
        ({"max.poll.records": 0}, "max.poll.records"),
        ({"auto.offset.reset": "somewhere"}, "auto.offset.reset"),
    ],
)
def test_settings_that_cannot_be_are_named(settings: dict[str, Any], name: str) -> None:
    with pytest.raises(ConfigError) as caught:
        Consumer({"bootstrap.servers": "localhost:1", **settings})
    assert caught.value.key == name


# --- what is left when reading ends


async def committed_in(broker: Broker, group_id: str, place: tuple[str, int]) -> int | None:
    async with consumer_of(broker, group_id=group_id) as other:
        found = (await other.committed([place]))[TopicPartition(*place)]
        return None if found is None else found.offset


class Recorder:
    """A listener that notes its calls, and what it could commit."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, list[TopicPartition]]] = []

    def on_partitions_assigned(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("assigned", partitions))

    def on_partitions_revoked(self, partitions: list[TopicPartition]) -> None:
        self.calls.append(("revoked", partitions))


@pytest.mark.parametrize("protocol", PROTOCOLS)
@pytest.mark.parametrize("ending", ["unsubscribe", "close"])
def test_the_last_records_are_committed_and_revoked_at_the_end(
    broker: Broker, caplog: pytest.LogCaptureFixture, protocol: str, ending: str
) -> None:
    topic = f"last-{protocol}-{ending}"
    broker.create_topic(topic)

    async def main() -> None:
        await write(broker, topic, 5)
        listener = Recorder()
        async with consumer_of(broker, group_id=topic, group_protocol=protocol) as consumer:
            await consumer.subscribe([topic], listener)
            await read(consumer, 3)
            await (consumer.unsubscribe() if ending == "unsubscribe" else consumer.close())
            assert consumer.assignment() == frozenset()
            assert listener.calls == [("assigned", [(topic, 0)]), ("revoked", [(topic, 0)])]
            assert await committed_in(broker, topic, (topic, 0)) == 3
        assert await committed_in(broker, topic, (topic, 0)) == 3

    run(main)
    assert "could not be committed" not in caplog.text


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_who_subscribes_again_after_the_end_goes_on_where_it_was(broker: Broker, protocol: str) -> None:
    topic = f"again-{protocol}"
    broker.create_topic(topic)

    async def main() -> None:
        await write(broker, topic, 5)
        async with consumer_of(broker, group_id=topic, group_protocol=protocol) as consumer:
            for expected in ([b"0", b"1"], [b"2", b"3"], [b"4"]):
                await consumer.subscribe([topic])
                assert [each.value for each in await read(consumer, len(expected))] == expected
                await consumer.unsubscribe()

    run(main)


@pytest.mark.parametrize("ending", ["unsubscribe", "assign", "close"])
def test_partitions_that_were_assigned_are_committed_when_they_go(broker: Broker, ending: str) -> None:
    topic = f"gone-{ending}"
    broker.create_topic(topic, 2)

    async def main() -> None:
        await write(broker, topic, 6, 2)
        async with consumer_of(broker, group_id=topic) as consumer:
            consumer.assign([(topic, 0)])
            await read(consumer, 3)
            if ending == "unsubscribe":
                await consumer.unsubscribe()
            elif ending == "assign":
                consumer.assign([(topic, 1)])
                await read(consumer, 2)
                consumer.assign([(topic, 0)])
                assert await consumer.position((topic, 0)) == 3
        assert await committed_in(broker, topic, (topic, 0)) == 3
        assert await committed_in(broker, topic, (topic, 1)) == (2 if ending == "assign" else None)

    run(main)


def test_nothing_is_committed_at_the_end_without_automatic_commits(broker: Broker) -> None:
    broker.create_topic("manual", 2)

    async def main() -> None:
        await write(broker, "manual", 4, 2)
        async with consumer_of(broker, group_id="manual", enable_auto_commit=False) as consumer:
            consumer.assign([("manual", 0)])
            await read(consumer, 2)
            consumer.assign([("manual", 1)])
            await read(consumer, 2)
            await consumer.unsubscribe()
        for partition in range(2):
            assert await committed_in(broker, "manual", ("manual", partition)) is None

    run(main)
