"""What else is asked of logs: ListOffsets (2), DeleteRecords (21), OffsetForLeaderEpoch (23), DescribeLogDirs (35) and
DescribeProducers (61).
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.replicated.decision import Producer
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.storage import StorageError
from barnabas.wire import ErrorCode
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.records.metadata import ConfigRecord
from tests.broker.reading_node import NOW_MS, ReadingNode, partition_record
from tests.broker.topic_captures import ALICE, AUTHORIZER, allow


@pytest.fixture
def node(tmp_path: Path) -> ReadingNode:
    return ReadingNode(tmp_path, t=[[1], [1]])


# --- ListOffsets


def list_offsets(*asked: tuple[str, int, int], epoch: int = -1, **request: Any) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=request.pop("replica_id", -1),
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=name,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, timestamp=timestamp, current_leader_epoch=epoch
                    )
                ],
            )
            for name, index, timestamp in asked
        ],
        **request,
    )


def found(node: ReadingNode, timestamp: int, version: int = 11, **request: Any) -> tuple[int, int, int, int]:
    row = node.call(list_offsets(("t", 0, timestamp), **request), version).topics[0].partitions[0]
    return row.error_code, row.timestamp, row.offset, row.leader_epoch


@pytest.mark.parametrize("version", range(1, 12))
def test_a_place_is_known_from_the_version_that_brought_it(node: ReadingNode, version: int) -> None:
    node.append(b"a", timestamp=NOW_MS + 5)
    node.append(b"b")
    epoch = 0 if version >= 4 else -1
    places = {
        -1: (1, (-1, 2, epoch)),
        -2: (1, (-1, 0, epoch)),
        -3: (7, (NOW_MS + 5, 0, epoch)),
        -4: (8, (-1, 0, epoch)),
        -5: (9, (-1, -1, -1)),
        -6: (11, (-1, -1, -1)),
        -7: (99, (-1, -1, -1)),
    }
    for timestamp, (since, answer) in places.items():
        expected = (0, *answer) if version >= since else (ErrorCode.UNSUPPORTED_VERSION, -1, -1, -1)
        assert found(node, timestamp, version) == expected


def test_a_time_finds_the_first_record_that_is_not_earlier(node: ReadingNode) -> None:
    for number in range(4):
        node.append(b"x", timestamp=NOW_MS + 10 * number)
    node.partition().log.roll()
    node.append(b"x", timestamp=NOW_MS + 100)
    assert found(node, 0) == (0, NOW_MS, 0, 0)
    assert found(node, NOW_MS + 11) == (0, NOW_MS + 20, 2, 0)
    assert found(node, NOW_MS + 31) == (0, NOW_MS + 100, 4, 0)
    assert found(node, NOW_MS + 101) == (0, -1, -1, -1)


def test_an_empty_log_has_a_start_and_an_end_and_nothing_else(node: ReadingNode) -> None:
    assert found(node, -1) == (0, -1, 0, 0)
    assert found(node, -2) == (0, -1, 0, 0)
    assert found(node, -3) == (0, -1, -1, -1)
    assert found(node, 5) == (0, -1, -1, -1)


def test_nobody_is_told_of_what_nobody_may_fetch(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1, 2]])
    node.append(b"a")
    node.partition().fetched(2, 1)
    node.append(b"b", timestamp=NOW_MS + 10)
    assert found(node, -1) == (0, -1, 1, 0)
    assert found(node, NOW_MS + 5) == (0, -1, -1, -1)
    assert found(node, -3) == (0, -1, -1, -1)
    for replica_id in (2, -2):
        assert found(node, -1, replica_id=replica_id) == (0, -1, 2, 0)
        assert found(node, NOW_MS + 5, replica_id=replica_id) == (0, NOW_MS + 10, 1, 0)


def test_the_end_for_readers_of_committed_transactions_is_before_an_open_one(node: ReadingNode) -> None:
    node.append(b"a")
    guard = node.partition().start_verification(Producer(7, 0), 0, supports_epoch_bump=False)
    node.append(b"b", guard=guard, producer_id=7, producer_epoch=0, base_sequence=0, is_transactional=True)
    assert found(node, -1, isolation_level=1) == (0, -1, 1, 0)
    assert found(node, -1, isolation_level=0) == (0, -1, 2, 0)
    assert found(node, -1, version=1) == (0, -1, 2, -1)


@pytest.mark.parametrize(("version", "code"), [(4, 5), (5, 78), (11, 78)])
def test_a_new_leader_that_lags_behind_does_not_say_where_the_end_is(tmp_path: Path, version: int, code: int) -> None:
    node = ReadingNode(tmp_path, t=[[1, 2]])
    node.append(b"a")
    partition = node.partition()
    partition.decided(partition.state._replace(leader_epoch=1))
    assert found(node, -1, version) == (code, -1, -1, -1)
    assert found(node, NOW_MS, version) == (code, -1, -1, -1)
    assert found(node, -2, version)[:3] == (0, -1, 0)
    assert found(node, -1, version, replica_id=2)[:3] == (0, -1, 1)


def test_only_the_leader_answers_and_only_in_its_epoch(tmp_path: Path) -> None:
    records = [partition_record("t", 0, [1], epoch=3), partition_record("t", 1, [2, 1]), partition_record("t", 2, [2])]
    node = ReadingNode(tmp_path, records=[*records], t=[])
    assert [found(node, -1, epoch=epoch)[0] for epoch in (-2, -1, 2, 3, 4)] == [74, 0, 74, 0, 75]

    def code(index: int, **request: Any) -> int:
        return int(node.call(list_offsets(("t", index, -1), **request), 11).topics[0].partitions[0].error_code)

    assert [code(index) for index in (1, 2, 3)] == [6, 6, 3]
    assert code(1, replica_id=-2) == 0  # who debugs may ask a follower


def test_a_partition_that_is_named_twice_is_one_invalid_row(node: ReadingNode) -> None:
    response = node.call(list_offsets(("t", 0, -1), ("t", 1, -1), ("t", 0, -2)), 11)
    rows = [(t.name, [(p.partition_index, p.error_code) for p in t.partitions]) for t in response.topics]
    assert rows == [("t", [(0, ErrorCode.INVALID_REQUEST), (1, 0)])]


def test_topics_that_may_not_be_described_come_last(tmp_path: Path) -> None:
    entry = allow("User:alice", AclOperation.DESCRIBE, ResourceType.TOPIC, "b")
    node = ReadingNode(tmp_path, a=[[1]], b=[[1]], records=[entry])
    node.authorizer = AUTHORIZER
    response = node.call(list_offsets(("a", 0, -1), ("b", 0, -1)), 11, principal=ALICE)
    assert [(t.name, t.partitions[0].error_code) for t in response.topics] == [("b", 0), ("a", 29)]


def test_a_log_that_cannot_be_searched_takes_its_log_dir_offline(node: ReadingNode) -> None:
    node.append(b"a")
    segment = node.partition().log.segments[0]
    segment.log.let_go()
    segment.log.path.unlink()
    assert found(node, NOW_MS)[0] == ErrorCode.KAFKA_STORAGE_ERROR
    assert found(node, -1)[0] == ErrorCode.KAFKA_STORAGE_ERROR


# --- OffsetForLeaderEpoch


def end_of(node: ReadingNode, leader_epoch: int, current: int = -1, *, index: int = 0, **peer: Any) -> Any:
    asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition(
        partition=index, leader_epoch=leader_epoch, current_leader_epoch=current
    )
    topic = OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="t", partitions=[asked])
    row = node.call(OffsetForLeaderEpochRequest(topics=[topic]), 4, **peer).topics[0].partitions[0]
    return row.error_code, row.leader_epoch, row.end_offset


def test_an_epoch_ends_where_the_next_one_begins(node: ReadingNode) -> None:
    node.append(b"a")
    partition = node.partition()
    partition.decided(partition.state._replace(leader_epoch=3))
    node.append(b"b")
    assert end_of(node, 0) == (0, 0, 1)
    assert end_of(node, 2) == (0, 0, 1)
    assert end_of(node, 3) == (0, 3, 2)
    assert end_of(node, 4) == (0, -1, -1)
    assert end_of(node, -1) == (0, -1, -1)
    assert [end_of(node, 3, current)[0] for current in (2, 3, 4)] == [74, 0, 75]


def test_followers_and_those_who_may_describe_the_topic_may_ask_where_an_epoch_ended(tmp_path: Path) -> None:
    for number, (operation, resource_type, name, code) in enumerate(
        (
            (AclOperation.READ, ResourceType.TOPIC, "other", 29),
            (AclOperation.DESCRIBE, ResourceType.TOPIC, "t", 0),
            (AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME, 0),
        )
    ):
        directory = tmp_path / str(number)
        directory.mkdir()
        entry = allow("User:alice", operation, resource_type, name)
        node = ReadingNode(directory, t=[[1]], records=[entry])
        node.authorizer = AUTHORIZER
        assert end_of(node, 0, principal=ALICE)[0] == code


def test_where_an_epoch_ended_is_asked_of_the_leader(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[2, 1], [2], [1]])
    node.replicas.fail_dir(node.partition("t", 2).log_dir, StorageError("a test"))
    assert [end_of(node, 0, index=index)[0] for index in (1, 2, 3)] == [6, 56, 3]


# --- DeleteRecords


def delete(node: ReadingNode, *asked: tuple[str, int, int], version: int = 2, **peer: Any) -> Any:
    topics = [
        DeleteRecordsRequest.DeleteRecordsTopic(
            name=name,
            partitions=[DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index, offset=offset)],
        )
        for name, index, offset in asked
    ]
    response = node.call(DeleteRecordsRequest(topics=topics, timeout_ms=1000), version, **peer)
    return [
        (t.name, [(p.partition_index, p.low_watermark, p.error_code) for p in t.partitions]) for t in response.topics
    ]


@pytest.mark.parametrize("version", range(3))
def test_records_before_an_offset_are_gone_for_readers(node: ReadingNode, version: int) -> None:
    for _ in range(4):
        node.append(b"x")
    assert delete(node, ("t", 0, 3), version=version) == [("t", [(0, 3, 0)])]
    assert found(node, -2) == (0, -1, 3, 0)
    assert delete(node, ("t", 0, 1), version=version) == [("t", [(0, 3, 0)])]
    assert delete(node, ("t", 0, -1), version=version) == [("t", [(0, 4, 0)])]
    assert found(node, -2) == found(node, -1) == (0, -1, 4, 0)


def test_nothing_is_deleted_above_what_is_committed(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1, 2]])
    node.append(b"a")
    node.append(b"b")
    node.partition().fetched(2, 1, 1)  # it has deleted as much already, so that the deletion does not wait for it
    assert delete(node, ("t", 0, 2)) == [("t", [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)])]
    assert delete(node, ("t", 0, -1)) == [("t", [(0, 1, 0)])]


def test_what_cannot_be_deleted_says_why(tmp_path: Path) -> None:
    compact = ConfigRecord(resource_type=2, resource_name="k", name="cleanup.policy", value="compact")
    both = ConfigRecord(resource_type=2, resource_name="both", name="cleanup.policy", value="compact,delete")
    node = ReadingNode(tmp_path, records=[compact, both], t=[[2]], k=[[1]], both=[[1]], __consumer_offsets=[[1]])
    asked = [("t", 0, 0), ("t", 5, 0), ("nope", 0, 0), ("k", 0, 0), ("both", 0, 0), ("__consumer_offsets", 0, 0)]
    assert delete(node, *asked, ("both", 0, -5)) == [
        ("t", [(0, -1, 6), (5, -1, 3)]),
        ("nope", [(0, -1, 3)]),
        ("k", [(0, -1, ErrorCode.POLICY_VIOLATION)]),
        ("both", [(0, -1, ErrorCode.OFFSET_OUT_OF_RANGE)]),
        ("__consumer_offsets", [(0, -1, ErrorCode.INVALID_TOPIC_EXCEPTION)]),
    ]
    assert delete(node, ("both", 0, 0)) == [("both", [(0, 0, 0)])]


def test_deletion_needs_a_permission_of_the_topic(tmp_path: Path) -> None:
    entry = allow("User:alice", AclOperation.DELETE, ResourceType.TOPIC, "a")
    node = ReadingNode(tmp_path, a=[[1]], b=[[1]], records=[entry])
    node.authorizer = AUTHORIZER
    rows = delete(node, ("a", 0, 0), ("b", 0, 0), ("nope", 0, 0), principal=ALICE)
    assert rows == [("a", [(0, 0, 0)]), ("b", [(0, -1, 29)]), ("nope", [(0, -1, 29)])]


# --- DescribeProducers and DescribeLogDirs


def test_producers_are_told_with_the_start_of_an_open_transaction(node: ReadingNode) -> None:
    node.append(b"a", b"b", producer_id=3, producer_epoch=1, base_sequence=0)
    guard = node.partition().start_verification(Producer(7, 2), 0, supports_epoch_bump=False)
    node.append(b"c", guard=guard, producer_id=7, producer_epoch=2, base_sequence=0, is_transactional=True)
    topic = DescribeProducersRequest.TopicRequest(name="t", partition_indexes=[0, 1])
    first, second = node.call(DescribeProducersRequest(topics=[topic]), 0).topics[0].partitions
    told = [
        (
            p.producer_id,
            p.producer_epoch,
            p.last_sequence,
            p.last_timestamp,
            p.coordinator_epoch,
            p.current_txn_start_offset,
        )
        for p in first.active_producers
    ]
    assert told == [(3, 1, 1, NOW_MS, -1, -1), (7, 2, 0, NOW_MS, -1, 2)]
    assert (second.error_code, second.active_producers) == (0, [])


def test_the_size_of_a_log_is_that_of_its_batches(node: ReadingNode) -> None:
    size = node.append(b"a") + node.append(b"b")
    node.partition().log.roll()
    size += node.append(b"c")
    (row,) = node.call(DescribeLogDirsRequest(topics=None), 4).results
    (topic,) = row.topics
    partitions = [(p.partition_index, p.partition_size, p.offset_lag, p.is_future_key) for p in topic.partitions]
    assert partitions == [(0, size, 0, False), (1, 0, 0, False)]
    assert row.total_bytes >= row.usable_bytes > 0


def test_a_follower_lags_behind_what_it_knows_to_be_committed(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[2, 1]])
    assert node.partition().log.log_end_offset == 0
    node.partition().high_watermark = 5
    (row,) = node.call(DescribeLogDirsRequest(topics=None), 4).results
    assert row.topics[0].partitions[0].offset_lag == 5
