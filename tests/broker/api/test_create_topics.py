"""CreateTopics (19)."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ZERO_UUID, ErrorCode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.records.metadata import TopicRecord
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, Capture, allow, image_before, node_before, params
from tests.metadata import golden

Topic = CreateTopicsRequest.CreatableTopic

TWO_TOPICS = 98  # the offset at which the cluster had the topics `exists` and `coll.x`
TWO_FENCED = 2302


def topic(name: str = "new", partitions: int = 1) -> Topic:
    return Topic(name=name, num_partitions=partitions, replication_factor=1)


@pytest.mark.parametrize("capture", params("CreateTopics"))
def test_kafka_s_answers(capture: Capture) -> None:
    node = node_before(TWO_FENCED if capture.phase == "4-cluster" else TWO_TOPICS)
    answer = capture.ask(node)
    expected = capture.answer
    theirs, ours = capture.response, capture.decode(answer)
    for their_row, our_row in zip(theirs.topics, ours.topics, strict=True):
        if their_row.topic_id != ZERO_UUID:  # ids are random
            assert our_row.topic_id != ZERO_UUID
            expected = expected.replace(their_row.topic_id, our_row.topic_id)
    assert answer == expected


def test_kafka_s_records() -> None:
    """Of the cluster's topic ct-v7-cfg, whose replicas were given."""
    capture = next(c.values[0] for c in params("CreateTopics") if str(c.values[0]) == "v7 with configs")
    node = node_before(TWO_TOPICS)
    capture.ask(node)
    theirs = [record for batch in golden.log() if batch.base_offset == 274 for record in batch.records][:6]
    assert isinstance(theirs[0], TopicRecord)
    topic_id, ours = theirs[0].topic_id, list(node.written)
    for record in (ours[0], ours[-1]):
        record.topic_id = topic_id  # type: ignore[attr-defined]
    assert [*map(type, ours)] == [*map(type, theirs)]
    assert sorted(map(repr, ours)) == sorted(map(repr, theirs))  # settings stand in the order of a hash there


@pytest.mark.parametrize("version", range(8))
def test_every_version_creates_a_topic(version: int) -> None:
    node = MemoryNode()
    (row,) = node.call(CreateTopicsRequest(topics=[topic()]), version).topics
    made = node.image.topics.get("new")
    assert made is not None
    assert (row.name, row.error_code) == ("new", 0)
    assert row.topic_id == (made.topic_id if version >= 7 else ZERO_UUID)
    assert row.num_partitions == (1 if version >= 5 else -1)
    assert len(row.configs) == (33 if version >= 5 else 0)


def test_duplicates_the_metadata_log_and_the_refused_come_after_the_others() -> None:
    node = node_before(TWO_TOPICS, [allow("User:alice", AclOperation.CREATE, ResourceType.TOPIC, "mine")])
    names = ["dup", "theirs", "mine", "__cluster_metadata", "dup", "mine-not"]
    response = node.call(CreateTopicsRequest(topics=[topic(n) for n in names]), 7, principal=ALICE)
    rows = [(row.name, row.error_code, row.error_message) for row in response.topics]
    assert rows[:2] == [("mine", 0, None), ("dup", 42, "Duplicate topic name.")]
    assert {*rows[2:]} == {
        ("theirs", 29, "Authorization failed."),
        ("mine-not", 29, "Authorization failed."),
        ("__cluster_metadata", 42, "Creation of internal topic __cluster_metadata is prohibited."),
    }
    assert [r.name for r in node.written if isinstance(r, TopicRecord)] == ["mine"]


@pytest.mark.parametrize(
    ("operation", "resource_type", "name"),
    [
        (AclOperation.CREATE, ResourceType.CLUSTER, CLUSTER_NAME),
        (AclOperation.CREATE, ResourceType.TOPIC, "new"),
        (AclOperation.ALL, ResourceType.TOPIC, "*"),
    ],
)
def test_create_on_the_cluster_or_on_the_topic_is_enough(
    operation: AclOperation, resource_type: ResourceType, name: str
) -> None:
    node = node_before(TWO_TOPICS, [allow("User:alice", operation, resource_type, name)])
    (row,) = node.call(CreateTopicsRequest(topics=[topic()]), 7, principal=ALICE).topics
    assert row.error_code == 0
    may_describe = operation is AclOperation.ALL
    assert row.topic_config_error_code == (0 if may_describe else 29)
    assert (row.num_partitions, row.replication_factor, len(row.configs)) == (
        (1, 1, 33) if may_describe else (-1, -1, 0)
    )


def test_an_existing_topic_is_not_told_to_who_may_not_create_it() -> None:
    node = node_before(TWO_TOPICS)
    rows = node.call(CreateTopicsRequest(topics=[topic("exists"), topic("no-such")]), 7, principal=ALICE).topics
    assert {(row.error_code, row.error_message) for row in rows} == {(29, "Authorization failed.")}


@pytest.mark.parametrize("version", [0, 4, 7])
def test_too_many_partitions_fail_every_topic(version: int) -> None:
    node = MemoryNode()
    topics = [topic("a", 9_999), topic("b", 2), topic("dup"), topic("dup")]
    rows = node.call(CreateTopicsRequest(topics=topics), version).topics
    assert [(row.name, row.error_code) for row in rows] == [("a", 44), ("b", 44), ("dup", 44), ("dup", 44)]
    assert [(row.num_partitions, row.replication_factor) for row in rows] == [(-1, -1)] * 4
    if version:
        assert {row.error_message for row in rows} == {"Excessively large number of partitions per request."}
    assert node.written == []


def test_a_commit_that_takes_too_long_is_timed_out_and_happens_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    node = MemoryNode()
    late: list[Any] = []
    monkeypatch.setattr("barnabas.broker.active_controller.MIN_COMMIT_TIMEOUT_MS", 10)
    monkeypatch.setattr(node.controller.loop, "committed", late.append)
    (row,) = node.call(CreateTopicsRequest(topics=[topic()], timeout_ms=10), 7).topics
    assert (row.error_code, row.error_message) == (ErrorCode.REQUEST_TIMED_OUT, None)
    monkeypatch.undo()

    async def commit() -> None:
        node.controller.loop.committed(late[0])

    asyncio.run(commit())
    assert node.image.topics.names == ("new",)


def test_nothing_asked_is_answered_without_the_controller() -> None:
    node = MemoryNode()
    node.controller.loop.lost()
    assert node.call(CreateTopicsRequest(), 7).topics == []
    (row,) = node.call(CreateTopicsRequest(topics=[topic()]), 7).topics
    assert row.error_code == ErrorCode.NOT_CONTROLLER


def test_the_state_of_the_captures_is_the_cluster_s() -> None:
    image = image_before(TWO_TOPICS)
    assert {"exists", "coll.x"} <= set(image.topics.names)
    assert [(n, b.fenced, b.rack) for n, b in sorted(image.brokers.items())] == [
        (1, False, "a"),
        (2, False, "b"),
        (3, False, "c"),
        (4, False, "a"),
    ]
    assert AUTHORIZER.enabled
