"""CreatePartitions (37)."""

from __future__ import annotations

import pytest

from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.create_partitions import CreatePartitionsRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, Capture, allow, node_before, params, topic

More = CreatePartitionsRequest.CreatePartitionsTopic

A, B = Uuid(b"a" * 16), Uuid(b"b" * 16)


@pytest.mark.parametrize("capture", params("CreatePartitions"))
def test_kafka_s_answers(capture: Capture) -> None:
    count = {"manual assignment": 2, "automatic": 4}.get(capture.case, 5)
    node = node_before(98, topic(f"cp-v{capture.version}", A, *[[1, 2]] * count))
    assert capture.ask(node) == capture.answer
    made = node.image.topics.by_id[A]
    assert len(made.partitions) == count + len(node.written)
    assert bool(node.written) == (capture.case in ("manual assignment", "automatic", "one good one bad"))


@pytest.mark.parametrize("version", range(4))
def test_every_version_adds_partitions(version: int) -> None:
    node = MemoryNode(records=topic("a", A, [1]))
    asked = CreatePartitionsRequest(topics=[More(name="a", count=3, assignments=None)], timeout_ms=1000)
    (row,) = node.call(asked, version).results
    assert (row.name, row.error_code, row.error_message) == ("a", 0, None)
    assert len(node.image.topics.by_id[A].partitions) == 3


def test_duplicates_come_first_then_the_refused_then_the_others() -> None:
    records = [*topic("a", A, [1]), *topic("b", B, [1])]
    node = node_before(98, [*records, allow("User:alice", AclOperation.ALTER, ResourceType.TOPIC, "a")])
    names = ["a", "dup", "b", "nope", "dup"]
    asked = [More(name=name, count=2, assignments=None) for name in names]
    rows = node.call(CreatePartitionsRequest(topics=asked, timeout_ms=1000), 3, principal=ALICE).results
    found = [(row.name, row.error_code, row.error_message) for row in rows]
    assert found[0] == ("dup", 42, "Duplicate topic name.")
    assert {*found[1:3]} == {("b", 29, None), ("nope", 29, None)}
    assert found[3:] == [("a", 0, None)]
    assert len(node.written) == 1


def test_a_failure_of_the_whole_request_is_on_every_topic() -> None:
    node = MemoryNode(records=topic("a", A, [1]))
    node.controller.loop.lost()
    asked = [More(name=name, count=2, assignments=None) for name in ("a", "dup", "dup")]
    rows = node.call(CreatePartitionsRequest(topics=asked, timeout_ms=1000), 3).results
    assert [(row.name, row.error_code) for row in rows] == [
        (name, ErrorCode.NOT_CONTROLLER) for name in ("a", "dup", "dup")
    ]
