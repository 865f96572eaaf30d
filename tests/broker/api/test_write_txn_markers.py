"""WriteTxnMarkers (27): markers in logs, and in groups."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from barnabas.batches import ControlType, decode_end_txn_marker, decode_records, iterate_batches
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode, Message
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.harness import MemoryNode
from tests.broker.topic_captures import ALICE, AUTHORIZER, allow
from tests.transactions.world import topic_records

CODES = {
    "epoch": ErrorCode.INVALID_PRODUCER_EPOCH,
    "coordinator": ErrorCode.TRANSACTION_COORDINATOR_FENCED,
}


def node(tmp_path: Path, *records: Message, **more: Any) -> MemoryNode:
    (tmp_path / "log").mkdir()
    topics = [*topic_records("t", [1, 1]), *topic_records("__consumer_offsets", [1]), *topic_records("far", [2])]
    return MemoryNode(
        {"log.dirs": str(tmp_path / "log")}, brokers=2, records=[*topics, *records], authorizer=AUTHORIZER, **more
    )


def marker(*topics: tuple[str, list[int]], producer_id: int = 7, epoch: int = 3, **more: Any) -> Any:
    return WriteTxnMarkersRequest.WritableTxnMarker(
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name=n, partition_indexes=p) for n, p in topics],
        **more,
    )


def write(made: MemoryNode, *markers: Any, version: int = 2, **peer: Any) -> dict[int, list[tuple[str, int, int]]]:
    response = made.call(WriteTxnMarkersRequest(markers=list(markers)), version, **peer)
    return {
        row.producer_id: [(t.name, p.partition_index, p.error_code) for t in row.topics for p in t.partitions]
        for row in response.markers
    }


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_a_marker_is_in_the_log_when_it_is_answered(tmp_path: Path, version: int, is_commit: bool) -> None:
    made = node(tmp_path)
    given = marker(("t", [0]), transaction_result=is_commit, coordinator_epoch=4)
    assert write(made, given, version=version) == {7: [("t", 0, 0)]}
    data = made.replicas.partition("t", 0).read(0, 1000)
    ((position, header),) = iterate_batches(data)
    assert (header.producer_id, header.producer_epoch, header.is_control, header.is_transactional) == (7, 3, True, True)
    (record,) = decode_records(data, position, header)
    assert decode_end_txn_marker(record) == (ControlType.COMMIT if is_commit else ControlType.ABORT, 4)


def test_each_partition_has_its_own_error(tmp_path: Path) -> None:
    made = node(tmp_path)
    found = write(made, marker(("t", [0, 9, 1]), ("no", [0]), ("far", [0])))
    assert sorted(found[7]) == [
        ("far", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER),
        ("no", 0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
        ("t", 0, 0),
        ("t", 1, 0),
        ("t", 9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


def test_markers_of_one_producer_are_answered_together(tmp_path: Path) -> None:
    made = node(tmp_path)
    found = write(made, marker(("t", [0])), marker(("t", [0]), producer_id=8), marker(("t", [1])))
    assert found == {7: [("t", 0, 0), ("t", 1, 0)], 8: [("t", 0, 0)]}
    assert write(made) == {}


def test_who_comes_late_is_refused(tmp_path: Path) -> None:
    made = node(tmp_path)
    write(made, marker(("t", [0]), coordinator_epoch=4, transaction_version=2))
    for given, code in (
        (marker(("t", [0]), epoch=2, coordinator_epoch=4), CODES["epoch"]),
        (marker(("t", [0]), epoch=2, coordinator_epoch=4, transaction_version=2), CODES["epoch"]),
        (marker(("t", [0]), epoch=4, coordinator_epoch=3, transaction_version=2), CODES["coordinator"]),
        (marker(("t", [0]), coordinator_epoch=4, transaction_version=2), ErrorCode.NONE),  # again
    ):
        assert write(made, given) == {7: [("t", 0, code)]}


def test_a_marker_among_offsets_goes_through_their_groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    made = node(tmp_path)
    assert write(made, marker(("__consumer_offsets", [0]), transaction_result=True)) == {
        7: [("__consumer_offsets", 0, 0)]
    }
    (batch,) = made.memory_groups.logs[0].batches
    ((_, header),) = iterate_batches(batch)
    assert (header.is_control, header.producer_id, header.producer_epoch) == (True, 7, 3)
    made.groups.resigned(0)
    monkeypatch.setattr(made.memory_groups, "load", _nothing)
    refused = write(made, marker(("__consumer_offsets", [0])))
    assert refused == {7: [("__consumer_offsets", 0, ErrorCode.NOT_LEADER_OR_FOLLOWER)]}


async def _nothing() -> None:
    pass


@pytest.mark.parametrize("operation", [None, AclOperation.ALTER, AclOperation.CLUSTER_ACTION])
def test_who_may(tmp_path: Path, operation: AclOperation | None) -> None:
    entry = (ResourceType.CLUSTER, "kafka-cluster")
    made = node(tmp_path, *([] if operation is None else [allow("User:alice", operation, *entry)]))
    code = ErrorCode.CLUSTER_AUTHORIZATION_FAILED if operation is None else ErrorCode.NONE
    assert write(made, marker(("t", [0])), principal=ALICE) == {7: [("t", 0, code)]}
