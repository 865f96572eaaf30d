"""DeleteTopics (20)."""

from __future__ import annotations

import pytest

from barnabas.wire import ZERO_UUID, Uuid
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.records.metadata import ConfigRecord, PartitionRecord, RemoveTopicRecord, TopicRecord
from tests.broker.harness import MemoryNode

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


@pytest.mark.parametrize("version", range(6))
def test_topics_are_deleted_by_name_with_their_configs(version: int) -> None:
    memory = node()
    response = memory.call(DeleteTopicsRequest(topic_names=["a", "nope"], timeout_ms=1000), version)
    assert [(r.name, r.error_code) for r in response.responses] == [("nope", 3), ("a", 0)]
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


@pytest.mark.parametrize(("version", "code"), [(1, 42), (3, 73)])
def test_deletion_can_be_switched_off(version: int, code: int) -> None:
    memory = node({"delete.topic.enable": "false"})
    response = memory.call(DeleteTopicsRequest(topic_names=["a"], timeout_ms=1000), version)
    assert [(r.name, r.error_code) for r in response.responses] == [("a", code)]
    assert memory.written == []
