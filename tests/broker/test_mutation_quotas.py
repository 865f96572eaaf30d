"""controller_mutation_rate in CreateTopics, CreatePartitions and DeleteTopics (KIP-599)."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import slices
from barnabas.broker.api import create_topics
from barnabas.broker.context import ClientInformation, Context, Listener, Peer
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.records.metadata import ClientQuotaRecord
from tests.broker.harness import MemoryNode

POLICY_VIOLATION, THROTTLED = 44, 89
PEER = Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", is_controller=False))


def node(rate: float) -> MemoryNode:
    entity = [ClientQuotaRecord.EntityData(entity_type="user", entity_name=None)]
    return MemoryNode(records=[ClientQuotaRecord(entity=entity, key="controller_mutation_rate", value=rate)])


def create(name: str, partitions: int) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=partitions, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=60_000)


def test_a_client_above_its_rate_is_told_how_long_to_wait_and_succeeds_after_that() -> None:
    memory = node(rate=1)
    assert memory.call(create("a", 13), 7).topics[0].error_code == 0  # the bucket holds 11, and may be overdrawn
    refused = memory.call(create("b", 1), 7)
    assert (refused.topics[0].error_code, refused.throttle_time_ms) == (THROTTLED, 2000)
    memory.now_ms += 2000
    accepted = memory.call(create("b", 1), 7)
    assert (accepted.topics[0].error_code, accepted.throttle_time_ms) == (0, 0)


def test_a_client_that_cannot_be_told_is_never_refused_but_its_connection_is_muted() -> None:
    memory = node(rate=1)  # nobody would wait so long for an answer
    for name, partitions, throttle_time_ms in (("a", 1011, 1_000_000), ("b", 1, 1_001_000)):
        information = ClientInformation()
        response = memory.call(create(name, partitions), 5, information=information)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, throttle_time_ms)
        assert information.mute_ms == throttle_time_ms


def test_a_client_that_is_refused_is_muted_too() -> None:
    memory = node(rate=1)
    information = ClientInformation()
    memory.call(create("a", 13), 7, information=information)
    assert information.mute_ms == 0
    memory.call(create("b", 1), 7, information=information)
    assert information.mute_ms == 2000


def test_more_partitions_and_deleted_topics_count_as_well() -> None:
    memory = node(rate=1)
    memory.call(create("a", 12), 7)
    wanted = CreatePartitionsRequest.CreatePartitionsTopic(name="a", count=13, assignments=None)
    partitions = memory.call(CreatePartitionsRequest(topics=[wanted], timeout_ms=60_000), 3)
    assert [row.error_code for row in partitions.results] == [THROTTLED]
    state = DeleteTopicsRequest.DeleteTopicState(name="a")
    deleted = memory.call(DeleteTopicsRequest(topics=[state], timeout_ms=60_000), 6)
    assert [row.error_code for row in deleted.responses] == [THROTTLED]
    assert memory.image.topics.names == ("a",)


def test_a_request_that_is_refused_as_a_whole_takes_nothing() -> None:
    memory = node(rate=909)  # the bucket holds 9,999
    too_many = CreateTopicsRequest(topics=[*create("a", 9_998).topics, *create("b", 2).topics], timeout_ms=60_000)
    assert [row.error_code for row in memory.call(too_many, 7).topics] == [POLICY_VIOLATION] * 2
    assert memory.call(create("c", 9_999), 7).topics[0].error_code == 0  # the bucket was full
    assert memory.call(create("d", 1), 7).topics[0].error_code == 0  # and is empty now
    assert memory.call(create("e", 1), 7).topics[0].error_code == THROTTLED


@pytest.mark.parametrize("turn_s", [slices.TURN_S, 0.0], ids=["in one turn", "in many turns"])
def test_requests_count_from_their_decision_on_and_not_from_their_commit_on(
    turn_s: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "TURN_S", turn_s)
    memory = node(rate=1)

    async def both() -> list[int]:
        requests = [create(name, 12) for name in ("a", "b")]
        contexts = [Context(memory, PEER, 7, number, "c") for number in range(2)]
        responses = await asyncio.gather(*map(create_topics.handle, contexts, requests))
        return [row.error_code for response in responses for row in response.topics]

    assert asyncio.run(both()) == [0, THROTTLED]


def test_without_a_quota_nobody_waits() -> None:
    memory = MemoryNode()
    for index in range(5):
        response = memory.call(create(f"t{index}", 50), 7)
        assert (response.topics[0].error_code, response.throttle_time_ms) == (0, 0)
