"""What share consumers do, and what must then be true, against any cluster: ours and Apache Kafka.

Each scene takes the address of a cluster and a prefix for names, so that scenes can share a cluster. Locks last `LOCK_MS`
in groups that ask for it, so that scenes which wait for their end are short.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Coroutine, Mapping
from pathlib import Path
from typing import Any

import pytest

from barnabas.client import (
    AcknowledgeType,
    Admin,
    AlterConfigOp,
    AlterConfigOpType,
    ConfigResource,
    DeserializationError,
    ErrorCode,
    KafkaError,
    Producer,
    ShareConsumer,
    ShareRecord,
    TopicPartition,
)
from tests.client.record_scenes import create

LOCK_MS = 2_000
BROKER_CONFIGS = {
    "group.share.min.record.lock.duration.ms": "1000",
    "group.share.heartbeat.interval.ms": "500",
    "group.share.min.heartbeat.interval.ms": "100",
    "share.coordinator.state.topic.num.partitions": "3",
    "offsets.topic.num.partitions": "3",
}

Scene = Callable[[str, str], Coroutine[Any, Any, None]]


async def prepare(
    bootstrap: str, name: str, values: int = 0, partitions: int = 1, **configs: str
) -> tuple[str, dict[str, object]]:
    """Create a topic with records, and a group that reads it from its start. Returns the topic and settings of members."""
    await create(bootstrap, name, partitions)
    await set_up_group(bootstrap, name, **configs)
    if values:
        await write(bootstrap, name, range(values), partitions)
    return name, {"bootstrap.servers": bootstrap, "group.id": name}


async def set_up_group(bootstrap: str, group: str, **configs: str) -> None:
    """Set configs of a group, which begins at the start of topics."""
    async with Admin({"bootstrap.servers": bootstrap}) as admin:
        wanted = {
            "share.auto.offset.reset": "earliest",
            **{key.replace("_", "."): each for key, each in configs.items()},
        }
        ops = [AlterConfigOp(key, AlterConfigOpType.SET, each) for key, each in wanted.items()]
        results = await admin.incremental_alter_configs({ConfigResource.group(group): ops})
        assert set(results.values()) == {None}


async def write(bootstrap: str, topic: str, values: range, partitions: int = 1, **more: object) -> None:
    async with Producer({"bootstrap.servers": bootstrap, **more}) as producer:
        for value in values:
            await producer.send(topic, b"%d" % value, partition=value % partitions)
        await producer.flush()


GUIDE = Path(__file__).resolve().parents[2] / "docs" / "share-groups.md"


def run_guide(bootstrap: str) -> None:
    """Run the code of docs/share-groups.md, block after block."""

    async def fill() -> None:
        await create(bootstrap, "jobs")
        for group in ("workers", "careful"):
            await set_up_group(bootstrap, group)
        async with Producer({"bootstrap.servers": bootstrap}) as producer:
            for value in (b"easy", b"too long", b"not now", b"nonsense"):
                await producer.send_and_wait("jobs", value)

    asyncio.run(fill())
    names: dict[str, object] = {"__name__": "guide"}
    for block in re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL):
        exec(compile(block.replace("localhost:9092", bootstrap), str(GUIDE), "exec"), names)


def check_guide(printed: str) -> None:
    """Check what the code of the guide has printed."""
    assert "b'easy' 1" in printed
    assert "{None}" in printed
    assert "jobs-0 done" in printed


async def read(consumer: ShareConsumer, count: int, **more: Any) -> list[ShareRecord]:
    """Poll until there are so many records."""
    found: list[ShareRecord] = []
    async with asyncio.timeout(60):
        while len(found) < count:
            found += await consumer.poll(500, **more)
    return found


async def read_explicitly(consumer: ShareConsumer, count: int) -> list[ShareRecord]:
    """Poll until there are so many records, in one poll, because each has to be acknowledged before the next."""
    async with asyncio.timeout(60):
        while not (found := await consumer.poll(500)):
            pass
    assert len(found) == count
    return found


def numbers(records: list[ShareRecord]) -> list[int]:
    return [int(record.value or b"-1") for record in records]


def explicit(settings: Mapping[str, object], **more: object) -> dict[str, object]:
    return {**settings, "share.acknowledgement.mode": "explicit", **{k.replace("_", "."): v for k, v in more.items()}}


# --- scenes


async def what_was_polled_is_accepted(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-implicit", 100, partitions=3)
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        found = await read(consumer, 100)
        assert sorted(numbers(found)) == list(range(100))
        assert {record.delivery_count for record in found} == {1}
        results = await consumer.commit()
        assert results
        assert set(results.values()) == {None}
        assert consumer.acquisition_lock_timeout_ms() == 30_000
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        assert await consumer.poll(2_000) == []


async def each_record_has_its_own_fate(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-explicit", 9)
    async with ShareConsumer(explicit(settings), topics=[topic]) as consumer:
        for record in await read_explicitly(consumer, 9):
            match int(record.value or b"") % 3:
                case 0:
                    consumer.acknowledge(record)
                case 1:
                    consumer.release(record)
                case 2:
                    consumer.reject((record.topic, record.partition, record.offset))
        assert await consumer.commit() == {TopicPartition(topic, 0): None}
        again = await read_explicitly(consumer, 3)
        assert [(record.offset, record.delivery_count) for record in again] == [(1, 2), (4, 2), (7, 2)]
        for record in again:
            consumer.acknowledge(record, AcknowledgeType.ACCEPT)
        assert await consumer.poll(1_000) == []
        assert await consumer.commit() == {}


async def nothing_is_left_undecided(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-undecided", 3)
    async with ShareConsumer(explicit(settings), topics=[topic]) as consumer:
        first, second, third = await read_explicitly(consumer, 3)
        consumer.acknowledge(first)
        with pytest.raises(RuntimeError, match=f"2 records of the last poll .* {topic}-0 at offset 1"):
            await consumer.poll()
        consumer.release(second)
        consumer.acknowledge(second)  # on second thoughts
        consumer.reject(third)
        assert await consumer.commit() == {TopicPartition(topic, 0): None}
        with pytest.raises(KafkaError, match="is not in flight") as raised:
            consumer.acknowledge(first)
        assert raised.value.code is ErrorCode.INVALID_RECORD_STATE
        assert await consumer.poll(1_000) == []


async def implicit_mode_decides_by_itself(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-by-itself", 2)
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        record, _ = await read(consumer, 2)
        with pytest.raises(RuntimeError, match=r"share\.acknowledgement\.mode=explicit"):
            consumer.acknowledge(record)


async def what_failed_is_delivered_again(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-failed", 4)
    with pytest.raises(ZeroDivisionError):
        async with ShareConsumer(settings, topics=[topic]) as consumer:
            async for record in consumer:
                if record.offset == 2:
                    raise ZeroDivisionError
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        found = await read(consumer, 2)
        assert [(record.offset, record.delivery_count) for record in found] == [(2, 2), (3, 2)]


async def closing_accepts_what_was_iterated_over(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-iterated", 6)
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        async for record in consumer:
            if record.offset == 3:
                break
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        assert [record.offset for record in await read(consumer, 2)] == [4, 5]


async def locks_end(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-locks", 2, share_record_lock_duration_ms=str(LOCK_MS))
    async with (
        ShareConsumer(explicit(settings), topics=[topic]) as slow,
        ShareConsumer(explicit(settings), topics=[topic]) as quick,
    ):
        mine = await read_explicitly(slow, 2)
        assert slow.acquisition_lock_timeout_ms() == LOCK_MS
        found = await read_explicitly(quick, 2)
        assert [record.delivery_count for record in found] == [2, 2]
        for record in mine:
            slow.acknowledge(record)
        result = (await slow.commit())[TopicPartition(topic, 0)]
        assert isinstance(result, KafkaError)
        assert result.code is ErrorCode.INVALID_RECORD_STATE
        for record in found:
            quick.acknowledge(record)
        assert await quick.commit() == {TopicPartition(topic, 0): None}


async def renewed_locks_do_not_end(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-renewed", 3, share_record_lock_duration_ms=str(LOCK_MS))
    async with (
        ShareConsumer(explicit(settings), topics=[topic]) as slow,
        ShareConsumer(explicit(settings), topics=[topic]) as other,
    ):
        first, second, third = await read_explicitly(slow, 3)
        slow.acknowledge(third)
        for _ in range(4):  # much longer than a lock
            slow.renew(first)
            slow.renew(second)
            assert await slow.commit() == {TopicPartition(topic, 0): None}
            assert await other.poll(LOCK_MS / 2) == []
        assert await slow.poll(5_000) == [first, second]  # once more, to be acknowledged
        slow.acknowledge(first)
        slow.renew(second)
        assert await slow.poll(5_000) == [second]
        slow.acknowledge(second)
        assert await slow.commit() == {TopicPartition(topic, 0): None}
        assert await other.poll(2 * LOCK_MS) == []


async def a_record_limit_leaves_the_rest_to_others(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-limit", 10)  # one batch
    limited = explicit(settings, share_acquire_mode="record_limit", max_poll_records=3)
    async with ShareConsumer(limited, topics=[topic]) as one, ShareConsumer(limited, topics=[topic]) as two:
        assert numbers(await read_explicitly(one, 3)) == [0, 1, 2]
        assert numbers(await read_explicitly(two, 3)) == [3, 4, 5]


async def whole_batches_are_acquired_and_polled_in_parts(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-batches", 10)  # one batch
    async with (
        ShareConsumer({**settings, "max.poll.records": 3}, topics=[topic]) as one,
        ShareConsumer(settings, topics=[topic]) as two,
    ):
        assert numbers(await read(one, 3)) == [0, 1, 2]
        assert await two.poll(1_000) == []
        assert numbers(await one.poll(1_000)) == [3, 4, 5]
        assert numbers(await one.poll(1_000, max_records=1)) == [6]
        await one.unsubscribe()
        assert numbers(await read(two, 3)) == [7, 8, 9]


async def deliveries_are_limited(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-poison", 1)
    async with ShareConsumer(explicit(settings), topics=[topic]) as consumer:
        counts = []
        for _ in range(5):
            (record,) = await read_explicitly(consumer, 1)
            counts.append(record.delivery_count)
            consumer.release(record)
        assert counts == [1, 2, 3, 4, 5]
        assert await consumer.poll(1_500) == []


async def members_share_a_partition(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-members")
    async with ShareConsumer(settings, topics=[topic]) as one, ShareConsumer(settings, topics=[topic]) as two:
        found: dict[int, list[int]] = {0: [], 1: []}
        written = 0
        is_producing = True

        async def work(which: int, consumer: ShareConsumer) -> None:
            while is_producing or len(found[0]) + len(found[1]) < written:
                found[which] += numbers(await consumer.poll(200, max_records=10))
            await consumer.commit()

        async def produce() -> (
            None
        ):  # until both have read: one may be assigned its partition much later than the other
            nonlocal written, is_producing
            while written < 2_000 or not (found[0] and found[1]):
                await write(bootstrap, topic, range(written, written + 20))
                written += 20
            is_producing = False

        async with asyncio.timeout(120):
            await asyncio.gather(work(0, one), work(1, two), produce())
        assert sorted(found[0] + found[1]) == list(range(written))
        assert one.assignment() == two.assignment() == {TopicPartition(topic, 0)}


async def markers_are_passed_over(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-markers", share_isolation_level="read_committed")
    async with Producer({"bootstrap.servers": bootstrap, "transactional.id": f"{prefix}-t"}) as producer:
        await producer.init_transactions()
        for value, is_kept in ((b"1", True), (b"2", False), (b"3", True)):
            producer.begin_transaction()
            await producer.send_and_wait(topic, value, partition=0)
            await (producer.commit_transaction() if is_kept else producer.abort_transaction())
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        assert numbers(await read(consumer, 2)) == [1, 3]
        assert await consumer.poll(500) == []
        await consumer.commit()
        await write(bootstrap, topic, range(4, 5))
        assert numbers(await read(consumer, 1)) == [4]


async def what_cannot_be_deserialized_is_released(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-values", 3)
    failures: list[bytes] = []

    def value_of(data: bytes) -> int:
        if data == b"1" and len(failures) < 2:
            failures.append(data)
            raise ValueError("not yet")
        return int(data)

    async with ShareConsumer(settings, topics=[topic], value_deserializer=value_of) as consumer:
        found: list[tuple[int | None, int]] = []
        errors = 0
        async with asyncio.timeout(60):
            while len(found) < 3:
                try:
                    found += [(record.value, record.delivery_count) for record in await consumer.poll(500)]
                except DeserializationError as error:
                    assert error.offset == 1
                    errors += 1
        assert errors == 1
        assert sorted(found) == [(0, 1), (1, 2), (2, 1)]


async def the_callback_gets_every_outcome(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-callback", 20, partitions=2)
    calls: list[tuple[Mapping[TopicPartition, frozenset[int]], KafkaError | None]] = []

    async def note(offsets: Mapping[TopicPartition, frozenset[int]], error: KafkaError | None) -> None:
        calls.append((offsets, error))

    async with ShareConsumer(settings, topics=[topic]) as consumer:
        consumer.set_acknowledgement_commit_callback(note)
        found = await read(consumer, 20)
        consumer.commit_async()
    assert {error for _, error in calls} == {None}
    named = [
        (place.topic, place.partition, offset) for offsets, _ in calls for place in offsets for offset in offsets[place]
    ]
    assert sorted(named) == sorted(record[:3] for record in found)


async def a_group_that_is_told_to_stop_is_left(bootstrap: str, prefix: str) -> None:
    topic, settings = await prepare(bootstrap, f"{prefix}-left", 2)
    async with ShareConsumer(settings, topics=[topic]) as consumer:
        await read(consumer, 2)
        await consumer.unsubscribe()
        assert consumer.subscription() == ()
        with pytest.raises(KafkaError, match="not subscribed"):
            await consumer.poll()
        await write(bootstrap, topic, range(2, 3))
        await consumer.subscribe([topic])
        assert numbers(await read(consumer, 1)) == [2]


SCENES: tuple[Scene, ...] = (
    what_was_polled_is_accepted,
    each_record_has_its_own_fate,
    nothing_is_left_undecided,
    implicit_mode_decides_by_itself,
    what_failed_is_delivered_again,
    closing_accepts_what_was_iterated_over,
    locks_end,
    renewed_locks_do_not_end,
    a_record_limit_leaves_the_rest_to_others,
    whole_batches_are_acquired_and_polled_in_parts,
    deliveries_are_limited,
    members_share_a_partition,
    markers_are_passed_over,
    what_cannot_be_deserialized_is_released,
    the_callback_gets_every_outcome,
    a_group_that_is_told_to_stop_is_left,
)
