"""The memory of connections over real sockets: what clients announce, send, leave unfinished and do not read."""

from __future__ import annotations

import asyncio
import os
import tracemalloc
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from barnabas.broker import dispatch as dispatching
from barnabas.broker.connection import MAX_STREAMED_BYTES, SMALL_CHUNK_BYTES, Connection
from barnabas.broker.memory_guard import PLENTIFUL_ROOM, PLENTY_BYTES
from barnabas.broker.request_memory import FREE_BYTES, MAX_READ_BYTES
from barnabas.broker.server import Server
from barnabas.replicas.reading import CHUNK_BYTES
from barnabas.wire.frame import FIRST_ROOM, GROWTH, SCRATCH_BYTES
from tests.broker.clients import RawClient, running_server
from tests.broker.reading_node import ReadingNode
from tests.broker.test_server import framed, request
from tests.broker.test_streaming import EVERYTHING, PARTITIONS, VALUES, serving
from tests.broker.test_streaming import framed as framed_fetch

MB = 1 << 20
ANNOUNCED = (100 * MB).to_bytes(4)
PER_CONNECTION = FIRST_ROOM + 2 * MAX_READ_BYTES  # beyond the limit


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def main() -> None:
        await asyncio.wait_for(test(), 300)

    asyncio.run(main())


async def until(condition: Callable[[], bool]) -> None:
    while not condition():
        await asyncio.sleep(0.001)


async def closed(clients: list[RawClient]) -> None:
    for client in clients:
        client.transport.abort()


def is_all_released(server: Server) -> bool:
    memory = server.memory
    return (memory.requests.held_bytes, memory.requests.waiting_count, memory.unread_bytes) == (0, 0, 0)


def test_connections_that_announce_large_requests_hold_what_they_have_sent() -> None:
    async def test() -> None:
        async with running_server() as (server, broker, _):
            clients = [await RawClient.connect(broker) for _ in range(300)]
            await until(lambda: len(server.connections) == 300)
            tracemalloc.start()
            for client in clients:
                client.send(ANNOUNCED + b"x")
            requests = server.memory.requests
            await until(lambda: len(list(requests.holders)) == 300)
            taken, _ = tracemalloc.get_traced_memory()
            tracemalloc.stop()
            assert requests.held_bytes == PLENTY_BYTES + (300 - PLENTY_BYTES // PLENTIFUL_ROOM) * FIRST_ROOM
            assert requests.held_bytes <= taken < 2 * requests.held_bytes
            await closed(clients)
            await until(lambda: is_all_released(server))

    run(test)


def test_large_requests_of_many_clients_are_all_answered_although_memory_is_short() -> None:
    async def test() -> None:
        async with running_server(request_memory_max_bytes=4 * MB) as (server, broker, _):
            clients = [await RawClient.connect(broker) for _ in range(40)]
            frame = framed(request(body=bytes(MB)))
            for client in clients:
                client.send(frame[: 6 * MB // 10])
            requests = server.memory.requests
            await until(lambda: requests.waiting_count > 20)
            for client in clients:
                client.send(frame[6 * MB // 10 :])
            for client in clients:
                assert (await client.frame())[:4] == b"\0\0\0\1"
            assert requests.exhausted_total > 0
            assert requests.most_held_bytes < 4 * MB + len(frame) + GROWTH * SCRATCH_BYTES + 40 * PER_CONNECTION
            assert is_all_released(server)
            await closed(clients)

    run(test)


def test_a_request_larger_than_the_limit_is_answered() -> None:
    async def test() -> None:
        async with running_server(request_memory_max_bytes=MB) as (server, broker, _):
            client = await RawClient.connect(broker)
            assert (await client.call(request(body=bytes(20 * MB))))[:4] == b"\0\0\0\1"
            assert is_all_released(server)
            await client.close()

    run(test)


def test_small_requests_are_answered_while_memory_is_short() -> None:
    async def test() -> None:
        async with running_server(request_memory_max_bytes=MB, request_stall_ms=60_000) as (server, broker, _):
            large = [await RawClient.connect(broker) for _ in range(8)]
            for client in large:
                client.send(ANNOUNCED + bytes(MB // 2))
            await until(lambda: server.memory.requests.waiting_count > 0)
            small = await RawClient.connect(broker)
            for number in range(20):
                frame = framed(request(correlation_id=number, body=bytes(FREE_BYTES // 2)))
                small.send(frame[: number + 2])
                await asyncio.sleep(0.001)
                small.send(frame[number + 2 :])
                assert (await small.frame())[3] == number
            await closed([*large, small])
            await until(lambda: is_all_released(server))

    run(test)


def test_while_memory_is_short_requests_without_progress_are_dropped_and_others_get_their_turn() -> None:
    async def test() -> None:
        async with running_server(request_memory_max_bytes=MB, request_stall_ms=100) as (server, broker, _):
            stalled = [await RawClient.connect(broker) for _ in range(30)]
            for client in stalled:
                client.send(ANNOUNCED + bytes(MB // 4))
            await until(lambda: server.memory.requests.waiting_count > 0)
            honest = await RawClient.connect(broker)
            assert (await honest.call(request(body=bytes(2 * MB))))[:4] == b"\0\0\0\1"
            assert server.memory.stalled_total > 0
            await closed([*stalled, honest])
            await until(lambda: is_all_released(server))

    run(test)


def test_while_there_is_memory_a_request_may_take_its_time() -> None:
    async def test() -> None:
        async with running_server(request_stall_ms=10) as (server, broker, _):
            client = await RawClient.connect(broker)
            frame = framed(request(body=bytes(MB)))
            client.send(frame[:-1])
            await asyncio.sleep(0.2)
            client.send(frame[-1:])
            await client.frame()
            assert server.memory.stalled_total == 0
            await client.close()

    run(test)


def replaced(monkeypatch: pytest.MonkeyPatch, handler: Callable[[Any, Any], Any]) -> None:
    monkeypatch.setattr(dispatching, "handler_of", lambda key: handler)


def test_a_request_in_progress_is_counted_until_it_is_answered(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        gate = asyncio.Event()
        answer_now = dispatching.handler_of(18)

        async def handler(context: Any, request: Any) -> Any:
            await gate.wait()
            return answer_now(context, request)

        replaced(monkeypatch, handler)
        async with running_server() as (server, broker, _):
            client = await RawClient.connect(broker)
            frame = request(body=bytes(MB))
            client.send(framed(frame) + framed(frame)[:-1])
            requests = server.memory.requests
            await until(lambda: requests.held_bytes >= 2 * len(frame))
            gate.set()
            await client.frame()
            await until(lambda: len(frame) <= requests.held_bytes < 2 * len(frame))
            await closed([client])
            await until(lambda: is_all_released(server))

    run(test)


def test_a_request_whose_client_is_gone_is_counted_until_its_work_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        gate = asyncio.get_running_loop().create_future()
        answer_now = dispatching.handler_of(18)

        def handler(context: Any, request: Any) -> Any:
            yield gate
            return answer_now(context, request)

        replaced(monkeypatch, handler)
        async with running_server() as (server, broker, _):
            client = await RawClient.connect(broker)
            frame = request(body=bytes(MB))
            client.send(framed(frame) + framed(frame)[:FIRST_ROOM])
            requests = server.memory.requests
            await until(lambda: requests.held_bytes > len(frame))
            await closed([client])
            await until(lambda: not server.connections)
            assert requests.held_bytes == len(frame)
            gate.set_result(None)
            await until(lambda: is_all_released(server))

    run(test)


# --- responses

SIZES = (40, 60, 45, 35)  # in MB, of responses


@pytest.fixture
def node(tmp_path: Path) -> ReadingNode:
    node = ReadingNode(tmp_path, t=[[1]] * PARTITIONS)
    for index in range(PARTITIONS):
        for value in VALUES:
            node.append(value, index=index)
    return node


async def unread(address: tuple[str, int], count: int) -> list[RawClient]:
    """Clients that ask for 12 MB each and do not read them."""
    clients = [await RawClient.connect(address, receive_buffer_bytes=1 << 16) for _ in range(count)]
    for client in clients:
        client.transport.pause_reading()
        client.send(framed_fetch(EVERYTHING))
    return clients


def test_records_for_clients_that_do_not_read_stay_on_disk_when_memory_is_short(node: ReadingNode) -> None:
    async def test() -> None:
        limit = 8 * MB
        async with serving(node, response_memory_max_bytes=limit) as (server, address):
            clients = await unread(address, 6)
            await until(lambda: sum(each.write_paused for each in server.connections) == 6)
            await asyncio.sleep(0.2)
            memory = server.memory
            assert memory.unread_closed_total == 0
            buffered = sum(each.transport.get_write_buffer_size() for each in server.connections)
            assert memory.is_response_memory_short
            assert buffered <= limit // 2 + 3 * MB + 6 * 4 * SMALL_CHUNK_BYTES
            for client in clients:
                client.transport.resume_reading()
            for client in clients:
                await client.frame()
            assert is_all_released(server)
            await closed(clients)

    run(test)


def test_above_the_limit_the_connection_with_the_most_unread_bytes_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    async def test() -> None:
        async def handler(context: Any, request: Any) -> Any:
            return bytes(context.correlation_id * MB)

        replaced(monkeypatch, handler)
        async with running_server(response_memory_max_bytes=120 * MB) as (server, broker, _):
            clients = [await RawClient.connect(broker, receive_buffer_bytes=4096) for _ in range(4)]
            for client, size in zip(clients, SIZES, strict=True):
                client.transport.pause_reading()
                client.send(framed(request(correlation_id=size)))
                await until(lambda: any(map(is_writing, server.connections)))
                await asyncio.sleep(0.05)
            await until(lambda: server.memory.unread_closed_total == 1)
            await until(lambda: len(server.connections) == 3)
            rest = sum(SIZES) - max(SIZES)  # what is not handed to the transports yet is counted, too
            assert rest * MB * 9 // 10 < server.memory.unread_bytes <= min(rest, 120) * MB + 1000
            buffered = [each.transport.get_write_buffer_size() for each in server.connections]
            assert all(0 < size <= MAX_STREAMED_BYTES + 2 * CHUNK_BYTES for size in buffered)
            await closed(clients)
            await until(lambda: is_all_released(server))

    run(test)


def test_a_large_response_is_written_in_chunks_between_the_turns_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    body = os.urandom(7 * MB + 5)
    written: list[int] = []
    answer_now = dispatching.handler_of(18)

    async def test() -> None:
        async def handler(context: Any, request: Any) -> Any:
            return body if context.correlation_id == 7 else answer_now(context, request)

        transports: Any = asyncio.selector_events
        real = transports._SelectorSocketTransport.writelines

        def noting(transport: Any, pieces: Any) -> None:
            pieces = list(pieces)
            written.append(sum(map(len, pieces)))
            real(transport, pieces)

        replaced(monkeypatch, handler)
        monkeypatch.setattr(transports._SelectorSocketTransport, "writelines", noting)
        async with running_server() as (server, broker, _):
            client = await RawClient.connect(broker)
            client.send(framed(request(correlation_id=7)) + framed(request(correlation_id=8)))
            assert (await client.frame()).endswith(body)
            assert len(await client.frame()) > 4  # the next response follows the whole of it
            assert server.memory.unread_bytes == 0
            await closed([client])
            await until(lambda: is_all_released(server))

    run(test)
    assert len(written) >= 7 and max(written) <= 2 * CHUNK_BYTES


def is_writing(connection: Connection) -> bool:
    return connection.write_paused
