"""AlterPartitionReassignments (45)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from tests.broker.golden import Capture, captures, node_before
from tests.broker.harness import MemoryNode
from tests.controller.situations import partition, topic

BEFORE = 2081
STATES = {
    "replication factor change not allowed": 2084,
    "replication factor change allowed": 2084,
    "move": 2086,
    "throttled move": 2108,
    "change while in progress": 2112,
    "cancel": 2117,
}
Topic = AlterPartitionReassignmentsRequest.ReassignableTopic
Partition = AlterPartitionReassignmentsRequest.ReassignablePartition
DIFFERENCES = {"alice, not allowed": "Kafka's text shows its own objects"}


@pytest.mark.parametrize(
    "capture", [c for c in captures("AlterPartitionReassignments") if c.case not in DIFFERENCES], ids=str
)
def test_answers_are_those_of_apache_kafka(capture: Capture) -> None:
    assert capture.ask(node_before(STATES.get(capture.case, BEFORE))).hex() == capture.response_hex


def test_who_may_not_alter_the_cluster_gets_the_error_at_the_top_and_on_each_partition() -> None:
    (capture,) = [c for c in captures("AlterPartitionReassignments") if c.case == "alice, not allowed"]
    node = node_before(BEFORE)
    ours, theirs = capture.response(capture.ask(node)), capture.response(capture.expected)
    row, their_row = ours.responses[0].partitions[0], theirs.responses[0].partitions[0]
    assert ours.error_message == row.error_message
    ours.error_message, row.error_message = theirs.error_message, their_row.error_message
    assert ours == theirs
    assert node.written == []


@pytest.mark.parametrize("version", [0, 1])
def test_one_bad_partition_does_not_keep_the_others(version: int) -> None:
    node = MemoryNode(brokers=3, records=topic(partition([1]), partition([2])))
    partitions = [Partition(partition_index=0, replicas=[]), Partition(partition_index=1, replicas=[2, 3])]
    response = node.call(AlterPartitionReassignmentsRequest(topics=[Topic(name="t", partitions=partitions)]), version)
    assert [(p.partition_index, p.error_code) for p in response.responses[0].partitions] == [(0, 39), (1, 0)]
    assert len(node.written) == 1


def test_on_a_node_that_does_not_lead_nothing_is_reassigned() -> None:
    node = MemoryNode(brokers=3, records=topic(partition([1])))
    node.controller.loop.lost()
    partitions = [Partition(partition_index=0, replicas=[2])]
    response = node.call(AlterPartitionReassignmentsRequest(topics=[Topic(name="t", partitions=partitions)]), 1)
    assert (response.error_code, response.responses[0].partitions[0].error_code) == (41, 41)
