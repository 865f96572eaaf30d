"""Requests to the controller with a timeout: it limits the time until the decision, not the time of the commit.

The expected answers are those of Apache Kafka 4.3.1. A timeout that is not positive is over before anything is done.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from barnabas.wire.messages.update_features import UpdateFeaturesRequest
from tests.broker import config_captures
from tests.broker.harness import MemoryNode

TIMED_OUT = ErrorCode.REQUEST_TIMED_OUT
LISTENERS = pytest.mark.parametrize("listener", ["broker", "controller"])
TIMEOUTS = pytest.mark.parametrize("timeout_ms", [0, -1])


def create(name: str, timeout_ms: int, **more: Any) -> CreateTopicsRequest:
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=timeout_ms, **more)


def node() -> MemoryNode:
    memory = config_captures.one_node()
    memory.call(create("here", 1000), 7)
    return memory


def partitions(name: str, timeout_ms: int) -> CreatePartitionsRequest:
    topic = CreatePartitionsRequest.CreatePartitionsTopic(name=name, count=4, assignments=None)
    return CreatePartitionsRequest(topics=[topic], timeout_ms=timeout_ms)


def delete(name: str, version: int, timeout_ms: int) -> DeleteTopicsRequest:
    if version < 6:
        return DeleteTopicsRequest(topic_names=[name], timeout_ms=timeout_ms)
    return DeleteTopicsRequest(topics=[DeleteTopicsRequest.DeleteTopicState(name=name)], timeout_ms=timeout_ms)


@LISTENERS
@TIMEOUTS
def test_every_topic_of_a_request_without_time_is_timed_out_and_nothing_is_changed(
    listener: str, timeout_ms: int
) -> None:
    memory = node()
    before = memory.image
    for name in ("here", "nowhere"):
        requests: list[tuple[Message, int]] = [
            *((create(name, timeout_ms), version) for version in (2, 4, 5, 7)),
            (create(name, timeout_ms, validate_only=True), 7),
            *((partitions(name, timeout_ms), version) for version in range(4)),
            *((delete(name, version, timeout_ms), version) for version in (1, 3, 5, 6)),
        ]
        for request, version in requests:
            response = memory.call(request, version, listener=listener)
            rows = next(
                getattr(response, each) for each in ("topics", "results", "responses") if hasattr(response, each)
            )
            assert [(row.name, row.error_code) for row in rows] == [(name, TIMED_OUT)], (request, version)
            assert getattr(rows[0], "error_message", None) is None
    assert memory.image is before


@LISTENERS
@TIMEOUTS
def test_elections_and_reassignments_without_time_are_timed_out_as_a_whole(listener: str, timeout_ms: int) -> None:
    memory = node()
    before = memory.image
    for version in range(3):
        for election_type in (0, 1) if version else (0,):
            for topic in ("here", "nowhere"):
                wanted = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[0, 7])
                request = ElectLeadersRequest(
                    election_type=election_type, topic_partitions=[wanted], timeout_ms=timeout_ms
                )
                elected = memory.call(request, version, listener=listener)
                assert elected.error_code == (TIMED_OUT if version else 0)
                (row,) = elected.replica_election_results
                results = [(each.partition_id, each.error_code, each.error_message) for each in row.partition_result]
                assert (row.topic, results) == (topic, [(0, TIMED_OUT, None), (7, TIMED_OUT, None)])
            request = ElectLeadersRequest(election_type=election_type, topic_partitions=None, timeout_ms=timeout_ms)
            everything = memory.call(request, version, listener=listener)
            assert (everything.error_code, everything.replica_election_results) == (TIMED_OUT if version else 0, [])
    asked = AlterPartitionReassignmentsRequest
    for version in range(2):
        of_topic = asked.ReassignableTopic(
            name="here", partitions=[asked.ReassignablePartition(partition_index=0, replicas=[1])]
        )
        altered = memory.call(asked(topics=[of_topic], timeout_ms=timeout_ms), version, listener=listener)
        assert (altered.error_code, altered.error_message) == (TIMED_OUT, None)
        ((part,),) = (each.partitions for each in altered.responses)
        assert (part.partition_index, part.error_code, part.error_message) == (0, TIMED_OUT, None)
    assert memory.image is before


@LISTENERS
@TIMEOUTS
def test_requests_that_ask_for_nothing_or_ignore_their_timeout_are_answered(listener: str, timeout_ms: int) -> None:
    memory = node()
    for request, version in (
        (CreateTopicsRequest(timeout_ms=timeout_ms), 7),
        (CreatePartitionsRequest(timeout_ms=timeout_ms), 3),
        (DeleteTopicsRequest(timeout_ms=timeout_ms), 6),
        (ElectLeadersRequest(topic_partitions=[], timeout_ms=timeout_ms), 2),
        (AlterPartitionReassignmentsRequest(timeout_ms=timeout_ms), 1),
        (ListPartitionReassignmentsRequest(topics=None, timeout_ms=timeout_ms), 0),
        (UpdateFeaturesRequest(timeout_ms=timeout_ms), 1),
    ):
        response = memory.call(request, version, listener=listener)
        assert getattr(response, "error_code", 0) == 0, response


def test_a_commit_may_take_longer_than_the_timeout(monkeypatch: pytest.MonkeyPatch) -> None:
    memory = node()
    committed = memory.controller.loop.committed

    def later(offset: int) -> None:
        asyncio.get_running_loop().call_later(0.05, committed, offset)

    monkeypatch.setattr(memory.controller.loop, "committed", later)
    assert [row.error_code for row in memory.call(create("new", 1), 7).topics] == [0]
