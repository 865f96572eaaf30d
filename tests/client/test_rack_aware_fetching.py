"""Fetches from followers that the leader prefers (KIP-392), from two scripted brokers of which the first one leads."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import pytest

from barnabas.batches import Record, build_batch
from barnabas.client.consumer import Consumer
from barnabas.client.consuming.read_replica import PreferredReplica, read_replica
from barnabas.client.state import Partition
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.metadata import MetadataResponse
from tests.client.peers import Asked, answering, peer, ranges

LEADER, FOLLOWER, UNKNOWN = 1, 2, 3
TOPIC_ID = Uuid(b"t" * 16)
SERVED = ranges(Metadata=(0, 13), Fetch=(4, 17))
ORDERS = Partition(0, LEADER, 5, replicas=(LEADER, FOLLOWER), isr=(LEADER, FOLLOWER))


@pytest.mark.parametrize(
    ("preferred", "partition", "expected"),
    [
        (None, ORDERS, LEADER),
        (PreferredReplica(FOLLOWER, 10.0), ORDERS, FOLLOWER),
        (PreferredReplica(FOLLOWER, 5.0), ORDERS, LEADER),
        (PreferredReplica(UNKNOWN, 10.0), ORDERS._replace(replicas=(LEADER, UNKNOWN)), LEADER),
        (PreferredReplica(FOLLOWER, 10.0), ORDERS._replace(offline_replicas=(FOLLOWER,)), LEADER),
        (PreferredReplica(FOLLOWER, 10.0), ORDERS._replace(replicas=(LEADER,)), LEADER),
        (PreferredReplica(FOLLOWER, 10.0), ORDERS._replace(leader_id=-1), None),
        (PreferredReplica(FOLLOWER, 10.0), ORDERS._replace(leader_id=UNKNOWN), None),
        (PreferredReplica(FOLLOWER, 10.0), None, None),
    ],
)
def test_a_follower_is_fetched_from_while_it_is_online_and_its_time_has_not_passed(
    preferred: PreferredReplica | None, partition: Partition | None, expected: int | None
) -> None:
    assert read_replica(preferred, partition, {LEADER, FOLLOWER}, 5.0) == expected


Answer = FetchResponse.PartitionData


class TwoBrokers:
    """The partition orders-0. `answers` has the answer of each broker to a fetch of it."""

    def __init__(self) -> None:
        self.ports: dict[int, int] = {}
        self.fetches: list[tuple[int, FetchRequest]] = []
        self.answers: dict[int, Callable[[int], Answer]] = {}
        self.known = [LEADER, FOLLOWER]

    def script(self, node_id: int) -> Callable[[Asked], bytes]:
        def answer(asked: Asked) -> bytes:
            if asked.name == "ApiVersions":
                return asked.answer(SERVED)
            if asked.name == "Metadata":
                return asked.answer(self._metadata())
            request = asked.request
            assert isinstance(request, FetchRequest)
            if request.session_epoch >= 0:
                self.fetches.append((node_id, request))
            rows = [self.answers[node_id](row.fetch_offset) for topic in request.topics for row in topic.partitions]
            topics = [FetchResponse.FetchableTopicResponse(topic_id=TOPIC_ID, partitions=rows)] if rows else []
            return asked.answer(FetchResponse(responses=topics))

        return answer

    def _metadata(self) -> MetadataResponse:
        row = MetadataResponse.MetadataResponsePartition(
            partition_index=0, leader_id=LEADER, leader_epoch=5, replica_nodes=[1, 2, 3], isr_nodes=[1, 2, 3]
        )
        topic = MetadataResponse.MetadataResponseTopic(name="orders", topic_id=TOPIC_ID, partitions=[row])
        brokers = [
            MetadataResponse.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=self.ports[node_id])
            for node_id in self.known
        ]
        return MetadataResponse(brokers=brokers, controller_id=1, cluster_id="scripted", topics=[topic])

    @property
    def asked(self) -> list[int]:
        return [node_id for node_id, _ in self.fetches]


def records(offset: int) -> FetchResponse.PartitionData:
    data = build_batch([Record(0, 0, None, b"%d" % offset)], base_offset=offset)
    return FetchResponse.PartitionData(partition_index=0, high_watermark=1_000, records=data)


def prefers(node_id: int) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(partition_index=0, high_watermark=1_000, preferred_read_replica=node_id)


def fails(code: ErrorCode) -> FetchResponse.PartitionData:
    return FetchResponse.PartitionData(partition_index=0, error_code=code, high_watermark=-1)


def against(brokers: TwoBrokers, scenario: Callable[[Consumer], Any], **settings: Any) -> None:
    async def main() -> None:
        async with contextlib.AsyncExitStack() as stack:
            for node_id in (LEADER, FOLLOWER):
                brokers.ports[node_id] = await stack.enter_async_context(peer(answering(brokers.script(node_id))))
            brokers.ports[UNKNOWN] = 1
            given = {
                "bootstrap.servers": f"127.0.0.1:{brokers.ports[LEADER]}",
                "client.rack": "b",
                "retry.backoff.ms": 10,
                **{name.replace("_", "."): value for name, value in settings.items()},
            }
            async with asyncio.timeout(20), Consumer(given) as consumer:
                consumer.assign([("orders", 0)])
                consumer.seek(("orders", 0), 0)
                await scenario(consumer)
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())


async def read(consumer: Consumer, count: int) -> list[int]:
    return [(await consumer.getone()).offset for _ in range(count)]


def test_records_come_from_the_follower_that_the_leader_prefers() -> None:
    brokers = TwoBrokers()
    brokers.answers = {LEADER: lambda _: prefers(FOLLOWER), FOLLOWER: records}

    async def scenario(consumer: Consumer) -> None:
        assert await read(consumer, 5) == [0, 1, 2, 3, 4]
        assert brokers.asked[0] == LEADER
        assert set(brokers.asked[1:]) == {FOLLOWER}
        assert {request.rack_id for _, request in brokers.fetches} == {"b"}

    against(brokers, scenario)


def test_an_offset_that_is_out_of_range_at_the_follower_is_asked_of_the_leader() -> None:
    brokers = TwoBrokers()
    brokers.answers = {
        LEADER: lambda offset: prefers(FOLLOWER) if offset < 2 else records(offset),
        FOLLOWER: lambda offset: records(offset) if offset < 2 else fails(ErrorCode.OFFSET_OUT_OF_RANGE),
    }

    async def scenario(consumer: Consumer) -> None:
        assert await read(consumer, 5) == [0, 1, 2, 3, 4]
        first = brokers.asked.index(FOLLOWER)
        assert brokers.asked[: first + 4] == [LEADER, FOLLOWER, FOLLOWER, FOLLOWER, LEADER]

    against(brokers, scenario, auto_offset_reset="none")


@pytest.mark.parametrize("code", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.REPLICA_NOT_AVAILABLE])
def test_a_follower_that_fails_is_left_and_preferred_again_when_the_leader_does(code: ErrorCode) -> None:
    brokers = TwoBrokers()
    left = [fails(code)]
    brokers.answers = {
        LEADER: lambda _: prefers(FOLLOWER),
        FOLLOWER: lambda offset: left.pop() if offset == 2 and left else records(offset),
    }

    async def scenario(consumer: Consumer) -> None:
        assert await read(consumer, 5) == [0, 1, 2, 3, 4]
        assert brokers.asked.count(LEADER) == 2
        again = brokers.asked.index(LEADER, 1)
        assert brokers.asked[again - 1] == brokers.asked[again + 1] == FOLLOWER

    against(brokers, scenario)


def test_after_the_maximum_age_of_metadata_the_leader_is_asked_again() -> None:
    brokers = TwoBrokers()
    brokers.answers = {LEADER: lambda _: prefers(FOLLOWER), FOLLOWER: records}

    async def scenario(consumer: Consumer) -> None:
        while brokers.asked.count(LEADER) < 3:
            await consumer.getone()
            await asyncio.sleep(0.01)
        begin = brokers.asked.index(LEADER, 1)
        assert FOLLOWER in brokers.asked[begin : brokers.asked.index(LEADER, begin + 1)]

    against(brokers, scenario, metadata_max_age_ms=100)


def test_a_follower_that_is_not_known_is_looked_up_and_not_asked_for_in_a_hurry() -> None:
    brokers = TwoBrokers()
    brokers.known = [LEADER]
    brokers.answers = {LEADER: lambda _: prefers(FOLLOWER), FOLLOWER: records}

    async def scenario(consumer: Consumer) -> None:
        assert await consumer.poll(300) == []
        assert set(brokers.asked) == {LEADER}
        assert len(brokers.asked) < 100
        brokers.known = [LEADER, FOLLOWER]
        assert await read(consumer, 2) == [0, 1]
        assert FOLLOWER in brokers.asked

    against(brokers, scenario)


def test_a_follower_that_is_gone_is_left_for_the_leader() -> None:
    brokers = TwoBrokers()
    brokers.known = [LEADER, FOLLOWER, UNKNOWN]
    asked = 0

    def leader(offset: int) -> Answer:
        nonlocal asked
        asked += 1
        return prefers(UNKNOWN) if asked == 1 else records(offset)

    brokers.answers = {LEADER: leader}

    async def scenario(consumer: Consumer) -> None:
        assert await read(consumer, 2) == [0, 1]
        assert set(brokers.asked) == {LEADER}

    against(brokers, scenario)
