"""Requests to leaders for more partitions than one request has."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.admin import leaders
from barnabas.client.admin.leaders import Answers, ask_leaders
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.testing import Broker
from barnabas.wire.errors import ErrorCode, KafkaError

FIVE = [TopicPartition("orders", number) for number in range(5)]


def test_a_leader_is_asked_for_many_partitions_with_one_request_after_another(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "_MAX_IN_REQUEST", 2)
    asked: list[list[TopicPartition]] = []
    under_way = 0

    async def ask(node_id: int, partitions: list[TopicPartition], wait_ms: float) -> Answers[int]:
        nonlocal under_way
        under_way += 1
        assert under_way == 1
        asked.append(partitions)
        await asyncio.sleep(0)
        under_way -= 1
        return {each: each.partition for each in partitions}

    async def main() -> None:
        async with Broker({"orders": 5}) as broker, Cluster(broker.client_config()) as cluster:
            assert await ask_leaders(cluster, FIVE, ask) == {each: each.partition for each in FIVE}

    asyncio.run(main())
    assert asked == [FIVE[:2], FIVE[2:4], FIVE[4:]]


def test_a_leader_that_does_not_answer_is_not_asked_for_the_next_partitions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(leaders, "_MAX_IN_REQUEST", 2)

    async def ask(node_id: int, partitions: list[TopicPartition], wait_ms: float) -> Answers[int]:
        assert partitions != FIVE[4:]
        if partitions == FIVE[2:4]:
            raise TimeoutError("no answer")
        return {each: each.partition for each in partitions}

    async def main() -> Answers[int]:
        async with Broker({"orders": 5}) as broker, Cluster(broker.client_config()) as cluster:
            return await ask_leaders(cluster, FIVE, ask, timeout_ms=1)

    found = asyncio.run(main())
    assert [found[each] for each in FIVE[:2]] == [0, 1]
    for each in FIVE[2:]:
        lost = found[each]
        assert isinstance(lost, KafkaError)
        assert (lost.code, lost.message) == (ErrorCode.REQUEST_TIMED_OUT, "no answer")
