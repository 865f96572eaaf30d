"""ElectLeaders (43)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.records.metadata import PartitionChangeRecord
from tests.broker.harness import MemoryNode
from tests.broker.partition_captures import Capture, captures, node_before
from tests.broker.simulated_broker import cluster, create_topic
from tests.controller.situations import TOPIC, partition, topic

HEALTHY = 2155
STATES = {
    "preferred leader not available": 2260,
    "preferred after the return": 2412,
    "preferred for all": 2611,
    "preferred for all, none needed": 2635,
}
DIFFERENCES = {
    "alice, not allowed": "Kafka's text shows its own objects",
    "preferred for all": "Kafka lists topics, and a topic's partitions, in the order of a hash map; we by name and number",
    "preferred for all, none needed": "as above",
}


@pytest.mark.parametrize("capture", [c for c in captures("ElectLeaders") if c.case not in DIFFERENCES], ids=str)
def test_answers_are_those_of_apache_kafka(capture: Capture) -> None:
    assert capture.ask(node_before(STATES.get(capture.case, HEALTHY))) == capture.response


@pytest.mark.parametrize(
    "capture", [c for c in captures("ElectLeaders") if c.case.startswith("preferred for all")], ids=str
)
def test_an_election_for_all_gives_the_same_rows_in_order_of_names(capture: Capture) -> None:
    ours = capture.decode(capture.ask(node_before(STATES[capture.case]))).replica_election_results
    theirs = capture.decode(capture.response).replica_election_results
    for each in theirs:
        each.partition_result.sort(key=lambda row: row.partition_id)
    assert ours == sorted(theirs, key=lambda each: each.topic)


def test_who_may_not_alter_the_cluster_gets_the_error_on_each_partition() -> None:
    (capture,) = [c for c in captures("ElectLeaders") if c.case == "alice, not allowed"]
    node = node_before(HEALTHY)
    ours, theirs = capture.decode(capture.ask(node)), capture.decode(capture.response)
    (row,) = ours.replica_election_results[0].partition_result
    assert row.error_message == "The request of User:alice from 127.0.0.1 needs ALTER permission."
    row.error_message = theirs.replica_election_results[0].partition_result[0].error_message
    assert ours == theirs
    assert node.written == []


@pytest.mark.parametrize("version", [0, 1, 2])
def test_every_version_elects_the_preferred_leader(version: int) -> None:
    node = MemoryNode(brokers=2, records=topic(partition([2, 1], [1, 2])))
    request = ElectLeadersRequest(
        topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0])], timeout_ms=1000
    )
    response = node.call(request, version)
    assert response.error_code == 0
    assert [(r.partition_id, r.error_code) for r in response.replica_election_results[0].partition_result] == [(0, 0)]
    assert node.written == [PartitionChangeRecord(topic_id=TOPIC, partition_id=0, leader=2)]


def test_a_request_that_fails_as_a_whole_in_version_0_says_so_on_its_partitions_only() -> None:
    node = MemoryNode(brokers=2, records=topic(partition([2, 1], [1, 2])))
    node.controller.loop.lost()
    request = ElectLeadersRequest(topic_partitions=[ElectLeadersRequest.TopicPartitions(topic="t", partitions=[0, 1])])
    response = node.call(request, 0)
    assert [(r.partition_id, r.error_code) for r in response.replica_election_results[0].partition_result] == [
        (0, 41),
        (1, 41),
    ]


def elect(node: MemoryNode, election_type: int, *indexes: int) -> list[int]:
    asked = [ElectLeadersRequest.TopicPartitions(topic="t", partitions=list(indexes))]
    response = node.call(ElectLeadersRequest(election_type=election_type, topic_partitions=asked, timeout_ms=1000), 2)
    return [row.error_code for row in response.replica_election_results[0].partition_result]


def test_leadership_comes_back_when_the_preferred_broker_is_in_sync_again() -> None:
    node, brokers = cluster(2)
    create_topic(node, "t", [1, 2])
    brokers[1].beat(want_fence=True)
    assert elect(node, 0, 0) == [80]
    brokers[1].beat()
    assert elect(node, 0, 0) == [80]
    brokers[2].propose_isr("t", 0, [2, 1])
    assert elect(node, 0, 0) == [0]
    assert (brokers[1].partition("t", 0).leader, brokers[1].partition("t", 0).leader_epoch) == (1, 2)
    assert elect(node, 0, 0) == [84]


def test_an_unclean_election_takes_the_broker_that_is_left() -> None:
    node, brokers = cluster(3)
    create_topic(node, "t", [1, 2], [3, 1])
    brokers[1].propose_isr("t", 0, [1])
    brokers[1].beat(want_fence=True)
    assert brokers[2].partition("t", 0).leader == -1
    assert elect(node, 1, 0, 1) == [0, 84]
    assert (brokers[2].partition("t", 0).leader, brokers[2].partition("t", 0).isr) == (2, (2,))
    brokers[2].beat(want_fence=True)
    assert elect(node, 1, 0) == [83]
