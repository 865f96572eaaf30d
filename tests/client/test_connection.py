"""One connection to one node, also to a node that misbehaves."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable

import pytest

from barnabas import wire
from barnabas.client.connection import Connection, ConnectionLostError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.clients import running_server

REQUEST = ApiVersionsRequest(client_software_name="test", client_software_version="1")
Answer = Callable[[bytes], bytes]


def against(answer: Answer, scenario: Callable[[Connection], Awaitable[None]]) -> None:
    """Run a scenario against a peer that answers each frame with these bytes, and closes when there are none."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                if not (data := answer(await reader.readexactly(size))):
                    break
                writer.write(data)
        except asyncio.IncompleteReadError:
            pass
        finally:
            writer.close()

    async def main() -> None:
        server = await asyncio.start_server(serve, "127.0.0.1", 0)
        async with server:
            connection = await Connection.open("127.0.0.1", server.sockets[0].getsockname()[1], "test")
            await scenario(connection)
            connection.close()
            await asyncio.sleep(0.01)

    asyncio.run(main())


def framed(correlation_id: bytes, body: bytes) -> bytes:
    return struct.pack(">i", len(correlation_id) + len(body)) + correlation_id + body


def good(frame: bytes) -> bytes:
    return framed(frame[4:8], wire.encode(ApiVersionsResponse(), 3))


def test_requests_are_pipelined_and_answers_find_their_callers() -> None:
    async def scenario() -> None:
        async with running_server() as (_, broker, _controller):
            connection = await Connection.open(*broker, "test")
            answers = await asyncio.gather(*(connection.call(REQUEST, version % 5) for version in range(100)))
            assert [len(answer.api_keys) > 0 for answer in answers] == [True] * 100
            assert connection.is_open
            connection.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(lambda frame: b"", id="it hangs up"),
        pytest.param(lambda frame: b"\xff\xff\xff\xff", id="a negative size"),
        pytest.param(lambda frame: b"\0\0\0\2ab", id="too short for a correlation id"),
        pytest.param(lambda frame: framed(frame[4:8], b"\0"), id="a truncated body"),
        pytest.param(lambda frame: b"HTTP/1.1 400 Bad Request\r\n\r\n", id="not kafka at all"),
    ],
)
def test_a_peer_that_breaks_the_protocol_ends_the_connection(answer: Answer) -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(ConnectionLostError):
            await connection.call(REQUEST, 3)
        with pytest.raises(ConnectionLostError):
            await connection.call(REQUEST, 3)
        assert not connection.is_open

    against(answer, scenario)


def test_an_answer_that_nobody_waits_for_is_dropped() -> None:
    async def scenario(connection: Connection) -> None:
        assert (await connection.call(REQUEST, 3)).error_code == 0

    against(lambda frame: framed(b"\x7f\0\0\1", b"what?") + good(frame), scenario)


def test_a_silent_peer_is_not_waited_for_longer_than_asked() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            await connection.call(REQUEST, 3, timeout_ms=50)
        assert connection.is_open

    against(lambda frame: b"\0\0\0", scenario)


def test_a_peer_that_is_not_there_is_an_error() -> None:
    async def scenario() -> None:
        server = await asyncio.start_server(lambda reader, writer: None, "127.0.0.1", 0)
        port = server.sockets[0].getsockname()[1]
        server.close()
        await server.wait_closed()
        with pytest.raises(ConnectionError):
            await Connection.open("127.0.0.1", port, "test")

    asyncio.run(scenario())
