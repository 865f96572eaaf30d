"""A large Produce request keeps one copy of its records: the buffer that the socket filled is what the log writes."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import os
import tracemalloc
from collections.abc import Awaitable, Sequence
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import Compression, Record, build_batch, decode_records
from barnabas.batches.format import Buffer
from barnabas.broker import connection
from barnabas.broker.context import Listener, Peer
from barnabas.broker.dispatch import dispatch
from barnabas.broker.server import Limits, Server
from barnabas.broker.surroundings import listening_socket
from barnabas.security.principal import ANONYMOUS
from barnabas.storage.files import File
from barnabas.transactions.state import TOPIC
from barnabas.wire import APIS, ApiKey
from barnabas.wire.frame import Frame, FrameBuffer
from barnabas.wire.messages.header import RequestHeader
from barnabas.wire.messages.init_producer_id import InitProducerIdRequest
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse
from tests.broker.clients import ask
from tests.broker.reading_node import NOW_MS, ReadingNode, topic_id
from tests.transactions.world import topic_records

VERSION = 13
VALUE_BYTES = 1_000_000
VALUES = [os.urandom(VALUE_BYTES // 10) for _ in range(10)]  # which no codec makes smaller
PEER = Peer("127.0.0.1", ANONYMOUS, Listener("PLAINTEXT", is_controller=False))


def batch(**how: Any) -> bytes:
    return build_batch([Record(index, NOW_MS, b"k", value) for index, value in enumerate(VALUES)], **how)


def produce(data: bytes, *, acks: int = -1, transactional_id: str | None = None) -> ProduceRequest:
    rows = [ProduceRequest.PartitionProduceData(index=0, records=data)]
    topics = [ProduceRequest.TopicProduceData(name="t", topic_id=topic_id("t"), partition_data=rows)]
    return ProduceRequest(transactional_id=transactional_id, acks=acks, timeout_ms=20_000, topic_data=topics)


def memory_of(frame: Frame) -> bytearray:
    assert isinstance(frame, memoryview) and isinstance(frame.obj, bytearray)
    return frame.obj


def received(request: ProduceRequest) -> Frame:
    """The request as a connection receives it, in a buffer of its own."""
    header = RequestHeader(request_api_key=0, request_api_version=VERSION, correlation_id=5, client_id="test")
    header.unknown_tagged_fields = {9: b"later"}
    body = wire.encode(request, VERSION)
    head = wire.encode(header, APIS[ApiKey.PRODUCE].request_header_version(VERSION))
    buffer = FrameBuffer(1 << 26)
    buffer.feed((len(head) + len(body)).to_bytes(4) + head)
    assert buffer.next_frame() is None
    buffer.feed(body)
    frame = buffer.next_frame()
    assert isinstance(frame, memoryview)
    return frame


def row_of(pieces: Sequence[bytes] | Awaitable[object] | None) -> ProduceResponse.PartitionProduceResponse:
    assert not isinstance(pieces, Awaitable)
    body = b"".join(pieces or ())[8 + APIS[ApiKey.PRODUCE].response_header_version(VERSION) :]
    return wire.decode(ProduceResponse, VERSION, body).responses[0].partition_responses[0]


async def answer_of(answer: Sequence[bytes] | Awaitable[Sequence[bytes] | None] | None) -> Sequence[bytes] | None:
    return await answer if isinstance(answer, Awaitable) else answer


def stored_values(node: ReadingNode) -> list[bytes | None]:
    return [record.value for record in decode_records(node.partition().read(0, 1 << 26))]


@pytest.mark.parametrize("compression", list(Compression))
def test_the_log_writes_the_buffer_that_the_socket_filled(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, compression: Compression
) -> None:
    frames: list[Frame] = []
    written: list[Buffer] = []
    write = File.write

    def seen_dispatch(frame: Frame, *rest: Any) -> Any:
        frames.append(frame)
        return dispatch(frame, *rest)

    def seen_write(self: File, buffers: Sequence[Buffer], position: int) -> None:
        written.extend(buffers)
        write(self, buffers, position)

    monkeypatch.setattr(connection, "dispatch", seen_dispatch)
    monkeypatch.setattr(File, "write", seen_write)
    node = ReadingNode(tmp_path, t=[[1]])
    node.append(b"opens the log")
    sent = batch(compression=compression)

    async def scenario() -> ProduceResponse:
        server = Server(node, Limits(), listening_socket)
        address = server.bind(Listener("PLAINTEXT", is_controller=False), "127.0.0.1", 0)
        server.start()
        try:
            response: ProduceResponse = await ask(address, produce(sent), VERSION)
            return response
        finally:
            await server.stop()

    response = asyncio.run(scenario())
    assert response.responses[0].partition_responses[0].base_offset == 1
    (frame,) = (each for each in frames if isinstance(each, memoryview))
    (records,) = (each for each in written if len(each) > VALUE_BYTES)
    assert isinstance(records, memoryview)
    assert records.obj is frame.obj
    assert node.partition().read(1, 1 << 26)[16:] == sent[16:]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_large_batch_is_appended_without_memory_of_its_size(tmp_path: Path, compression: Compression) -> None:
    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1]])
        request = produce(batch(compression=compression))
        await node.partition().open()
        assert row_of(await answer_of(dispatch(received(request), node, PEER))).error_code == 0  # compiles the readers
        frame = received(request)
        tracemalloc.start()
        try:
            before = tracemalloc.get_traced_memory()[0]
            pieces = await answer_of(dispatch(frame, node, PEER))
            used = tracemalloc.get_traced_memory()[1] - before
        finally:
            tracemalloc.stop()
        assert row_of(pieces).base_offset == len(VALUES)
        assert used < VALUE_BYTES // 10

    asyncio.run(scenario())


async def until_written(node: ReadingNode) -> None:
    await node.partition().open()
    async with asyncio.timeout(20):
        while not node.partition().log_end_offset:
            await asyncio.sleep(0)


async def until_released(memory: bytearray) -> None:
    """A thread that wrote the batch may hold a view of it for a moment longer."""
    async with asyncio.timeout(20):
        while True:
            with contextlib.suppress(BufferError):
                return memory.clear()
            await asyncio.sleep(0.01)


def test_a_response_that_waits_does_not_keep_the_frame_in_memory(tmp_path: Path) -> None:
    async def scenario() -> None:
        node = ReadingNode(tmp_path, t=[[1, 2]])
        frame = received(produce(batch()))
        memory = memory_of(frame)
        answer = dispatch(frame, node, PEER)
        assert inspect.isawaitable(answer)
        waiting = asyncio.ensure_future(answer)
        await until_written(node)
        del frame
        await until_released(memory)
        assert not waiting.done()
        node.partition().fetched(2, len(VALUES))
        assert row_of(await waiting).base_offset == 0
        assert stored_values(node) == VALUES

    asyncio.run(scenario())


def test_a_batch_of_a_transaction_is_kept_until_the_coordinator_agrees_and_no_longer(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1, 2]], records=[*topic_records(TOPIC, [1])])
    begun = node.call(InitProducerIdRequest(transactional_id="tx", transaction_timeout_ms=1000), 5)

    async def scenario() -> None:
        await node.memory_transactions.load()
        sent = batch(
            producer_id=begun.producer_id,
            producer_epoch=begun.producer_epoch,
            base_sequence=0,
            is_transactional=True,
        )
        frame = received(produce(sent, transactional_id="tx"))
        memory = memory_of(frame)
        answer = dispatch(frame, node, PEER)
        assert inspect.isawaitable(answer)
        waiting = asyncio.ensure_future(answer)
        del frame
        with pytest.raises(BufferError):
            memory.clear()
        await until_written(node)
        await until_released(memory)
        assert not waiting.done()
        node.partition().fetched(2, len(VALUES))
        assert row_of(await waiting).base_offset == 0
        assert stored_values(node) == VALUES

    asyncio.run(scenario())


def test_a_request_without_records_is_copied_out_of_its_frame(tmp_path: Path) -> None:
    node = ReadingNode(tmp_path, t=[[1]])
    request = InitProducerIdRequest(transactional_id="x" * 20_000, transaction_timeout_ms=1000)
    header = RequestHeader(request_api_key=22, request_api_version=5, correlation_id=5, client_id="test")
    frame = memoryview(wire.encode(header, 2) + wire.encode(request, 5))

    async def scenario() -> None:
        answer = dispatch(frame, node, PEER)
        assert inspect.isawaitable(answer)
        assert await answer is not None

    asyncio.run(scenario())
