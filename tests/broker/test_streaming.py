"""Answers with records on their way over real sockets: as fast as the client takes them, and read no earlier."""

from __future__ import annotations

import asyncio
import contextlib
import os
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker.connection import MAX_STREAMED_BYTES
from barnabas.broker.context import Listener
from barnabas.broker.server import Limits, Server
from barnabas.replicas.reading import CHUNK_BYTES
from barnabas.wire import APIS
from barnabas.wire.messages.fetch import FetchRequest, FetchResponse
from barnabas.wire.messages.header import RequestHeader
from tests.broker.clients import RawClient, ask
from tests.broker.reading_node import ReadingNode, fetch, rows, values

VERSION = 12
PARTITIONS = 4
VALUES = [os.urandom(50_000) for _ in range(60)]  # 3 MB in each partition
EVERYTHING = fetch(*(("t", index, 0) for index in range(PARTITIONS)), partition_max_bytes=1 << 30, max_bytes=1 << 30)


def framed(request: FetchRequest) -> bytes:
    header = RequestHeader(request_api_key=1, request_api_version=VERSION, correlation_id=7, client_id="test")
    frame = wire.encode(header, APIS[1].request_header_version(VERSION)) + wire.encode(request, VERSION)
    return struct.pack(">i", len(frame)) + frame


def decoded(frame: bytes) -> FetchResponse:
    return wire.decode(FetchResponse, VERSION, frame[5:])


@pytest.fixture
def node(tmp_path: Path) -> ReadingNode:
    node = ReadingNode(tmp_path, t=[[1]] * PARTITIONS)
    for index in range(PARTITIONS):
        for value in VALUES:
            node.append(value, index=index)
    return node


@contextlib.asynccontextmanager
async def serving(node: ReadingNode, **limits: Any) -> AsyncIterator[tuple[Server, tuple[str, int]]]:
    server = Server(node, Limits(**limits))
    address = server.bind(Listener("PLAINTEXT", is_controller=False), "127.0.0.1", 0)
    server.start()
    try:
        yield server, address
    finally:
        await server.stop()


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test(), 60)

    asyncio.run(main())


def drop_from_memory(node: ReadingNode) -> None:
    for index in range(PARTITIONS):
        log = node.partition("t", index).log
        log.flush()
        with log.segments[0].log.path.open("rb") as file:
            os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)


@pytest.mark.parametrize("is_cold", [False, True])
def test_a_large_answer_arrives_whole(node: ReadingNode, is_cold: bool) -> None:
    async def test() -> None:
        async with serving(node) as (_, address):
            if is_cold:
                drop_from_memory(node)
            response = await ask(address, EVERYTHING, VERSION)
            assert [values(row) for row in rows(response)] == [VALUES] * PARTITIONS

    run(test)


def test_answers_keep_the_order_of_the_requests(node: ReadingNode) -> None:
    async def test() -> None:
        async with serving(node) as (_, address):
            client = await RawClient.connect(address)
            small = fetch(("t", 1, 59), partition_max_bytes=1)
            client.send(framed(EVERYTHING) + framed(small) + framed(EVERYTHING))
            counts = [sum(len(values(row)) for row in rows(decoded(await client.frame()))) for _ in range(3)]
            assert counts == [240, 1, 240]
            await client.close()

    run(test)


def test_what_a_client_does_not_take_is_not_read(node: ReadingNode) -> None:
    async def test() -> None:
        async with serving(node) as (server, address):
            client = await RawClient.connect(address, receive_buffer_bytes=4096)
            client.transport.pause_reading()
            client.send(framed(EVERYTHING))
            await asyncio.sleep(0.3)
            (connection,) = server.connections
            assert 0 < connection.transport.get_write_buffer_size() < MAX_STREAMED_BYTES + 2 * CHUNK_BYTES
            client.transport.resume_reading()
            assert [values(row) for row in rows(decoded(await client.frame()))] == [VALUES] * PARTITIONS
            await client.close()

    run(test)


def test_a_client_that_never_takes_its_answer_is_idle(node: ReadingNode) -> None:
    async def test() -> None:
        async with serving(node, connections_max_idle_ms=300) as (server, address):
            client = await RawClient.connect(address, receive_buffer_bytes=4096)
            client.transport.pause_reading()
            client.send(framed(EVERYTHING))
            await asyncio.sleep(0.1)
            assert len(server.connections) == 1
            while server.connections:
                await asyncio.sleep(0.01)
            client.transport.abort()

    run(test)


def test_a_client_that_goes_away_leaves_nothing_behind(node: ReadingNode) -> None:
    async def test() -> None:
        async with serving(node) as (server, address):
            client = await RawClient.connect(address, receive_buffer_bytes=4096)
            client.transport.pause_reading()
            client.send(framed(EVERYTHING))
            await asyncio.sleep(0.1)
            client.transport.abort()
            while server.connections:
                await asyncio.sleep(0.01)

    run(test)


def test_records_that_cannot_be_read_any_more_end_the_connection(node: ReadingNode) -> None:
    async def test() -> None:
        async with serving(node) as (_, address):
            client = await RawClient.connect(address, receive_buffer_bytes=4096)
            client.transport.pause_reading()
            client.send(framed(EVERYTHING))
            await asyncio.sleep(0.2)
            log = node.partition("t", PARTITIONS - 1).log.segments[0].log
            log.truncate(1000)
            client.transport.resume_reading()
            with pytest.raises(asyncio.IncompleteReadError):
                await client.frame()
            await client.close()
            assert node.log_directories.is_online(node.partition().log_dir)

    run(test)
