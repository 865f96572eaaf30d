"""The share coordinator beside Apache Kafka's: the same answers, and state that both read from one directory."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from tools.apache_kafka import ApacheKafka, Barnabas, Node

from barnabas.wire import ErrorCode, Uuid, message_class
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from tests.broker.clients import ask

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
