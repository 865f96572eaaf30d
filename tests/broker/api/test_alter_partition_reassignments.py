"""AlterPartitionReassignments (45)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.alter_partition_reassignments import AlterPartitionReassignmentsRequest
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.harness import MemoryNode
from tests.broker.partition_captures import Capture, captures, node_before
from tests.broker.simulated_broker import cluster, create_topic
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
    assert capture.ask(node_before(STATES.get(capture.case, BEFORE))) == capture.response


def test_who_may_not_alter_the_cluster_gets_the_error_at_the_top_and_on_each_partition() -> None:
    (capture,) = [c for c in captures("AlterPartitionReassignments") if c.case == "alice, not allowed"]
    node = node_before(BEFORE)
    ours, theirs = capture.decode(capture.ask(node)), capture.decode(capture.response)
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


def reassign(node: MemoryNode, name: str, *targets: list[int] | None) -> list[int]:
    partitions = [Partition(partition_index=index, replicas=replicas) for index, replicas in enumerate(targets)]
    request = AlterPartitionReassignmentsRequest(topics=[Topic(name=name, partitions=partitions)], timeout_ms=1000)
    response = node.call(request, 1)
    assert (response.error_code, response.error_message) == (0, None)
    return [row.error_code for row in response.responses[0].partitions]


def listed(node: MemoryNode) -> dict[tuple[str, int], tuple[list[int], list[int], list[int]]]:
    response = node.call(ListPartitionReassignmentsRequest(topics=None), 0)
    return {
        (topic.name, row.partition_index): (row.replicas, row.adding_replicas, row.removing_replicas)
        for topic in response.topics
        for row in topic.partitions
    }


def test_a_partition_moves_from_broker_to_broker_while_they_run() -> None:
    node, brokers = cluster(4)
    create_topic(node, "t", [1, 2])
    assert reassign(node, "t", [3, 4]) == [0]
    assert listed(node) == {("t", 0): ([3, 4, 1, 2], [3, 4], [1, 2])}
    assert brokers[1].propose_isr("t", 0, [1, 2, 3]).error_code == 0
    assert listed(node) != {}
    row = brokers[1].propose_isr("t", 0, [1, 2, 3, 4])
    assert row.error_code == 108  # done, and the leader that reported it leads no more
    partition = brokers[1].partition("t", 0)
    assert (partition.replicas, partition.isr, partition.leader, partition.leader_epoch) == ((3, 4), (3, 4), 3, 1)
    assert listed(node) == {}
    assert brokers[3].propose_isr("t", 0, [3]).error_code == 0


def test_a_replica_is_added_and_the_leader_keeps_its_epoch() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1])
    assert reassign(node, "t", [1, 2]) == [0]
    row = brokers[1].propose_isr("t", 0, [1, 2])
    assert (row.error_code, row.leader_epoch, row.isr) == (0, 0, [1, 2])
    assert listed(node) == {}


def test_a_move_is_cancelled_half_way() -> None:
    node, brokers = cluster(4)
    create_topic(node, "t", [1, 2])
    reassign(node, "t", [3, 4])
    brokers[1].propose_isr("t", 0, [1, 2, 3])
    assert reassign(node, "t", None) == [0]
    partition = brokers[1].partition("t", 0)
    assert (partition.replicas, partition.isr, partition.leader_epoch) == ((1, 2), (1, 2), 1)
    assert reassign(node, "t", None) == [85]


def test_a_move_goes_on_when_the_leader_dies_and_its_successor_reports() -> None:
    node, brokers = cluster(3)
    create_topic(node, "t", [1, 2])
    reassign(node, "t", [3])
    brokers[1].beat(want_fence=True)
    assert brokers[2].partition("t", 0).leader == 2
    assert brokers[2].propose_isr("t", 0, [2, 3]).error_code == 108
    partition = brokers[2].partition("t", 0)
    assert (partition.replicas, partition.isr, partition.leader) == ((3,), (3,), 3)


def test_a_new_replica_of_a_broker_with_one_directory_is_in_it() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1])
    reassign(node, "t", [2])
    assert brokers[1].partition("t", 0).directories == (brokers[2].directories[0], brokers[1].directories[0])
