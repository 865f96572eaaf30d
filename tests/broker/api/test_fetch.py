"""Fetch (1) on a broker's listener."""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.storage import StorageError
from barnabas.wire import ErrorCode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from tests.broker.reading_node import ReadingNode, fetch, partition_record, rows, topic_id, values
from tests.broker.topic_captures import ALICE, AUTHORIZER, allow

ALL_VERSIONS = range(4, 19)
LONG_MS = 30_000


@pytest.fixture
def node(tmp_path: Path) -> ReadingNode:
    node = ReadingNode(tmp_path, t=[[1], [1], [1]])
    for partition in node.replicas:
        assert partition.log is not None  # open, so that a record can be appended at any time
    return node


def run(test: Callable[[], Awaitable[Any]]) -> Any:
    """With an end, for waits that would have none."""

    async def main() -> Any:
        return await asyncio.wait_for(test(), 10)

    return asyncio.run(main())


def read(node: ReadingNode, request: FetchRequest, version: int = 12) -> Any:
    return run(lambda: node.ask(request, version))


@pytest.mark.parametrize("version", ALL_VERSIONS)
def test_records_come_as_they_were_appended(node: ReadingNode, version: int) -> None:
    node.append(b"a", b"b")
    node.append(b"c")
    response = read(node, fetch(("t", 0, 1)), version)
    (row,) = rows(response)
    assert (row.partition_index, row.error_code, row.high_watermark, row.last_stable_offset) == (0, 0, 3, 3)
    assert row.log_start_offset == (0 if version >= 5 else -1)
    assert values(row) == [b"a", b"b", b"c"]
    topic = response.responses[0]
    assert (topic.topic or topic.topic_id) == ("t" if version < 13 else topic_id("t"))


def test_rows_stand_in_the_order_of_the_request_and_neighbours_of_one_topic_together(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, a=[[1], [1]], b=[[1]])
    request = fetch(("a", 1, 0))
    request.topics += [*fetch(("b", 0, 0)).topics, *fetch(("a", 0, 0)).topics, *fetch(("a", 1, 0)).topics]
    response = read(node, request)
    assert [(t.topic, [p.partition_index for p in t.partitions]) for t in response.responses] == [
        ("a", [1]),
        ("b", [0]),
        ("a", [0]),
    ]


def test_a_fetch_without_partitions_is_answered_at_once(node: ReadingNode) -> None:
    assert not inspect.isawaitable(node.begin(fetch(max_wait_ms=LONG_MS), 12))


# --- how much


def test_a_batch_that_is_larger_than_all_limits_is_given_if_it_is_the_first(node: ReadingNode) -> None:
    node.append(b"x" * 1000)
    node.append(b"y" * 1000, index=1)
    first, second = rows(read(node, fetch(("t", 0, 0), ("t", 1, 0), max_bytes=10, partition_max_bytes=10)))
    assert values(first) == [b"x" * 1000]
    assert (values(second), second.high_watermark) == ([], 1)


def test_an_empty_partition_does_not_count_as_the_first(node: ReadingNode) -> None:
    node.append(b"y" * 1000, index=1)
    empty, first = rows(read(node, fetch(("t", 0, 0), ("t", 1, 0), max_bytes=10)))
    assert (values(empty), values(first)) == ([], [b"y" * 1000])


def test_batches_are_given_whole_up_to_the_limit_of_the_partition(node: ReadingNode) -> None:
    size = node.append(b"a")
    for value in (b"b", b"c"):
        assert node.append(value) == size
    (row,) = rows(read(node, fetch(("t", 0, 0), partition_max_bytes=2 * size + 1)))
    assert values(row) == [b"a", b"b"]


def test_the_limit_of_the_answer_is_shared_in_order(node: ReadingNode) -> None:
    size = node.append(b"a")
    node.append(b"b")
    node.append(b"c", index=1)
    node.append(b"d", index=1)
    first, second = rows(read(node, fetch(("t", 0, 0), ("t", 1, 0), max_bytes=3 * size)))
    assert (values(first), values(second)) == ([b"a", b"b"], [b"c"])


def test_the_broker_s_own_limit_holds_too(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, properties={"fetch.max.bytes": "1024"}, t=[[1]])
    for _ in range(5):
        node.append(b"x" * 400)
    (row,) = rows(read(node, fetch(("t", 0, 0))))
    assert len(values(row)) == 2


# --- how long


def test_a_fetch_at_the_end_waits_for_the_next_record(node: ReadingNode) -> None:
    async def test() -> None:
        waiting = asyncio.ensure_future(node.ask(fetch(("t", 1, 0), ("t", 0, 0), max_wait_ms=LONG_MS), 12))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        node.append(b"a")
        idle, row = rows(await waiting)
        assert (values(idle), values(row)) == ([], [b"a"])

    run(test)


def test_a_record_that_comes_before_the_wait_has_begun_is_not_missed(node: ReadingNode) -> None:
    async def test() -> None:
        answer = node.begin(fetch(("t", 0, 0), max_wait_ms=LONG_MS), 12)
        node.append(b"a")
        assert values(rows(await node.finish(answer, 12))[0]) == [b"a"]

    run(test)


def test_a_fetch_that_waited_in_vain_is_answered_without_records(node: ReadingNode) -> None:
    (row,) = rows(read(node, fetch(("t", 0, 0), max_wait_ms=30)))
    assert (row.error_code, row.high_watermark, row.records) == (0, 0, b"")


def test_less_than_the_least_is_waited_for(node: ReadingNode) -> None:
    async def test() -> None:
        size = node.append(b"a")
        waiting = asyncio.ensure_future(node.ask(fetch(("t", 0, 0), max_wait_ms=LONG_MS, min_bytes=2 * size), 12))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        node.append(b"b")
        assert values(rows(await waiting)[0]) == [b"a", b"b"]

    run(test)


def test_what_does_not_fit_is_enough(node: ReadingNode) -> None:
    size = node.append(b"a")
    node.append(b"b")
    request = fetch(("t", 0, 0), max_wait_ms=LONG_MS, min_bytes=2 * size - 1, partition_max_bytes=2 * size - 1)
    assert values(rows(read(node, request))[0]) == [b"a"]


def test_the_rest_of_an_older_segment_is_enough(node: ReadingNode) -> None:
    node.append(b"a")
    node.partition().log.roll()
    node.append(b"b")
    request = fetch(("t", 0, 0), max_wait_ms=LONG_MS, min_bytes=1000)
    assert values(rows(read(node, request))[0]) == [b"a"]


def test_an_error_is_answered_at_once(node: ReadingNode) -> None:
    bad, idle = rows(read(node, fetch(("t", 0, 7), ("t", 1, 0), max_wait_ms=LONG_MS)))
    assert (bad.error_code, idle.error_code) == (ErrorCode.OFFSET_OUT_OF_RANGE, 0)
    assert (bad.high_watermark, bad.last_stable_offset, bad.log_start_offset) == (-1, -1, -1)
    assert bad.aborted_transactions is None


def test_a_partition_that_does_not_exist_does_not_end_the_wait(node: ReadingNode) -> None:
    async def test() -> None:
        waiting = asyncio.ensure_future(node.ask(fetch(("t", 9, 0), ("t", 0, 0), max_wait_ms=LONG_MS), 12))
        await asyncio.sleep(0.02)
        assert not waiting.done()
        node.append(b"a")
        row, unknown = rows(await waiting)
        assert values(row) == [b"a"]
        assert (unknown.partition_index, unknown.error_code) == (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        assert unknown.aborted_transactions == []

    run(test)


def test_the_end_of_leadership_ends_the_wait(node: ReadingNode) -> None:
    async def test() -> None:
        request = fetch(("t", 0, 0), max_wait_ms=LONG_MS, current_leader_epoch=0)
        waiting = asyncio.ensure_future(node.ask(request, 12))
        await asyncio.sleep(0.02)
        partition = node.partition()
        partition.decided(partition.state._replace(leader=2, leader_epoch=1))
        assert rows(await waiting)[0].error_code == ErrorCode.FENCED_LEADER_EPOCH

    run(test)


def test_the_deletion_of_the_topic_ends_the_wait(node: ReadingNode) -> None:
    async def test() -> None:
        waiting = asyncio.ensure_future(node.ask(fetch(("t", 0, 0), max_wait_ms=LONG_MS), 12))
        await asyncio.sleep(0.02)
        await node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        assert rows(await waiting)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    run(test)


# --- who may see what


def begin_transaction(node: ReadingNode, producer_id: int, value: bytes) -> None:
    guard = node.partition().start_verification(Producer(producer_id, 0), 0, supports_epoch_bump=False)
    node.append(value, guard=guard, producer_id=producer_id, producer_epoch=0, base_sequence=0, is_transactional=True)


def end_transaction(node: ReadingNode, producer_id: int, *, commit: bool) -> None:
    node.partition().append_marker(Producer(producer_id, 0), Marker(commit, 0), 0, 0)


def test_readers_of_committed_transactions_see_nothing_behind_an_open_one(node: ReadingNode) -> None:
    node.append(b"a")
    begin_transaction(node, 7, b"b")
    node.append(b"c")
    (row,) = rows(read(node, fetch(("t", 0, 0), isolation_level=1)))
    assert (row.high_watermark, row.last_stable_offset, values(row)) == (3, 1, [b"a"])
    assert row.aborted_transactions == []
    (row,) = rows(read(node, fetch(("t", 0, 0))))
    assert (values(row), row.aborted_transactions) == ([b"a", b"b", b"c"], None)


def test_aborted_transactions_are_named_to_those_who_skip_them(node: ReadingNode) -> None:
    begin_transaction(node, 7, b"a")
    end_transaction(node, 7, commit=False)
    begin_transaction(node, 8, b"b")
    end_transaction(node, 8, commit=True)
    (row,) = rows(read(node, fetch(("t", 0, 0), isolation_level=1)))
    assert row.last_stable_offset == row.high_watermark == 4
    assert [(each.producer_id, each.first_offset) for each in row.aborted_transactions or ()] == [(7, 0)]
    (row,) = rows(read(node, fetch(("t", 0, 2), isolation_level=1)))
    assert row.aborted_transactions == []


def test_the_end_of_a_transaction_ends_the_wait_of_who_reads_committed_ones(node: ReadingNode) -> None:
    async def test() -> None:
        begin_transaction(node, 7, b"a")
        waiting = asyncio.ensure_future(node.ask(fetch(("t", 0, 0), max_wait_ms=LONG_MS, isolation_level=1), 12))
        await asyncio.sleep(0.02)
        node.append(b"other")
        await asyncio.sleep(0.02)
        assert not waiting.done()
        end_transaction(node, 7, commit=True)
        assert values(rows(await waiting)[0]) == [b"a", b"other"]

    run(test)


def test_who_may_not_read_a_topic_gets_no_row_of_it_but_an_error(tmp_path: Path) -> None:
    entries = [allow("User:alice", AclOperation.READ, ResourceType.TOPIC, "a")]
    node = ReadingNode(tmp_path, a=[[1]], b=[[1]], records=[*entries])
    node.authorizer = AUTHORIZER
    node.append(b"x", name="a")
    request = fetch(("b", 0, 0), ("nope", 0, 0), ("a", 0, 0))
    response = run(lambda: node.ask(request, 12, ALICE))
    assert [(t.topic, t.partitions[0].error_code) for t in response.responses] == [("a", 0), ("b", 29), ("nope", 29)]
    response = run(lambda: node.ask(request, 13, ALICE))
    codes = [(t.topic_id, t.partitions[0].error_code) for t in response.responses]
    assert codes == [(topic_id("a"), 0), (topic_id("nope"), 100), (topic_id("b"), 29)]


# --- epochs and leaders


@pytest.mark.parametrize("version", ALL_VERSIONS[5:])
def test_a_reader_of_another_epoch_is_told(tmp_path: Path, version: int) -> None:
    node = ReadingNode(tmp_path, records=[partition_record("t", 0, [1], epoch=3)], t=[])
    codes = [
        rows(read(node, fetch(("t", 0, 0), current_leader_epoch=epoch), version))[0].error_code for epoch in (2, 3, 4)
    ]
    assert codes == [ErrorCode.FENCED_LEADER_EPOCH, 0, ErrorCode.UNKNOWN_LEADER_EPOCH]


def test_a_follower_answers_consumers_from_version_11(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[2, 1]])
    assert rows(read(node, fetch(("t", 0, 0)), 10))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    assert rows(read(node, fetch(("t", 0, 0)), 11))[0].error_code == 0


@pytest.mark.parametrize("version", [15, 16, 18])
def test_who_asks_the_wrong_broker_is_told_who_leads(tmp_path: Path, version: int) -> None:
    node = ReadingNode(tmp_path, t=[[2], [2]])
    response = read(node, fetch(("t", 0, 0), ("t", 1, 0)), version)
    leaders = [
        (row.error_code, row.current_leader.leader_id, row.current_leader.leader_epoch) for row in rows(response)
    ]
    endpoints = [(each.node_id, each.host, each.port) for each in response.node_endpoints]
    told = version >= 16
    assert leaders == [(6, 2, 0) if told else (6, -1, -1)] * 2
    assert endpoints == ([(2, "127.0.0.1", 19092)] if told else [])


def test_a_log_that_went_another_way_is_told_where(node: ReadingNode) -> None:
    partition = node.partition()
    node.append(b"a")
    node.append(b"b")
    partition.decided(partition.state._replace(leader_epoch=4))
    node.append(b"c")

    def ask(offset: int, epoch: int) -> Any:
        (row,) = rows(read(node, fetch(("t", 0, offset), last_fetched_epoch=epoch, max_wait_ms=LONG_MS)))
        return row.error_code, row.diverging_epoch.epoch, row.diverging_epoch.end_offset, values(row)

    assert ask(3, 0) == (0, 0, 2, [])  # epoch 0 ended at 2
    assert ask(2, 2) == (0, 0, 2, [])  # epoch 2 never was
    assert ask(2, 0) == (0, -1, -1, [b"c"])
    assert ask(2, 4) == (0, -1, -1, [b"c"])
    assert ask(2, 9)[0] == ErrorCode.OFFSET_OUT_OF_RANGE


def test_another_topic_of_the_same_name_is_inconsistent_with_the_session(node: ReadingNode) -> None:
    async def test() -> None:
        session = (await node.ask(fetch(("t", 0, 0), session_epoch=0), 17)).session_id
        await node.ask(DeleteTopicsRequest(topic_names=["t"], timeout_ms=1000), 5)
        gone = await node.ask(fetch(session_id=session, session_epoch=1), 17)
        assert rows(gone)[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        again = CreateTopicsRequest.CreatableTopic(name="t", num_partitions=1, replication_factor=2)
        await node.ask(CreateTopicsRequest(topics=[again], timeout_ms=1000), 7)
        other = await node.ask(fetch(session_id=session, session_epoch=2), 17)
        assert rows(other)[0].error_code == ErrorCode.INCONSISTENT_TOPIC_ID

    run(test)


# --- followers


def follower(offset: int, replica_id: int = 2, **more: Any) -> FetchRequest:
    return fetch(("t", 0, offset), replica_state=FetchRequest.ReplicaState(replica_id=replica_id), **more)


def test_what_followers_have_fetched_is_committed(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1, 2]])
    node.append(b"a")
    assert values(rows(read(node, fetch(("t", 0, 0))))[0]) == []
    (row,) = rows(read(node, follower(0), 17))
    assert (values(row), row.high_watermark) == ([b"a"], 0)
    read(node, follower(1), 17)
    (row,) = rows(read(node, fetch(("t", 0, 0))))
    assert (values(row), row.high_watermark) == ([b"a"], 1)


def test_a_broker_that_has_no_replica_is_no_follower(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]])
    assert rows(read(node, follower(0), 17))[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
    told = follower(0, current_leader_epoch=0)
    assert rows(read(node, told, 17))[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def test_a_follower_needs_the_permission_of_one(tmp_path: Path) -> None:
    for entries, code in (
        ([], ErrorCode.TOPIC_AUTHORIZATION_FAILED),
        ([allow("User:alice", AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)], ErrorCode.NONE),
    ):
        node = ReadingNode(tmp_path, t=[[1, 2]], records=[*entries])
        node.authorizer = AUTHORIZER
        response = run(partial(node.ask, follower(0), 17, ALICE))
        assert rows(response)[0].error_code == code


# --- sessions


def test_a_session_tells_only_what_is_new(node: ReadingNode) -> None:
    async def test() -> None:
        node.append(b"a", index=1)
        first = await node.ask(fetch(("t", 0, 0), ("t", 1, 1), ("t", 2, 0), session_epoch=0), 17)
        assert len(rows(first)) == 3
        again = fetch(session_id=first.session_id, session_epoch=1, max_wait_ms=10)
        assert rows(await node.ask(again, 17)) == []
        waiting = fetch(session_id=first.session_id, session_epoch=2, max_wait_ms=LONG_MS)
        answer = node.begin(waiting, 17)
        node.append(b"b", index=1)
        response = await node.finish(answer, 17)
        assert response.session_id == first.session_id
        assert [(row.partition_index, values(row)) for row in rows(response)] == [(1, [b"b"])]

    run(test)


def test_partitions_of_a_session_take_turns(node: ReadingNode) -> None:
    async def test() -> None:
        for index in range(3):
            node.append(b"x", index=index)
        request = fetch(("t", 0, 0), ("t", 1, 0), ("t", 2, 0), session_epoch=0, max_bytes=1)
        response = await node.ask(request, 17)
        assert [len(values(row)) for row in rows(response)] == [1, 0, 0]
        turns = []
        for epoch in range(1, 7):
            request = fetch(session_id=response.session_id, session_epoch=epoch, max_bytes=1)
            turns.append([row.partition_index for row in rows(await node.ask(request, 17))])
        assert turns == [[0], [1], [2], [0], [1], [2]]

    run(test)


# --- disks


@pytest.mark.parametrize(("version", "code"), [(5, 6), (6, 56), (12, 56)])
def test_a_failed_log_dir_is_a_storage_error_from_version_6(node: ReadingNode, version: int, code: int) -> None:
    node.append(b"a")
    node.replicas.fail_dir(node.partition().log_dir, StorageError("a test"))
    assert rows(read(node, fetch(("t", 0, 0)), version))[0].error_code == code


def test_a_segment_that_is_gone_takes_its_log_dir_offline(node: ReadingNode) -> None:
    node.append(b"a")
    segment = node.partition().log.segments[0]
    segment.log.let_go()
    segment.log.path.unlink()
    assert rows(read(node, fetch(("t", 0, 0), ("t", 1, 0))))[0].error_code == ErrorCode.KAFKA_STORAGE_ERROR
    assert not node.log_directories.is_online(node.log_directories.paths[0])


def test_what_the_system_has_dropped_from_memory_is_read_all_the_same(node: ReadingNode) -> None:
    expected = [os.urandom(20_000) for _ in range(100)]
    for value in expected:
        node.append(value)
    log = node.partition().log
    log.flush()
    with log.segments[0].log.path.open("rb") as file:
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    found: list[bytes] = []
    while len(found) < len(expected):
        found += values(rows(read(node, fetch(("t", 0, len(found)))))[0])
    assert found == expected
