"""ListPartitionReassignments (46)."""

from __future__ import annotations

import pytest

from barnabas.security.authorizer import AuthorizerSettings
from barnabas.wire.messages.list_partition_reassignments import ListPartitionReassignmentsRequest
from tests.broker.harness import MemoryNode
from tests.broker.partition_captures import Capture, captures, node_before
from tests.controller.situations import partition, topic

STATES = {"in progress, named": 2112, "after the cancel": 2118, "final": 4990}
DIFFERENCES = {"alice, not allowed": "Kafka's text shows its own objects"}


@pytest.mark.parametrize(
    "capture", [c for c in captures("ListPartitionReassignments") if c.case not in DIFFERENCES], ids=str
)
def test_answers_are_those_of_apache_kafka(capture: Capture) -> None:
    assert capture.ask(node_before(STATES.get(capture.case, 2081))) == capture.response


def test_who_may_not_describe_the_cluster_gets_the_error() -> None:
    (capture,) = [c for c in captures("ListPartitionReassignments") if c.case == "alice, not allowed"]
    ours, theirs = capture.decode(capture.ask(node_before(2081))), capture.decode(capture.response)
    assert ours.error_message == "The request of User:alice from 127.0.0.1 needs DESCRIBE permission."
    ours.error_message = theirs.error_message
    assert ours == theirs


def test_a_refused_request_names_the_partitions_that_were_asked_for() -> None:
    topics = [ListPartitionReassignmentsRequest.ListPartitionReassignmentsTopics(name="t", partition_indexes=[4, 5])]
    node = MemoryNode(authorizer=AuthorizerSettings(enabled=True))
    response = node.call(ListPartitionReassignmentsRequest(topics=topics), 0)
    assert response.error_code == 31
    assert [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics] == [("t", [4, 5])]


def test_all_that_is_going_on_is_listed_by_topic() -> None:
    moving = {"adding_replicas": [2], "removing_replicas": [1]}
    records = topic(partition([2, 1], [1], **moving), partition([1]), partition([2, 1], [1], **moving))
    node = MemoryNode(brokers=2, records=records)
    response = node.call(ListPartitionReassignmentsRequest(topics=None), 0)
    rows = [
        (p.partition_index, p.replicas, p.adding_replicas, p.removing_replicas) for p in response.topics[0].partitions
    ]
    assert rows == [(0, [2, 1], [2], [1]), (2, [2, 1], [2], [1])]
