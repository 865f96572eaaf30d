"""ElectLeaders (43)."""

from __future__ import annotations

import pytest

from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.records.metadata import PartitionChangeRecord
from tests.broker.golden import Capture, captures, node_before
from tests.broker.harness import MemoryNode
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
    assert capture.ask(node_before(STATES.get(capture.case, HEALTHY))).hex() == capture.response_hex


@pytest.mark.parametrize(
    "capture", [c for c in captures("ElectLeaders") if c.case.startswith("preferred for all")], ids=str
)
def test_an_election_for_all_gives_the_same_rows_in_order_of_names(capture: Capture) -> None:
    ours = capture.response(capture.ask(node_before(STATES[capture.case]))).replica_election_results
    theirs = capture.response(capture.expected).replica_election_results
    for each in theirs:
        each.partition_result.sort(key=lambda row: row.partition_id)
    assert ours == sorted(theirs, key=lambda each: each.topic)


def test_who_may_not_alter_the_cluster_gets_the_error_on_each_partition() -> None:
    (capture,) = [c for c in captures("ElectLeaders") if c.case == "alice, not allowed"]
    node = node_before(HEALTHY)
    ours, theirs = capture.response(capture.ask(node)), capture.response(capture.expected)
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
