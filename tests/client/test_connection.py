"""One connection to one node, also to a node that misbehaves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import uvloop

from barnabas.client.connection import Connection, ConnectionLostError, foreign_protocol
from barnabas.client.errors import NotConnectedError, NotKafkaError, UnknownHostError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.sasl_authenticate import SaslAuthenticateRequest
from tests.broker.clients import running_server
from tests.client.peers import Asked, answering, framed, peer

REQUEST = ApiVersionsRequest(client_software_name="test", client_software_version="1")
LOOPS = [asyncio.new_event_loop, uvloop.new_event_loop]


def run(work: Any, loop_factory: Any = None) -> None:
    with asyncio.Runner(loop_factory=loop_factory) as runner:
        runner.run(work)


async def against(answers: Callable[[Asked], bytes | None], scenario: Callable[[Connection], Awaitable[None]]) -> None:
    async with peer(answering(answers)) as port:
        connection = await Connection.open("127.0.0.1", port, "test")
        await scenario(connection)
        connection.close()
        await connection.wait_closed()


def good(asked: Asked) -> bytes:
    return asked.answer(ApiVersionsResponse(finalized_features_epoch=asked.correlation_id))


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_requests_are_pipelined_and_answers_find_their_callers(loop_factory: Any) -> None:
    async def main() -> None:
        async with running_server() as (_, broker, _controller):
            connection = await Connection.open(*broker, "test")
            answers = await asyncio.gather(*(connection.call(REQUEST, version % 5) for version in range(100)))
            assert [len(answer.api_keys) > 0 for answer in answers] == [True] * 100
            assert connection.is_open
            connection.close()
            await connection.wait_closed()

    run(main(), loop_factory)


@pytest.mark.parametrize(
    ("answer", "says"),
    [
        pytest.param(lambda asked: None, "closed the connection instead of answering ApiVersions", id="it hangs up"),
        pytest.param(lambda asked: framed(b"ab"), "without a correlation id", id="too short for a correlation id"),
        pytest.param(
            lambda asked: framed(good(asked)[4:8] + b"\0\0\xff\xff\xff\xff\x0f" + bytes(50)),
            "ApiVersionsResponse v3",
            id="a body that lies about its length",
        ),
        pytest.param(
            lambda asked: framed(good(asked)[4:8] + b"\0"), "ApiVersionsResponse v3: truncated", id="a truncated body"
        ),
        pytest.param(
            lambda asked: asked.answer(ApiVersionsResponse(), correlation_id=77),
            "request 77, which was not sent",
            id="a wrong correlation id",
        ),
        pytest.param(lambda asked: good(asked) + b"\xff\xff\xff\xff", "", id="a negative size behind a good answer"),
    ],
)
def test_a_peer_that_breaks_the_protocol_ends_the_connection(
    answer: Callable[[Asked], bytes | None], says: str
) -> None:
    async def scenario(connection: Connection) -> None:
        if says:
            with pytest.raises(ConnectionLostError, match=says):
                await connection.call(REQUEST, 3)
        else:
            await connection.call(REQUEST, 3)
        with pytest.raises(NotConnectedError):
            await connection.call(REQUEST, 3)
        assert not connection.is_open
        assert connection.in_flight == 0

    run(against(answer, scenario))


@pytest.mark.parametrize(
    ("says", "protocol"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "HTTP"),
        (b"\x15\x03\x03\x00\x02\x02\x28", "TLS; set security.protocol"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "SSH"),
        (b"-ERR unknown command\r\n", "Redis"),
        (b"220 mail.example.org ESMTP\r\n", "SMTP or FTP"),
        (b"\xff\xff\xff\xff", "something that begins with"),
        (b"hello, who is there", "something that begins with b'hello, w'"),
    ],
)
def test_what_is_not_kafka_is_named(says: bytes, protocol: str) -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(NotKafkaError, match=protocol):
            await connection.call(REQUEST, 3)
        assert not connection.is_open

    run(against(lambda asked: says, scenario))


def test_the_first_bytes_of_a_kafka_answer_are_not_taken_for_another_protocol() -> None:
    assert foreign_protocol(framed(b"HTTP")) is None
    assert foreign_protocol(b"HTT") is None


def test_an_answer_that_comes_too_late_is_dropped() -> None:
    held: list[bytes] = []

    def answers(asked: Asked) -> bytes:
        if asked.correlation_id == 0:
            held.append(good(asked))
            return b""
        return b"".join(held) + good(asked)

    async def scenario(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            await connection.call(REQUEST, 3, timeout_ms=50)
        assert (await connection.call(REQUEST, 3)).finalized_features_epoch == 1
        assert connection.is_open

    run(against(answers, scenario))


def test_a_silent_peer_is_not_waited_for_longer_than_asked() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(TimeoutError):
            await connection.call(REQUEST, 3, timeout_ms=50)
        assert connection.is_open

    run(against(lambda asked: b"\0\0\0", scenario))


def test_a_reset_fails_everyone_who_waits() -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(1)
        writer.transport.abort()

    async def main() -> None:
        async with peer(script) as port:
            connection = await Connection.open("127.0.0.1", port, "test")
            calls = [asyncio.create_task(connection.call(REQUEST, 3)) for _ in range(10)]
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in done} == {ConnectionLostError}

    run(main())


@pytest.mark.parametrize("loop_factory", LOOPS)
def test_a_peer_that_does_not_read_makes_callers_wait_and_not_the_memory_grow(loop_factory: Any) -> None:
    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await asyncio.sleep(60)

    async def main() -> None:
        async with peer(script) as port:
            connection = await Connection.open("127.0.0.1", port, "test")
            large = SaslAuthenticateRequest(auth_bytes=bytes(1 << 20))
            calls = [asyncio.create_task(connection.call(large, 2, timeout_ms=300)) for _ in range(100)]
            done = await asyncio.gather(*calls, return_exceptions=True)
            assert {type(each) for each in done} == {TimeoutError}
            assert connection._transport is not None
            assert connection._transport.get_write_buffer_size() < 20 << 20
            connection.close()
            connection._transport.abort()
            await connection.wait_closed()

    run(main(), loop_factory)


def test_closing_fails_who_waits_and_returns_when_the_socket_is_gone() -> None:
    async def scenario(connection: Connection) -> None:
        waiting = asyncio.create_task(connection.call(REQUEST, 3))
        await asyncio.sleep(0.01)
        connection.close()
        await connection.wait_closed()
        with pytest.raises(ConnectionLostError, match="closed on this side"):
            await waiting

    run(against(lambda asked: b"", scenario))


def test_a_peer_that_is_not_there_is_an_error_with_its_address() -> None:
    async def main() -> None:
        async with peer(answering(good)) as port:
            pass
        with pytest.raises(NotConnectedError, match=f"127.0.0.1:{port} cannot be reached: Connection refused"):
            await Connection.open("127.0.0.1", port, "test")
        with pytest.raises(UnknownHostError, match=r"nobody\.invalid:9092"):
            await Connection.open("nobody.invalid", 9092, "test")

    run(main())


def test_without_negotiated_versions_the_caller_says_which() -> None:
    async def scenario(connection: Connection) -> None:
        with pytest.raises(TypeError, match="pass `version`"):
            await connection.call(REQUEST)

    run(against(good, scenario))
