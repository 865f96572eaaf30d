"""One client's requests in one turn of the event loop: however many it sends, only a few are answered before others are."""

from __future__ import annotations

import asyncio
import gc
import inspect
from collections.abc import Awaitable
from itertools import pairwise
from pathlib import Path
from typing import Any, cast

import pytest

from barnabas import slices, wire
from barnabas.batches import Record, build_batch
from barnabas.broker import connection, dispatch
from barnabas.broker.context import Context, Listener, Peer
from barnabas.broker.errors import error_response_in_slices
from barnabas.broker.txn_markers import write_markers
from barnabas.replicated.decision import Producer
from barnabas.replicated.loop import Marker
from barnabas.security.principal import ANONYMOUS
from barnabas.steps import ROWS_PER_STEP
from barnabas.storage import TopicPartition
from barnabas.transactions.markers import EndedTransaction
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.frame import MAX_PIECES, encode_response, encode_response_in_slices
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest
from barnabas.wire.messages.delete_records import DeleteRecordsRequest
from barnabas.wire.messages.delete_topics import DeleteTopicsRequest
from barnabas.wire.messages.describe_producers import DescribeProducersRequest
from barnabas.wire.messages.describe_topic_partitions import DescribeTopicPartitionsRequest
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.leave_group import LeaveGroupRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.offset_commit import OffsetCommitRequest
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest
from barnabas.wire.messages.write_txn_markers import WriteTxnMarkersRequest
from tests.broker.clients import RawClient, running_server
from tests.broker.reading_node import ReadingNode
from tests.broker.test_server import framed, request
from tests.counting import Walked, counted, most_between_pauses


def test_a_connection_answers_a_few_pipelined_requests_per_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    turns: list[int] = [0]
    real = dispatch.dispatch

    def counted(*arguments: Any) -> Any:
        turns[-1] += 1
        return real(*arguments)

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            client = await RawClient.connect(broker)
            await client.call(request())
            monkeypatch.setattr(connection, "dispatch", counted)
            client.send(framed(request()) * 1000)
            while sum(turns) < 1000:
                turns.append(0)
                await asyncio.sleep(0)
            assert max(turns) <= connection.MAX_FRAMES_PER_TURN
            assert sum(turns) == 1000
            for _ in range(1000):
                await client.frame()
            await client.close()

    asyncio.run(scenario())


def test_another_client_is_answered_while_one_pipelines(monkeypatch: pytest.MonkeyPatch) -> None:
    served: list[str] = []
    real = dispatch.dispatch

    def noted(frame: Any, services: Any, peer: Any) -> Any:
        served.append(peer.information.port)
        return real(frame, services, peer)

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            greedy, other = [await RawClient.connect(broker) for _ in range(2)]
            await greedy.call(request())
            await other.call(request())
            monkeypatch.setattr(connection, "dispatch", noted)
            greedy.send(framed(request()) * 5000)
            await asyncio.sleep(0)
            await other.call(request())
            ports = set(served)
            assert len(ports) == 2
            assert len(served) < 1000, "the other client waited for the greedy one"
            await greedy.close()
            await other.close()

    asyncio.run(scenario())


def metadata_of_unknown_topics(count: int) -> bytes:
    header = wire.encode(RequestHeader(request_api_key=3, request_api_version=12, correlation_id=1, client_id=None), 2)
    names = [MetadataRequest.MetadataRequestTopic(name=f"topic-{number}") for number in range(count)]
    return header + wire.encode(MetadataRequest(topics=names), 12)


def test_a_large_frame_is_decoded_between_the_requests_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    frame = metadata_of_unknown_topics(20_000)
    assert len(frame) > dispatch.SLICED_BYTES

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            greedy, other = [await RawClient.connect(broker) for _ in range(2)]
            await other.call(request())
            greedy.send(framed(frame))
            answer = asyncio.ensure_future(greedy.frame())
            for _ in range(20):
                await other.call(request())
            assert not answer.done()
            await answer
            await greedy.close()
            await other.close()

    asyncio.run(scenario())


def test_a_request_is_done_to_its_end_although_its_client_has_disconnected(tmp_path: Path) -> None:
    """A producer with acks=0 sends and closes; the log of a new topic is still being opened then."""
    batch = build_batch([Record(0, 1, b"k", b"v")])
    data = ProduceRequest.PartitionProduceData(index=0, records=batch)
    topic = ProduceRequest.TopicProduceData(name="t", partition_data=[data])
    produce = ProduceRequest(acks=0, timeout_ms=1000, topic_data=[topic])
    header = RequestHeader(request_api_key=0, request_api_version=9, correlation_id=1, client_id="x")
    frame = wire.encode(header, 2) + wire.encode(produce, 9)

    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1]])
        answer = dispatch.dispatch(frame, node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)))
        waiting = asyncio.ensure_future(cast(Awaitable[Any], answer))
        await asyncio.sleep(0)
        waiting.cancel()
        await node.partition().open()
        async with asyncio.timeout(20):
            while not node.partition().log_end_offset:
                await asyncio.sleep(0.01)
        await node.replicas.stop()

    asyncio.run(scenario())


ROWS = 500


def _requests() -> list[tuple[Message, int, Walked[Any]]]:
    """Requests with many partitions that do not exist, in a version of each, and the rows that are walked."""
    fetched = Walked(FetchRequest.FetchPartition(partition=index) for index in range(ROWS))
    listed = Walked(
        ListOffsetsRequest.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(ROWS)
    )
    deleted = Walked(DeleteRecordsRequest.DeleteRecordsPartition(partition_index=index) for index in range(ROWS))
    epochs = Walked(OffsetForLeaderEpochRequest.OffsetForLeaderPartition(partition=index) for index in range(ROWS))
    produced = Walked(ProduceRequest.PartitionProduceData(index=index, records=b"") for index in range(ROWS))
    produce = ProduceRequest(acks=1, topic_data=[ProduceRequest.TopicProduceData(name="no", partition_data=produced)])
    return [
        (FetchRequest(topics=[FetchRequest.FetchTopic(topic="no", partitions=fetched)]), 12, fetched),
        (ListOffsetsRequest(topics=[ListOffsetsRequest.ListOffsetsTopic(name="no", partitions=listed)]), 7, listed),
        (
            DeleteRecordsRequest(topics=[DeleteRecordsRequest.DeleteRecordsTopic(name="no", partitions=deleted)]),
            2,
            deleted,
        ),
        (
            OffsetForLeaderEpochRequest(
                topics=[OffsetForLeaderEpochRequest.OffsetForLeaderTopic(topic="no", partitions=epochs)]
            ),
            4,
            epochs,
        ),
        (produce, 9, produced),
    ]


@pytest.mark.parametrize("may", [True, False])
@pytest.mark.parametrize("number", range(5))
def test_a_request_of_many_rows_is_walked_a_few_rows_at_a_time(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, may: bool
) -> None:
    message, version, rows = _requests()[number]
    monkeypatch.setattr(Context, "may", lambda *_: may)
    node = ReadingNode(tmp_path)
    context = Context(node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)), version, 1, "x")
    work = cast(Any, dispatch.handler_of(message.schema().key or 0)(context, message))
    response, most = most_between_pauses(work, rows)
    assert rows.walked >= ROWS and most <= ROWS_PER_STEP
    assert len(wire.encode(response, version)) > ROWS


def test_topics_without_partitions_are_walked_one_by_one(tmp_path: Path) -> None:
    """Where permissions are checked, where the offsets are looked up, and where the rows get their old form."""
    topics = [OffsetFetchRequest.OffsetFetchRequestTopic(name=f"t-{number}") for number in range(ROWS)]

    async def scenario() -> None:
        node = ReadingNode(tmp_path)
        context = Context(node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)), 1, 1, "x")
        work = cast(Any, dispatch.handler_of(9)(context, OffsetFetchRequest(group_id="g", topics=topics)))
        response, pauses = counted(work)
        assert len(response.topics) == ROWS
        assert pauses >= 3 * ROWS
        await node.replicas.stop()

    asyncio.run(scenario())


def _requests_of_coordinators() -> list[tuple[Message, int, Walked[Any]]]:
    """Requests with many rows for groups, offsets and transactions that do not exist, and the rows that are walked."""
    indexes = Walked(range(ROWS))
    fetched = OffsetFetchRequest.OffsetFetchRequestTopic(name="no", partition_indexes=indexes)
    committed = Walked(OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index) for index in range(ROWS))
    unknown = OffsetCommitRequest.OffsetCommitRequestTopic(name="no", partitions=committed)
    absent = Walked(OffsetCommitRequest.OffsetCommitRequestPartition(partition_index=index) for index in range(1, ROWS))
    known = OffsetCommitRequest.OffsetCommitRequestTopic(name="t", partitions=absent)
    added = Walked(range(ROWS))
    adding = AddPartitionsToTxnRequest.AddPartitionsToTxnTopic(name="no", partitions=added)
    ended = Walked(range(ROWS))
    marker = WriteTxnMarkersRequest.WritableTxnMarker(
        topics=[WriteTxnMarkersRequest.WritableTxnMarkerTopic(name="no", partition_indexes=ended)]
    )
    left = Walked(LeaveGroupRequest.MemberIdentity(member_id=f"m{index}") for index in range(ROWS))
    keys = Walked(f"key-{index}" for index in range(ROWS))
    groups = Walked(f"group-{index}" for index in range(ROWS))
    produced_indexes = Walked(range(ROWS))
    produced = DescribeProducersRequest.TopicRequest(name="no", partition_indexes=produced_indexes)
    streams = Walked(f"streams-{index}" for index in range(ROWS))
    shared = Walked(ReadShareGroupStateRequest.PartitionData(partition=index) for index in range(ROWS))
    read = ReadShareGroupStateRequest.ReadStateData(partitions=shared)
    described = Walked(DescribeTopicPartitionsRequest.TopicRequest(name=f"no-{index}") for index in range(ROWS))
    return [
        (OffsetFetchRequest(group_id="g", topics=[fetched]), 1, indexes),
        (OffsetCommitRequest(group_id="g", topics=[unknown]), 9, committed),
        (OffsetCommitRequest(group_id="g", topics=[known]), 9, absent),
        (AddPartitionsToTxnRequest(v3_and_below_transactional_id="x", v3_and_below_topics=[adding]), 3, added),
        (WriteTxnMarkersRequest(markers=[marker]), 1, ended),
        (LeaveGroupRequest(group_id="g", members=left), 5, left),
        (FindCoordinatorRequest(key_type=9, coordinator_keys=keys), 4, keys),
        (DeleteGroupsRequest(groups_names=groups), 2, groups),
        (DescribeTopicPartitionsRequest(topics=described), 0, described),
        (DescribeProducersRequest(topics=[produced]), 0, produced_indexes),
        (StreamsGroupDescribeRequest(group_ids=streams), 0, streams),
        (ReadShareGroupStateRequest(group_id="g", topics=[read]), 0, shared),
    ]


@pytest.mark.parametrize("number", range(12))
def test_a_request_to_a_coordinator_is_walked_a_few_rows_per_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    message, version, rows = _requests_of_coordinators()[number]
    monkeypatch.setattr(Context, "may", lambda *_: True)
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    turns = [0]

    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1]])
        context = Context(node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)), version, 1, "x")
        answer = cast(Any, dispatch.handler_of(message.schema().key or 0)(context, message))
        work = asyncio.ensure_future(answer if inspect.iscoroutine(answer) else slices.in_slices(answer))
        while not work.done():
            before = rows.walked
            await asyncio.sleep(0)
            turns.append(rows.walked - before)
        if isinstance(message, LeaveGroupRequest):  # it asks the coordinator before it makes rows, and there is none
            assert isinstance(work.exception(), KafkaError)
        else:
            response = work.result()
            assert len(response if isinstance(response, bytes) else wire.encode(response, version)) > ROWS
        await node.replicas.stop()

    asyncio.run(scenario())
    assert sum(turns) >= ROWS - 1 and max(turns) <= 2 * ROWS_PER_STEP


def test_the_markers_of_a_large_transaction_are_written_between_the_turns_of_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(slices, "TURN_S", 0)
    partitions = [TopicPartition("t", index) for index in range(100)]
    ended = EndedTransaction(Producer(7, 0), Marker(True, 0), 2)

    async def scenario() -> list[int]:
        node = ReadingNode(tmp_path, t=[[1]] * len(partitions))
        for name in partitions:
            await node.partition(*name).open()
        work = asyncio.ensure_future(write_markers(node, partitions, ended))
        written = [0]
        while not work.done():
            await asyncio.sleep(0)
            written.append(sum(node.partition(*name).log_end_offset for name in partitions))
        assert set(work.result().values()) == {ErrorCode.NONE}
        await node.replicas.stop()
        return [after - before for before, after in pairwise(written)]

    per_turn = asyncio.run(scenario())
    assert sum(per_turn) == len(partitions) and max(per_turn) == 1


def test_a_response_of_many_rows_is_sent_as_a_few_pieces() -> None:
    rows = [FindCoordinatorResponse.Coordinator(key=f"key-{index}") for index in range(20 * MAX_PIECES)]
    response = FindCoordinatorResponse(coordinators=rows)
    pieces, pauses = counted(encode_response_in_slices(wire.APIS[10], 4, 1, response))
    whole = encode_response(wire.APIS[10], 4, 1, response)
    assert b"".join(pieces) == b"".join(whole)
    assert len(whole) > 20 * MAX_PIECES > 10 * len(pieces)
    assert pauses > 20


def test_an_error_response_is_made_a_row_at_a_time() -> None:
    rows = Walked(FetchRequest.FetchPartition(partition=index) for index in range(ROWS))
    request = FetchRequest(topics=[FetchRequest.FetchTopic(topic="no", partitions=rows)])
    work = error_response_in_slices(wire.APIS[1], 12, request, wire.ErrorCode.UNKNOWN_SERVER_ERROR, None)
    response, most = most_between_pauses(work, rows)
    assert rows.walked == ROWS and most == 1
    assert len(cast(Any, response).responses[0].partitions) == ROWS


def test_a_large_request_that_fails_is_answered_in_several_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its type of election does not exist, and each of its partitions is listed with the error."""
    monkeypatch.setattr(slices, "MAX_STEPS", 1)
    header = RequestHeader(request_api_key=43, request_api_version=2, correlation_id=1, client_id="x")
    topic = ElectLeadersRequest.TopicPartitions(topic="no", partitions=list(range(ROWS)))
    request_of_many = ElectLeadersRequest(election_type=7, topic_partitions=[topic], timeout_ms=1000)

    async def scenario() -> None:
        async with running_server() as (_server, broker, _controller):
            greedy, other = [await RawClient.connect(broker) for _ in range(2)]
            await other.call(request())
            greedy.send(framed(wire.encode(header, 2) + wire.encode(request_of_many, 2)))
            answer = asyncio.ensure_future(greedy.frame())
            for _ in range(5):
                await other.call(request())
            assert not answer.done()
            assert len(await answer) > ROWS
            await greedy.close()
            await other.close()

    asyncio.run(scenario())


# Their requests and responses have a fixed size, or one that only this cluster's nodes decide.
SHORT = {
    "ApiVersions", "CreateDelegationToken", "DescribeCluster", "DescribeDelegationToken", "ExpireDelegationToken",
    "Heartbeat", "RenewDelegationToken", "SaslAuthenticate",
    "SaslHandshake", "ListConfigResources",
}  # fmt: skip


def test_a_handler_is_a_generator_or_a_coroutine_unless_its_work_is_short() -> None:
    plain = set()
    for key, api in wire.APIS.items():
        try:
            handle = dispatch.handler_of(key)
        except ModuleNotFoundError:
            continue
        if not inspect.isgeneratorfunction(handle) and not inspect.iscoroutinefunction(handle):
            plain.add(api.name)
    assert plain <= SHORT | {"Fetch", "ListOffsets", "Produce"}  # these choose between both forms


def test_a_request_is_begun_although_its_client_has_disconnected_in_the_same_turn() -> None:
    """One that is never awaited would be a warning, which fails the test."""
    frame = framed(delete_topics(["unknown"]))

    async def scenario() -> None:
        async with running_server() as (server, broker, _controller):
            client = await RawClient.connect(broker)
            await client.call(request())
            (connected,) = server.connections
            connected.transport.abort()  # the end of the connection is due, and now come its last bytes
            connected.get_buffer(-1)[: len(frame)] = frame
            connected.buffer_updated(len(frame))
            begun = connected.under_way
            assert begun is not None
            await asyncio.wait([begun])
            await client.close()

    asyncio.run(scenario())
    gc.collect()


def delete_topics(names: list[str]) -> bytes:
    header = RequestHeader(request_api_key=20, request_api_version=5, correlation_id=1, client_id="x")
    return wire.encode(header, 2) + wire.encode(DeleteTopicsRequest(topic_names=names, timeout_ms=1000), 5)


def test_a_large_request_whose_client_has_disconnected_leaves_no_handler_behind(tmp_path: Path) -> None:
    """Its handler waits, so it is not even begun. One that is never awaited would be a warning, which fails the test."""
    frame = delete_topics([f"a-topic-that-does-not-exist-{number}" for number in range(5000)])
    assert len(frame) > dispatch.SLICED_BYTES

    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1]])
        answer = dispatch.dispatch(frame, node, Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", False)))
        waiting = asyncio.ensure_future(cast(Awaitable[Any], answer))
        await asyncio.sleep(0)
        waiting.cancel()
        while len(asyncio.all_tasks()) > 1:
            await asyncio.sleep(0)
        await node.replicas.stop()

    asyncio.run(scenario())
    gc.collect()
