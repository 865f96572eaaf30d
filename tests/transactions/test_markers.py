"""Markers on their way to the leaders of partitions."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from barnabas import wire
from barnabas.metadata.image import EMPTY_IMAGE, MetadataImage, Provenance
from barnabas.metadata.replay import replay
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.markers import (
    EndedTransaction,
    MarkerOutcome,
    MarkerSender,
    TakenOverError,
    by_leader,
    judge,
)
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse
from tests.replicated.manual_clock import ManualClock
from tests.transactions.world import topic_records

ENDED = EndedTransaction(Producer(7, 3), Marker(True, 4), 2)
T = [TopicPartition("t", index) for index in range(5)]
LEADERS = [1, 1, 2, 3, -1]


def image(leaders: list[int] = LEADERS) -> MetadataImage:
    return replay(EMPTY_IMAGE, topic_records("t", leaders), Provenance(10, 1, 0))


class Network:
    """Other brokers, which note what they are sent; `errors` is what they say about a partition."""

    def __init__(self) -> None:
        self.sent: list[tuple[int, WriteTxnMarkersRequest]] = []
        self.written: list[list[TopicPartition]] = []
        self.errors: dict[TopicPartition, ErrorCode] = {}
        self.unreachable: set[int] = set()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def write_local(
        self, partitions: Sequence[TopicPartition], ended: EndedTransaction
    ) -> dict[TopicPartition, ErrorCode]:
        assert ended == ENDED
        self.written.append(list(partitions))
        return {each: self.errors.get(each, ErrorCode.NONE) for each in partitions}

    async def ask(self, broker_id: int, message: Message) -> Any:
        request = wire.decode(WriteTxnMarkersRequest, 2, wire.encode(message, 2))
        self.sent.append((broker_id, request))
        await self.may_answer.wait()
        if broker_id in self.unreachable:
            raise ConnectionError("nobody there")
        rows = WriteTxnMarkersResponse
        return rows(
            markers=[
                rows.WritableTxnMarkerResult(
                    producer_id=marker.producer_id,
                    topics=[
                        rows.WritableTxnMarkerTopicResult(
                            name=topic.name,
                            partitions=[
                                rows.WritableTxnMarkerPartitionResult(
                                    partition_index=index,
                                    error_code=self.errors.get(TopicPartition(topic.name, index), ErrorCode.NONE),
                                )
                                for index in topic.partition_indexes
                            ],
                        )
                        for topic in marker.topics
                    ],
                )
                for marker in request.markers
            ]
        )


def run(scenario: Callable[[MarkerSender, Network, ManualClock, list[MetadataImage]], Awaitable[None]]) -> None:
    async def main() -> None:
        network, clock, images = Network(), ManualClock(), [image()]
        sender = MarkerSender(1, lambda: images[-1], network.write_local, network.ask, clock)
        await scenario(sender, network, clock, images)
        sender.stop()

    asyncio.run(main())


async def turns(count: int = 30) -> None:
    for _ in range(count):
        await asyncio.sleep(0)


def test_each_leader_gets_the_markers_of_its_partitions() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        remaining = set(T[:4])
        await sender.send(ENDED, remaining)
        assert not remaining
        assert network.written == [[T[0], T[1]]]
        (first, request), (second, _) = network.sent
        assert (first, second) == (2, 3)
        (marker,) = request.markers
        assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (7, 3, True)
        assert (marker.coordinator_epoch, marker.transaction_version) == (4, 2)
        assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [2])]

    run(scenario)


def test_what_failed_is_sent_again_and_only_that() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        network.errors = {T[1]: ErrorCode.NOT_ENOUGH_REPLICAS}
        network.unreachable = {2}
        remaining = set(T[:4])
        sending = asyncio.ensure_future(sender.send(ENDED, remaining))
        await turns()
        assert remaining == {T[1], T[2]}
        network.errors.clear()
        network.unreachable.clear()
        clock.advance(100)
        await asyncio.wait_for(sending, 1)
        assert network.written == [[T[0], T[1]], [T[1]]]
        assert [broker_id for broker_id, _ in network.sent] == [2, 3, 2]

    run(scenario)


def test_a_partition_without_a_leader_waits_for_one() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        sending = asyncio.ensure_future(sender.send(ENDED, {T[4]}))
        await turns()
        images.append(image([1, 1, 2, 3, 2]))
        sender.look_again()
        await asyncio.wait_for(sending, 1)
        assert [broker_id for broker_id, _ in network.sent] == [2]

    run(scenario)


def test_pauses_grow_but_not_for_ever() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        network.errors = {T[0]: ErrorCode.NOT_LEADER_OR_FOLLOWER}
        sending = asyncio.ensure_future(sender.send(ENDED, {T[0]}))
        tries = []
        for _ in range(100):
            await turns(5)
            tries.append(len(network.written))
            clock.advance(100)
        assert 10 <= tries[-1] <= 20
        assert tries[50] < tries[70]
        sending.cancel()

    run(scenario)


def test_markers_to_one_broker_gather_while_a_request_is_out() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        network.may_answer.clear()
        others = [ENDED._replace(producer=Producer(number, 0)) for number in range(5)]
        sending = [asyncio.ensure_future(sender.send(each, {T[2]})) for each in others]
        await turns()
        network.may_answer.set()
        await asyncio.wait_for(asyncio.gather(*sending), 1)
        assert [len(request.markers) for _, request in network.sent] == [5]
        again = asyncio.ensure_future(sender.send(ENDED, {T[2]}))
        await asyncio.wait_for(again, 1)
        assert len(network.sent) == 2

    run(scenario)


def test_a_partition_that_knows_better_ends_it() -> None:
    async def scenario(sender: MarkerSender, network: Network, clock: ManualClock, images: list[MetadataImage]) -> None:
        network.errors = {T[0]: ErrorCode.TRANSACTION_COORDINATOR_FENCED}
        with pytest.raises(TakenOverError):
            await sender.send(ENDED, set(T[:2]))

    run(scenario)


def test_only_partitions_that_exist_have_leaders() -> None:
    gone = [TopicPartition("t", 5), TopicPartition("other", 0)]
    assert by_leader(image(), [*T, *gone]) == {1: T[:2], 2: [T[2]], 3: [T[3]], -1: [T[4]]}


@pytest.mark.parametrize(
    ("code", "verdict"),
    [
        (ErrorCode.NONE, MarkerOutcome.DONE),
        (ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, MarkerOutcome.DONE),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, MarkerOutcome.AGAIN),
        (ErrorCode.REQUEST_TIMED_OUT, MarkerOutcome.AGAIN),
        (ErrorCode.KAFKA_STORAGE_ERROR, MarkerOutcome.AGAIN),
        (ErrorCode.UNKNOWN_SERVER_ERROR, MarkerOutcome.AGAIN),
        (ErrorCode.INVALID_PRODUCER_EPOCH, MarkerOutcome.TAKEN_OVER),
    ],
)
def test_what_an_answer_means(code: ErrorCode, verdict: MarkerOutcome) -> None:
    assert judge(code) is verdict
