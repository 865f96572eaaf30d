"""DescribeTopicPartitions (75)."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas import wire
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import Uuid
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.records.metadata import BrokerRegistrationChangeRecord, PartitionChangeRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, Capture, allow, final_node, node_before, params, topic

Asked = DescribeTopicPartitionsRequest.TopicRequest
Cursor = DescribeTopicPartitionsRequest.Cursor

# Where in the cluster's log the captures of earlier phases were taken.
OFFSETS = {
    "alice, not allowed": 938,
    "alice, all topics": 938,
    "while reassigning": 2111,
    "node 2 down": 2257,
    "after the unclean election": 2518,
    "all back": 2635,
}
A, B, C = (Uuid(each * 16) for each in (b"a", b"b", b"c"))


@pytest.mark.parametrize("capture", params("DescribeTopicPartitions"))
def test_kafka_s_answers(capture: Capture) -> None:
    node = node_before(OFFSETS[capture.case]) if capture.phase != "5-final" else final_node()
    assert capture.ask(node) == capture.answer


def three_topics(*more: Any, properties: dict[str, str] | None = None) -> MemoryNode:
    records = [*topic("a", A, [1], [2], [3]), *topic("b", B, [1, 2], [2, 1]), *topic("c", C, [3, 1, 2])]
    return MemoryNode(properties, brokers=3, records=[*records, *more])


def ask(node: MemoryNode, *names: str, limit: int = 2000, cursor: tuple[str, int] | None = None, **peer: Any) -> Any:
    request = DescribeTopicPartitionsRequest(
        topics=[Asked(name=name) for name in names],
        response_partition_limit=limit,
        cursor=None if cursor is None else Cursor(topic_name=cursor[0], partition_index=cursor[1]),
    )
    return node.call(request, 0, **peer)


def shown(response: Any) -> list[tuple[str, list[int]]]:
    return [(t.name, [p.partition_index for p in t.partitions]) for t in response.topics]


@pytest.mark.parametrize("limit", [1, 2, 3, 4, 5, 6, 7])
@pytest.mark.parametrize("names", [[], ["c", "a", "b"], ["b", "no-such", "a", "c"]])
def test_pages_put_together_are_the_whole(limit: int, names: list[str]) -> None:
    node = three_topics()
    whole = ask(node, *names)
    assert whole.next_cursor is None
    parts: dict[str, list[int]] = {}
    cursor = None
    for _ in range(20):
        response = ask(node, *names, limit=limit, cursor=cursor)
        assert sum(len(indexes) for _, indexes in shown(response)) <= limit
        for name, indexes in shown(response):
            parts.setdefault(name, []).extend(indexes)
        if response.next_cursor is None:
            break
        cursor = response.next_cursor.topic_name, response.next_cursor.partition_index
    assert [*parts.items()] == shown(whole)


def test_the_limit_is_at_most_the_node_s_own() -> None:
    node = three_topics(properties={"max.request.partition.size.limit": "4"})
    response = ask(node)
    assert shown(response) == [("a", [0, 1, 2]), ("b", [0])]
    assert (response.next_cursor.topic_name, response.next_cursor.partition_index) == ("b", 1)


def test_only_topics_that_may_be_described_are_listed_or_counted() -> None:
    entry = allow("User:alice", AclOperation.READ, ResourceType.TOPIC, "b")
    node = node_before(98, [*topic("a", A, [1]), *topic("b", B, [1]), *topic("c", C, [1]), entry])
    everything = ask(node, limit=1, principal=ALICE)
    assert shown(everything) == [("b", [0])]
    assert everything.next_cursor is None
    named = ask(node, "c", "b", "a", "no-such", principal=ALICE)
    assert [(t.name, t.error_code, t.topic_id) for t in named.topics] == [
        ("b", 0, B),
        ("a", 29, Uuid(16)),
        ("c", 29, Uuid(16)),
        ("no-such", 29, Uuid(16)),
    ]
    operations = 1 << AclOperation.READ | 1 << AclOperation.DESCRIBE
    assert named.topics[0].topic_authorized_operations == operations
    assert named.topics[1].topic_authorized_operations == -(2**31)


def test_eligible_leaders_and_offline_replicas_are_told() -> None:
    changed = PartitionChangeRecord(
        topic_id=C, partition_id=0, isr=[3], eligible_leader_replicas=[1], last_known_elr=[2], leader=3
    )
    node = three_topics(changed, BrokerRegistrationChangeRecord(broker_id=2, broker_epoch=102, fenced=1))
    (partition,) = ask(node, "c").topics[0].partitions
    assert (partition.isr_nodes, partition.eligible_leader_replicas, partition.last_known_elr) == ([3], [1], [2])
    assert (partition.offline_replicas, partition.leader_id, partition.leader_epoch) == ([2], 3, 1)


def test_a_partition_without_a_leader_is_no_error_here() -> None:
    node = three_topics(PartitionChangeRecord(topic_id=C, partition_id=0, leader=-1))
    (partition,) = ask(node, "c").topics[0].partitions
    assert (partition.error_code, partition.leader_id) == (0, -1)


@pytest.mark.parametrize("names", [["a"], ["a", "a", "b"]])
def test_a_cursor_that_makes_no_sense_is_invalid_for_everything_asked_for(names: list[str]) -> None:
    for cursor in (("zzz", 0), ("a", -1)):
        response = ask(three_topics(), *names, cursor=cursor)
        assert [(t.name, t.error_code) for t in response.topics] == [(name, 42) for name in names]


def test_the_bytes_are_those_of_the_codec() -> None:
    node = final_node()
    for capture in params("DescribeTopicPartitions"):
        body = capture.values[0].ask(node)[5:]
        assert wire.encode(wire.decode("DescribeTopicPartitionsResponse", 0, body), 0) == body
