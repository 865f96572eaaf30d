"""Lag in time, asked of nodes that are old, or whose answers are odd."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.batches.format import Compression
from barnabas.client import Cluster
from barnabas.client.admin.groups import CommittedOffset, GroupDescription
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.positions import MAX_FETCHES, positions
from barnabas.wire import Message
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, one_broker, peer, ranges, read_request
from tests.operations.groups.test_lag import batch, marker

HERE = TopicPartition("orders", 0)
GROUP = GroupDescription("g", "Classic", "consumer", "Empty", None, "", ())
START, END, NOW_MS = 10, 20, 100_000

Found = tuple[int | None, int | None]


class Node:
    """A node with one partition, from START to END: `records_at` are its batches from an offset on."""

    def __init__(
        self,
        records_at: Callable[[int], bytes],
        *,
        start: int = START,
        local_start: int | None = None,
        list_offsets: int = 10,
        errors: tuple[int, ...] = (),
    ) -> None:
        self.records_at = records_at
        self.starts = {-1: END, -2: start, -4: start if local_start is None else local_start}
        self.list_offsets = list_offsets
        self.errors = list(errors)
        self.fetches: list[tuple[int, int]] = []
        """Offset and size of each."""

    def answer(self, asked: Asked, port: int) -> Message:
        if asked.name == "ApiVersions":
            return ranges(Metadata=(0, 12), ListOffsets=(1, self.list_offsets), Fetch=(4, 11))
        if asked.name == "Metadata":
            partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1)
            return one_broker(port, MetadataResponse.MetadataResponseTopic(name="orders", partitions=[partition]))
        if asked.name == "ListOffsets":
            row = ListOffsetsResponse.ListOffsetsPartitionResponse(
                offset=self.starts[asked.request.topics[0].partitions[0].timestamp]
            )
            return ListOffsetsResponse(
                topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[row])]
            )
        request: FetchRequest = asked.request
        (wanted,) = request.topics[0].partitions
        assert request.isolation_level == 0
        self.fetches.append((wanted.fetch_offset, wanted.partition_max_bytes))
        data = FetchResponse.PartitionData(high_watermark=END, records=self.records_at(wanted.fetch_offset))
        if self.errors:
            data = FetchResponse.PartitionData(error_code=self.errors.pop(0))
        return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="orders", partitions=[data])])

    def lags(self, *committed: int | KafkaError, now_ms: int | None = NOW_MS) -> list[Found]:
        """Lag in records and in time, of a group for each offset."""

        async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            while True:
                asked = await read_request(reader)
                writer.write(asked.answer(self.answer(asked, writer.get_extra_info("sockname")[1])))

        async def main() -> list[Found]:
            groups = {
                f"g{number}": (GROUP, {HERE: CommittedOffset(at) if isinstance(at, int) else at})
                for number, at in enumerate(committed)
            }
            async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
                found = await positions(cluster, groups, now_ms=now_ms)
            return [(row.lag, row.lag_ms) for (row,) in found.values()]

        return asyncio.run(main())


def each_second(offset: int) -> bytes:
    return batch((offset, 1000 * offset))


@pytest.mark.parametrize("list_offsets", [1, 10])
def test_the_oldest_unread_record_is_fetched_from_where_it_is_and_from_nowhere_else(list_offsets: int) -> None:
    node = Node(each_second, list_offsets=list_offsets)
    assert node.lags(15, 15, 19, END, END + 5) == [(5, 85_000), (5, 85_000), (1, 81_000), (0, 0), (0, 0)]
    assert sorted(node.fetches) == [(15, 1), (19, 1)]
    assert node.lags(15, now_ms=NOW_MS + 1) == [(5, 85_001)]
    assert Node(each_second).lags(15, now_ms=None) == [(5, None)]


def test_below_the_start_of_the_log_the_first_record_that_exists_counts() -> None:
    node = Node(each_second)
    assert node.lags(3) == [(17, 90_000)]
    assert node.fetches == [(START, 1)]


def test_in_a_partition_whose_records_were_all_deleted_nothing_is_unread() -> None:
    node = Node(each_second, start=END)
    assert (node.lags(3), node.fetches) == ([(17, 0)], [])


@pytest.mark.parametrize("compression", list(Compression))
def test_a_record_is_found_within_its_batch(compression: Compression) -> None:
    data = batch((10, 1000), (11, 2000), (12, 3000), compression=compression)
    assert Node(lambda _: data).lags(11) == [(9, 98_000)]


def test_of_a_record_that_compaction_removed_the_next_one_counts() -> None:
    data = {10: batch((10, 1000), (13, 4000), last_offset=15), 16: batch((17, 9000), base_offset=16, last_offset=19)}
    node = Node(lambda offset: data[10 if offset <= 15 else 16])
    assert node.lags(11, 14, 18) == [(9, 96_000), (6, 91_000), (2, 0)]
    assert [offset for offset, _ in node.fetches if offset == 16] == [16]


def test_control_batches_are_passed_over_with_larger_fetches() -> None:
    def records_at(offset: int) -> bytes:
        return marker(offset) if offset < 18 else each_second(offset)

    node = Node(records_at)
    assert node.lags(15) == [(5, 82_000)]
    assert node.fetches == [(15, 1), (16, 65536), (17, 65536), (18, 65536)]


def test_where_only_control_records_are_left_nothing_is_unread() -> None:
    node = Node(lambda offset: marker(offset) if offset < END else each_second(offset))
    assert node.lags(18) == [(2, 0)]
    assert [offset for offset, _ in node.fetches] == [18, 19]
    assert Node(lambda offset: marker(offset) + marker(offset + 1) + each_second(END)).lags(18) == [(2, 0)]


def test_after_a_few_fetches_without_a_record_the_lag_in_time_is_not_known() -> None:
    node = Node(marker)
    assert node.lags(START) == [(10, None)]
    assert len(node.fetches) == MAX_FETCHES


def test_a_record_without_a_timestamp_has_no_age_and_one_of_the_future_has_age_0() -> None:
    assert Node(lambda offset: batch((offset, -1))).lags(15) == [(5, None)]
    assert Node(lambda offset: batch((offset, NOW_MS + 5))).lags(15) == [(5, 0)]


@pytest.mark.parametrize("data", [bytes(70), batch((10, 1))[:50]])
def test_what_cannot_be_read_is_not_known(data: bytes) -> None:
    assert Node(lambda _: data).lags(15) == [(5, None)]


def test_an_empty_answer_means_that_nothing_is_unread_only_of_what_the_leader_has_on_its_disk() -> None:
    assert Node(lambda _: b"").lags(15) == [(5, 0)]
    assert Node(lambda _: b"", list_offsets=7).lags(15) == [(5, 0)]
    assert Node(lambda _: b"", local_start=16).lags(15) == [(5, None)]
    assert Node(lambda _: b"").lags(END - 1, START - 5) == [(1, 0), (15, 0)]


def test_an_error_of_the_leader_is_asked_again_or_leaves_the_lag_unknown() -> None:
    moved = Node(each_second, errors=(ErrorCode.NOT_LEADER_OR_FOLLOWER,))
    assert moved.lags(15) == [(5, 85_000)]
    assert len(moved.fetches) == 2
    refused = Node(each_second, errors=(ErrorCode.TOPIC_AUTHORIZATION_FAILED,))
    assert (refused.lags(15), len(refused.fetches)) == ([(5, None)], 1)
    lost = Node(each_second, errors=(ErrorCode.OFFSET_OUT_OF_RANGE,))
    assert sorted(lost.lags(15, 16), key=str) == [(4, 84_000), (5, None)]


def test_an_offset_that_may_not_be_seen_has_no_lag() -> None:
    assert Node(each_second).lags(KafkaError(ErrorCode.UNSTABLE_OFFSET_COMMIT)) == [(None, None)]
