"""DeleteTopics (20)."""

from __future__ import annotations

import pytest

from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, Capture, allow, node_before, params, topic

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)
State = DeleteTopicsRequest.DeleteTopicState


def node(properties: dict[str, str] | None = None) -> MemoryNode:
    records = []
    for name, topic_id in (("a", A), ("b", B)):
        records += [
            TopicRecord(name=name, topic_id=topic_id),
            PartitionRecord(partition_id=0, topic_id=topic_id, replicas=[1], isr=[1], leader=1, leader_epoch=0),
            ConfigRecord(resource_type=2, resource_name=name, name="retention.ms", value="1"),
        ]
    return MemoryNode(properties, records=records)


@pytest.mark.parametrize("capture", params("DeleteTopics"))
def test_kafka_s_answers(capture: Capture) -> None:
    """Kafka shuffles its rows; these captures have the order that is the only one here: ids first."""
    rows = {row.name: row for row in capture.response.responses if row.name and row.name.startswith("dt-")}
    records = []
    for number, (name, row) in enumerate(rows.items()):
        topic_id = row.topic_id if row.topic_id != ZERO_UUID else Uuid(bytes([number + 1]) * 16)
        records += topic(name, topic_id, [1])
    node = node_before(98, records)
    assert capture.ask(node) == capture.answer
    deleted = {name for name, row in rows.items() if row.error_code == 0}
    assert set(node.image.topics.names) & set(rows) == set(rows) - deleted


@pytest.mark.parametrize("version", range(6))
def test_topics_are_deleted_by_name_with_their_configs(version: int) -> None:
    memory = node()
    response = memory.call(DeleteTopicsRequest(topic_names=["a", "nope"], timeout_ms=1000), version)
    assert [(r.name, r.error_code) for r in response.responses] == [("a", 0), ("nope", 3)]
    assert memory.written == [RemoveTopicRecord(topic_id=A)]
    assert memory.image.topics.names == ("b",)
    assert not memory.image.config(2, "a")


def test_topics_are_deleted_by_id_and_by_name_in_version_6() -> None:
    memory = node()
    topics = [State(name=None, topic_id=A), State(name="b"), State(name=None, topic_id=Uuid(b"c" * 16))]
    response = memory.call(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    rows = {(r.name, r.topic_id, r.error_code, r.error_message) for r in response.responses}
    assert rows == {
        (None, Uuid(b"c" * 16), 100, "This server does not host this topic ID."),
        ("a", A, 0, None),
        ("b", B, 0, None),
    }
    assert memory.image.topics.names == ()


@pytest.mark.parametrize(
    ("topics", "message"),
    [
        ([State(name="a"), State(name="a")], "Duplicate topic name."),
        ([State(name=None, topic_id=A)] * 2, "Duplicate topic id."),
        ([State(name="a", topic_id=A)], "You may not specify both topic name and topic id."),
        ([State(name=None, topic_id=ZERO_UUID)], "Neither topic name nor id were specified."),
        (
            [State(name="a"), State(name=None, topic_id=A)],
            "The provided topic name maps to an ID that was already supplied.",
        ),
    ],
)
def test_what_is_named_twice_or_not_at_all_is_invalid_and_nothing_is_deleted(topics: list[State], message: str) -> None:
    memory = node()
    response = memory.call(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    assert [(r.error_code, r.error_message) for r in response.responses] == [(42, message)]
    assert memory.written == []


def test_an_id_given_twice_is_not_deleted_by_its_name_either() -> None:
    memory = node()
    topics = [State(name=None, topic_id=A), State(name="a"), State(name=None, topic_id=A)]
    response = memory.call(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6)
    assert [(r.name, r.topic_id, r.error_code, r.error_message) for r in response.responses] == [
        (None, A, 42, "Duplicate topic id."),
        ("a", A, 42, "The provided topic name maps to an ID that was already supplied."),
    ]
    assert memory.written == []


@pytest.mark.parametrize(("version", "code"), [(0, 42), (2, 42), (3, 73), (5, 73), (6, 73)])
def test_deletion_can_be_switched_off(version: int, code: int) -> None:
    memory = node({"delete.topic.enable": "false"})
    asked = DeleteTopicsRequest(timeout_ms=1000)
    if version < 6:
        asked.topic_names = ["a", "nope"]
    else:
        asked.topics = [State(name="a"), State(name=None, topic_id=B)]
    rows = memory.call(asked, version).responses
    assert [(r.name, r.topic_id) for r in rows] == (
        [("a", ZERO_UUID), ("nope", ZERO_UUID)] if version < 6 else [("a", ZERO_UUID), (None, B)]
    )
    assert {(r.error_code, r.error_message) for r in rows} == {(code, None)}
    assert memory.written == []


def rows_of_alice(*allowed: tuple[AclOperation, ResourceType, str]) -> list[tuple[str | None, Uuid, int]]:
    """What she gets who asks for a by id and name, for b by name, and for what is not there."""
    records = [*topic("a", A, [1]), *topic("b", B, [1]), *(allow("User:alice", *each) for each in allowed)]
    memory = node_before(98, records)
    topics = [
        State(name=None, topic_id=A),
        State(name="b"),
        State(name="nope"),
        State(name=None, topic_id=Uuid(b"c" * 16)),
    ]
    response = memory.call(DeleteTopicsRequest(topics=topics, timeout_ms=1000), 6, principal=ALICE)
    deleted = {row.topic_id for row in response.responses if row.error_code == 0}
    assert {record.topic_id for record in memory.written} == deleted  # type: ignore[attr-defined]
    return [(row.name, row.topic_id, row.error_code) for row in response.responses]


def test_nothing_is_told_about_topics_that_the_caller_may_not_describe() -> None:
    assert rows_of_alice() == [
        (None, A, 29),
        (None, Uuid(b"c" * 16), 100),
        ("b", ZERO_UUID, 29),
        ("nope", ZERO_UUID, 29),
    ]


def test_who_may_describe_is_told_names_and_who_may_delete_deletes() -> None:
    topic_kind = ResourceType.TOPIC
    assert rows_of_alice((AclOperation.DESCRIBE, topic_kind, "*"), (AclOperation.DELETE, topic_kind, "b")) == [
        ("a", A, 29),
        (None, Uuid(b"c" * 16), 100),
        ("b", B, 0),
        ("nope", ZERO_UUID, 3),
    ]


def test_delete_on_the_cluster_covers_every_topic() -> None:
    assert rows_of_alice((AclOperation.DELETE, ResourceType.CLUSTER, CLUSTER_NAME)) == [
        ("a", A, 0),
        (None, Uuid(b"c" * 16), 100),
        ("b", B, 0),
        ("nope", ZERO_UUID, 3),
    ]
