"""The share coordinator beside Apache Kafka's: the same answers, and state that both read from one directory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, Node

from barnabas.client import AcknowledgeType, ShareConsumer
from barnabas.wire import ErrorCode, Uuid, message_class
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.clients import ask
from tests.client.share_scenes import BROKER_CONFIGS, explicit, prepare, read, read_explicitly

pytestmark = pytest.mark.interop

LIMIT = {"share.coordinator.snapshot.update.records.per.snapshot": "2"}
NOT_YET = (ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR)

Step = tuple[str, int, dict[str, Any]]


def batch(first: int, last: int, state: int = 2, count: int = 1) -> dict[str, int]:
    return {"firstOffset": first, "lastOffset": last, "deliveryState": state, "deliveryCount": count}


def write(first: int, last: int, state_epoch: int = 3, leader_epoch: int = 2, start_offset: int = -1) -> Step:
    return (
        "WriteShareGroupState",
        1,
        {
            "stateEpoch": state_epoch,
            "leaderEpoch": leader_epoch,
            "startOffset": start_offset,
            "deliveryCompleteCount": 1,
            "stateBatches": [batch(first, last)],
        },
    )


READ: Step = ("ReadShareGroupState", 0, {"leaderEpoch": 2})
SUMMARY: Step = ("ReadShareGroupStateSummary", 1, {"leaderEpoch": 2})
STEPS: list[Step] = [
    READ,
    SUMMARY,
    write(0, 1),
    ("InitializeShareGroupState", 0, {"stateEpoch": 3, "startOffset": 5}),
    SUMMARY,
    READ,
    write(5, 7),
    write(6, 6, leader_epoch=1),
    write(6, 6, state_epoch=2),
    ("InitializeShareGroupState", 0, {"stateEpoch": 2, "startOffset": 1}),
    write(9, 12, start_offset=6),
    READ,
    write(8, 8),
    write(10, 11),
    SUMMARY,
    READ,
    ("ReadShareGroupState", 0, {"leaderEpoch": 1}),
    ("ReadShareGroupState", 0, {"leaderEpoch": -1}),
]


async def asked(node: Node, topic_id: Uuid, step: Step, partition: int = 0) -> str:
    name, version, fields = step
    topics = [{"topicId": str(topic_id), "partitions": [{"partition": partition, **fields}]}]
    request = message_class(f"{name}Request").from_json({"groupId": "g", "topics": topics}, version)
    deadline = time.monotonic() + 60
    while True:
        response = await ask(node.address, request, version)
        row = response.results[0].partitions[0]
        if row.error_code not in NOT_YET or time.monotonic() > deadline:
            return repr(row)
        await asyncio.sleep(0.2)


async def prepared(node: Node) -> Uuid:
    topic = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=1)
    created = await ask(node.address, CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    topic_id: Uuid = created.topics[0].topic_id
    request = FindCoordinatorRequest(key_type=2, coordinator_keys=[f"g:{topic_id}:0"])
    deadline = time.monotonic() + 60
    while (await ask(node.address, request, 6)).coordinators[0].error_code and time.monotonic() < deadline:
        await asyncio.sleep(0.2)
    return topic_id


async def answers(node: Node) -> list[str]:
    topic_id = await prepared(node)
    found = [await asked(node, topic_id, step) for step in STEPS]
    return [
        *found,
        await asked(node, topic_id, SUMMARY, partition=1),
        await asked(node, topic_id, SUMMARY, partition=-1),
    ]


def test_the_share_coordinator_answers_as_apache_kafka_does() -> None:
    with ApacheKafka(overrides=LIMIT) as kafka:
        expected = asyncio.run(answers(kafka))
    with Barnabas(overrides=LIMIT) as barnabas:
        found = asyncio.run(answers(barnabas))
    assert found == expected


@pytest.mark.parametrize("is_first_ours", [True, False], ids=["barnabas first", "Apache Kafka first"])
def test_share_state_moves_between_both_on_one_directory(tmp_path: Path, is_first_ours: bool) -> None:
    order = (Barnabas, ApacheKafka) if is_first_ours else (ApacheKafka, Barnabas)

    async def fill(node: Node) -> Uuid:
        topic_id = await prepared(node)
        for step in STEPS:
            await asked(node, topic_id, step)
        return topic_id

    async def look(node: Node, topic_id: Uuid) -> tuple[str, str]:
        return await asked(node, topic_id, READ), await asked(node, topic_id, SUMMARY)

    with order[0](directory=tmp_path, overrides=LIMIT) as node:
        topic_id = asyncio.run(fill(node))
        before = asyncio.run(look(node, topic_id))
        node.kill()
    with order[1](directory=tmp_path, overrides=LIMIT) as node:
        assert asyncio.run(look(node, topic_id)) == before
        assert "error_code=0" in asyncio.run(asked(node, topic_id, write(13, 14)))


@pytest.mark.parametrize("is_first_ours", [True, False], ids=["barnabas first", "Apache Kafka first"])
def test_a_group_goes_on_where_it_was_under_the_other(tmp_path: Path, is_first_ours: bool) -> None:
    """Three nodes after each other on one directory. Each accepts 10 of 40 records, and releases three for the next one."""
    order = (Barnabas, ApacheKafka, Barnabas) if is_first_ours else (ApacheKafka, Barnabas, ApacheKafka)
    accepted: list[int] = []
    released: set[int] = set()

    async def consume(node: Node) -> None:
        settings = {"bootstrap.servers": node.bootstrap, "group.id": "moved"}
        limited = explicit(settings, share_acquire_mode="record_limit", max_poll_records=13)
        async with ShareConsumer(limited, topics=["moved"]) as consumer:
            found = await read_explicitly(consumer, 13)
            assert {each.offset for each in found if each.delivery_count > 1} == released
            released.clear()
            for at, record in enumerate(found):
                if at < 10:
                    accepted.append(record.offset)
                    consumer.acknowledge(record)
                else:
                    released.add(record.offset)
                    consumer.acknowledge(record, AcknowledgeType.RELEASE)
            assert list((await consumer.commit()).values()) == [None]

    async def rest(node: Node) -> None:
        settings = {"bootstrap.servers": node.bootstrap, "group.id": "moved"}
        async with ShareConsumer(settings, topics=["moved"]) as consumer:
            accepted.extend(each.offset for each in await read(consumer, 10))
            assert list((await consumer.commit()).values()) == [None]
            assert await consumer.poll(1_000) == []

    for at, kind in enumerate(order):
        with kind(directory=tmp_path, overrides=BROKER_CONFIGS) as node:
            if at == 0:
                asyncio.run(prepare(node.bootstrap, "moved", 40))
            asyncio.run(consume(node))
            if at == 2:
                asyncio.run(rest(node))
            if at == 0:
                node.kill()
            else:
                node.stop()
    assert sorted(accepted) == list(range(40)), accepted
