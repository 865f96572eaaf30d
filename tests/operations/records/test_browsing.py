"""Records as they are in the log, and searches with limits."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from barnabas.batches import Record, build_batch
from barnabas.client import Cluster
from barnabas.client.records import TopicPartition
from barnabas.client.sync import Producer
from barnabas.operations.errors import OperationError
from barnabas.operations.records.browsing import (
    Begin,
    SearchLimits,
    browse,
    by_time,
    offsets_at,
    read_page,
    search,
    seen_records,
    transaction_ends,
)
from barnabas.operations.records.filters import regex_filter
from barnabas.testing import Broker

KEY = TopicPartition("orders", 0)


def batch(offset: int, producer_id: int, *values: bytes, is_transactional: bool = True) -> bytes:
    records = [Record(offset + at, 1000 + offset + at, None, value) for at, value in enumerate(values)]
    return build_batch(
        records,
        base_offset=offset,
        producer_id=producer_id,
        producer_epoch=0,
        base_sequence=0,
        is_transactional=is_transactional,
    )


def test_markers_are_shown_and_end_the_transactions_of_their_producers() -> None:
    data = batch(0, 7, b"a", b"b") + batch(2, 8, b"c")
    found = seen_records(KEY, data, 1)
    assert [each.value for each in found.shown] == [b"b", b"c"]
    assert found.next_offset == 3
    assert transaction_ends(found.shown) == {(0, 1): "not ended here", (0, 2): "not ended here"}
    marker = found.shown[0]._replace(offset=3, control="COMMIT", value=None)
    other = found.shown[1]._replace(offset=4, control="ABORT", value=None)
    assert transaction_ends([*found.shown, marker, other]) == {(0, 1): "committed", (0, 2): "aborted"}
    assert transaction_ends([other, marker, *found.shown]) == {(0, 1): "committed", (0, 2): "aborted"}, (
        "as sorted by time"
    )


def test_a_damaged_batch_is_an_error_that_names_the_partition() -> None:
    data = bytearray(batch(0, -1, b"a", is_transactional=False))
    data[16] = 9  # the magic
    with pytest.raises(OperationError, match="orders"):
        seen_records(KEY, bytes(data), 0)


def test_records_of_one_partition_stay_in_order_when_partitions_are_merged_by_time() -> None:
    first, second = seen_records(KEY, batch(0, 7, b"a", b"b"), 0).shown  # at 1000 and 1001
    marker = second._replace(offset=2, timestamp=900, control="COMMIT")
    other = first._replace(partition=1, timestamp=950)
    merged = by_time([first, second, marker, other])
    assert [(each.partition, each.offset) for each in merged] == [(1, 0), (0, 0), (0, 1), (0, 2)]


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(topics={"orders": 2}) as broker:
        with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
            for number in range(100):
                producer.send("orders", b"value-%d" % number, partition=number % 2, timestamp_ms=1000 + number)
            producer.flush()
        yield broker


def test_pages_lead_from_the_start_to_the_end(broker: Broker) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            offset, seen = 0, []
            while True:
                page = await read_page(cluster, KEY, offset, max_records=7)
                if not page.records:
                    break
                seen += [each.offset for each in page.records]
                offset = page.next_offset
            assert seen == list(range(50))
            assert (page.start, page.end) == (0, 50)
            beyond = await read_page(cluster, KEY, 999, max_records=7)
            assert (beyond.records, beyond.next_offset) == ([], 50)
            with pytest.raises(OperationError, match="no such partition"):
                await read_page(cluster, TopicPartition("orders", 9), 0, max_records=1)

    asyncio.run(main())


def test_browsing_merges_partitions_by_time(broker: Broker) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            keys = [KEY, TopicPartition("orders", 1)]
            newest = await browse(cluster, keys, Begin(), 4)
            assert [each.value for each in newest.records] == [b"value-96", b"value-97", b"value-98", b"value-99"]
            since = await browse(cluster, keys, Begin(time_ms=1010), 3)
            assert [each.timestamp for each in since.records] == [1010, 1011, 1012]
            assert await offsets_at(cluster, keys, 1010) == {keys[0]: 5, keys[1]: 5}

    asyncio.run(main())


def test_of_large_records_there_are_fewer_and_the_newest_are_the_newest(broker: Broker) -> None:
    async def main() -> None:
        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:

            async def offsets(begin: Begin, **options: int) -> tuple[list[int], bool]:
                found = await browse(cluster, [large], begin, 20, **options)
                return [each.offset for each in found.records], found.is_cut

            newest, is_cut = await offsets(Begin())
            assert is_cut
            assert 0 < len(newest) < 20
            assert newest == list(range(30 - len(newest), 30))
            first, is_cut = await offsets(Begin(5))
            assert is_cut
            assert 0 < len(first) < 20
            assert first == list(range(5, 5 + len(first)))
            assert await offsets(Begin(), max_bytes=2**30) == (list(range(10, 30)), False)
            assert await offsets(Begin(5), max_bytes=2**30) == (list(range(5, 25)), False)

    large = TopicPartition("large", 0)
    broker.create_topic("large", 1)
    with Producer({"bootstrap.servers": broker.bootstrap_servers}) as producer:
        for _ in range(30):
            producer.send("large", bytes(200_000), partition=0)
            producer.flush()
    asyncio.run(main())


def test_a_search_stops_at_its_limits_and_says_why(broker: Broker) -> None:
    async def main() -> None:
        async def found(**limits: int) -> tuple[list[bytes | None], str | None]:
            fits = regex_filter("value", "value-.*7$")
            steps = [
                step
                async for step in search(
                    cluster, {KEY: 0, TopicPartition("orders", 1): 0}, fits, SearchLimits(**limits)
                )
            ]
            return [each.value for step in steps for each in step.found], steps[-1].reason

        async with Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
            assert await found() == ([b"value-%d" % number for number in range(7, 100, 10)], "everything was read")
            values, reason = await found(max_found=2)
            assert (len(values), reason) == (2, "2 records were found")
            assert (await found(max_records=1))[1] == "the limit of what is read was reached"

    asyncio.run(main())
