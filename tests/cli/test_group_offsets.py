"""Lag in time where a node is old, or its records cannot be read."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from barnabas.batches.builder import build_batch
from barnabas.batches.format import Compression, Record
from barnabas.client import Cluster
from barnabas.client.admin.groups import CommittedOffset, GroupDescription
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.positions import positions, record_times
from barnabas.wire import Message
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.list_offsets import ListOffsetsResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, one_broker, peer, ranges, read_request

HERE = TopicPartition("orders", 0)
GROUP = GroupDescription("g", "Classic", "consumer", "Empty", None, "", ())
START, END = 10, 20


def batch(
    *records: tuple[int, int], last_offset: int | None = None, compression: Compression = Compression.NONE
) -> bytes:
    """Records by their offsets and times."""
    return build_batch(
        [Record(offset, time_ms, None, b"") for offset, time_ms in records],
        base_offset=records[0][0],
        keep_offsets=True,
        last_offset=last_offset,
        compression=compression,
    )


def node(records_at: Callable[[int], bytes], work: Callable[[Cluster], object], list_offsets: int = 6) -> object:
    """What is found out from a node that has these records from an offset on."""

    def answer(asked: Asked, port: int) -> Message:
        if asked.name == "ApiVersions":
            return ranges(Metadata=(0, 12), ListOffsets=(1, list_offsets), Fetch=(4, 11))
        if asked.name == "Metadata":
            partition = MetadataResponse.MetadataResponsePartition(partition_index=0, leader_id=1)
            return one_broker(port, MetadataResponse.MetadataResponseTopic(name="orders", partitions=[partition]))
        if asked.name == "ListOffsets":
            spec = asked.request.topics[0].partitions[0].timestamp
            row = ListOffsetsResponse.ListOffsetsPartitionResponse(offset={-1: END, -2: START, -3: 15}[spec])
            row.timestamp = 99_000 if spec == -3 else -1
            return ListOffsetsResponse(
                topics=[ListOffsetsResponse.ListOffsetsTopicResponse(name="orders", partitions=[row])]
            )
        request: FetchRequest = asked.request
        offset = request.topics[0].partitions[0].fetch_offset
        data = FetchResponse.PartitionData(records=records_at(offset))
        return FetchResponse(responses=[FetchResponse.FetchableTopicResponse(topic="orders", partitions=[data])])

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            asked = await read_request(reader)
            writer.write(asked.answer(answer(asked, writer.get_extra_info("sockname")[1])))

    async def main() -> object:
        async with peer(script) as port, Cluster({"bootstrap.servers": f"127.0.0.1:{port}"}) as cluster:
            return await work(cluster)  # type: ignore[misc]

    return asyncio.run(main())


async def lag(cluster: Cluster, committed: int) -> tuple[int | None, int | None]:
    offsets = {HERE: CommittedOffset(committed)}
    (found,) = (await positions(cluster, {"g": (GROUP, offsets)}, with_time=True))["g"]
    return found.lag, found.lag_ms


def test_an_old_node_is_asked_for_its_last_batch_in_place_of_the_newest_time() -> None:
    def records_at(offset: int) -> bytes:
        return batch((offset, 1000 * offset))

    assert node(records_at, lambda cluster: lag(cluster, 15)) == (5, 5000)
    assert node(records_at, lambda cluster: lag(cluster, 15), list_offsets=7) == (5, 85_000)


def test_where_the_last_record_that_was_read_is_gone_the_first_that_is_there_counts() -> None:
    assert node(lambda offset: batch((offset, 1000 * offset)), lambda cluster: lag(cluster, 3)) == (17, 9000)


@pytest.mark.parametrize("compression", list(Compression))
def test_a_record_is_found_within_its_batch(compression: Compression) -> None:
    data = batch((10, 1), (11, 2), (12, 3), compression=compression)
    assert node(lambda _: data, lambda cluster: record_times(cluster, [(HERE, 11)])) == {(HERE, 11): 2}


def test_of_a_record_that_compaction_took_the_next_counts_or_what_is_left_of_its_batch() -> None:
    data = batch((10, 1), (13, 4), last_offset=15)
    wanted = [(HERE, 11), (HERE, 15)]
    assert node(lambda _: data, lambda cluster: record_times(cluster, wanted)) == {(HERE, 11): 4, (HERE, 15): 4}


@pytest.mark.parametrize("data", [b"", bytes(70), batch((10, 1))[:50]])
def test_what_cannot_be_read_is_not_known(data: bytes) -> None:
    assert node(lambda _: data, lambda cluster: record_times(cluster, [(HERE, 10)])) == {}
    assert node(lambda _: data, lambda cluster: lag(cluster, 15)) == (5, None)
