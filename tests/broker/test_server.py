"""The server over real sockets: order, limits, back-pressure, and what it does with frames that it cannot read."""

from __future__ import annotations

import asyncio
import gzip
import json
import struct
from collections.abc import Awaitable, Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.broker import dispatch as dispatching
from barnabas.broker.context import Listener
from barnabas.broker.served import served_keys
from barnabas.broker.server import Limits, Server
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.broker.clients import RawClient, Services, running_server

DATA = Path(__file__).parent / "data"
STILL_OPEN_S = 0.3


def captures(name: str) -> Iterator[dict[str, Any]]:
    with gzip.open(DATA / name, "rt") as lines:
        yield from map(json.loads, lines)


def request(version: int = 0, correlation_id: int = 1, body: bytes = b"") -> bytes:
    header = struct.pack(">hhih", 18, version, correlation_id, -1) + (b"\0" if version >= 3 else b"")
    return header + body


def framed(frame: bytes) -> bytes:
    return struct.pack(">i", len(frame)) + frame


def api_versions(frame: bytes, version: int) -> ApiVersionsResponse:
    return wire.decode(ApiVersionsResponse, version, frame[4:])


@pytest.mark.parametrize(
    "capture",
    [
        pytest.param(c, id=f"{c['case']}-{c['listener']}")
        for c in captures("malformed.jsonl.gz")
        if "removed version of CreateTopics" not in c["case"]  # served here
    ],
)
def test_frames_that_cannot_be_read_do_what_they_do_to_kafka(capture: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with running_server() as (_, broker, controller):
            client = await RawClient.connect(controller if capture["listener"] == "controller" else broker)
            client.send(bytes.fromhex(capture["sent_hex"]))
            if "end of stream" in capture["case"]:
                client.writer.write_eof()
            if capture["received_hex"]:
                if int(capture["sent_hex"][8:12], 16) in served_keys():
                    received = await client.frame()
                    assert received[:4].hex() == capture["received_hex"][8:16]
                    assert not await client.is_closed(STILL_OPEN_S)
            elif capture["connection_after"] == "open":
                assert not await client.is_closed(STILL_OPEN_S)
            else:
                assert await client.is_closed()
            await client.close()
            other = await RawClient.connect(broker)  # nothing else stops working
            assert (await other.call(request(correlation_id=9)))[:4] == b"\0\0\0\x09"
            await other.close()

    asyncio.run(scenario())


@pytest.mark.parametrize(
    "capture",
    [
        pytest.param(c, id=f"v{c['version']} {c['case']}-{c['listener']}")
        for c in captures("ApiVersions.jsonl.gz")
        if c["deterministic"] and c["response_hex"] and c["case"] != "null client id"
    ],
)
def test_api_versions_answers_the_bytes_of_kafka(capture: dict[str, Any]) -> None:
    async def scenario() -> None:
        async with running_server() as (_, broker, controller):
            client = await RawClient.connect(controller if capture["listener"] == "controller" else broker)
            answer = await client.call(bytes.fromhex(capture["request_hex"]))
            expected = bytes.fromhex(capture["response_hex"])
            if len(expected) > 100:  # lists every API of Kafka; here, of those that are served
                rows = {r.api_key: r for r in api_versions(expected, capture["version"]).api_keys}
                for row in api_versions(answer, capture["version"]).api_keys:
                    assert row == rows[row.api_key]
            else:
                assert answer == expected
            await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("version", range(5))
def test_every_version_of_api_versions_is_answered_with_response_header_0(version: int) -> None:
    async def scenario() -> None:
        body = wire.encode(ApiVersionsRequest(client_software_name="x", client_software_version="1"), version)
        async with running_server() as (_, broker, _controller):
            client = await RawClient.connect(broker)
            response = api_versions(await client.call(request(version, 7, body)), version)
            await client.close()
        assert response.error_code == 0
        assert (18, 0, 4) in [(r.api_key, r.min_version, r.max_version) for r in response.api_keys]
        supported = [f.name for f in response.supported_features]
        if version == 3:
            assert supported == ["metadata.version"]
        if version == 4:
            assert "transaction.version" in supported
        if version >= 3:
            assert response.finalized_features_epoch == 36
            assert [f.name for f in response.finalized_features] == ["kraft.version", "metadata.version"]

    asyncio.run(scenario())


def test_pipelined_requests_are_answered_in_order_however_they_are_cut() -> None:
    async def scenario() -> None:
        stream = b"".join(framed(request(correlation_id=i)) for i in range(200))
        async with running_server() as (_, broker, _controller):
            for step in (1, 3, 7, 100, len(stream)):
                client = await RawClient.connect(broker)
                for start in range(0, len(stream), step):
                    client.send(stream[start : start + step])
                    if step < 7:
                        await asyncio.sleep(0)
                order = [int.from_bytes((await client.frame())[:4]) for _ in range(200)]
                assert order == list(range(200))
                await client.close()

    asyncio.run(scenario())


def test_a_request_that_waits_holds_back_the_answers_behind_it_but_no_other_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        gate = asyncio.Event()
        answer_now = dispatching.handler_of(18)

        def handler(context: Any, request: Any) -> Any:
            async def later() -> Any:
                await gate.wait()
                return answer_now(context, request)

            return later() if context.correlation_id == 1 else answer_now(context, request)

        monkeypatch.setattr(dispatching, "handler_of", lambda key: handler)
        async with running_server() as (_, broker, _controller):
            waiting, other = await RawClient.connect(broker), await RawClient.connect(broker)
            waiting.send(framed(request(correlation_id=1)) + framed(request(correlation_id=2)))
            assert (await other.call(request(correlation_id=5)))[:4] == b"\0\0\0\x05"
            assert not waiting.reader._buffer  # type: ignore[attr-defined]
            gate.set()
            assert [(await waiting.frame())[3], (await waiting.frame())[3]] == [1, 2]
            await waiting.close()
            await other.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("is_async", [False, True])
def test_an_exception_in_a_handler_is_an_unknown_server_error_and_the_connection_lives_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    async def scenario() -> None:
        answer_now = dispatching.handler_of(18)

        async def fail_later() -> Any:
            raise RuntimeError("planned")

        def handler(context: Any, request: Any) -> Any:
            if context.correlation_id != 1:
                return answer_now(context, request)
            if is_async:
                return fail_later()
            raise RuntimeError("planned")

        monkeypatch.setattr(dispatching, "handler_of", lambda key: handler)
        async with running_server() as (_, broker, _controller):
            client = await RawClient.connect(broker)
            assert api_versions(await client.call(request(correlation_id=1)), 0).error_code == -1
            assert api_versions(await client.call(request(correlation_id=2)), 0).error_code == 0
            await client.close()

    asyncio.run(scenario())
    assert "ApiVersionsRequest v0" in caplog.text
    assert "planned" in caplog.text


@pytest.mark.parametrize("is_async", [False, True])
def test_a_handler_may_refuse_at_once_or_later_and_the_connection_is_closed_without_an_answer(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, is_async: bool
) -> None:
    async def refuse_later() -> Any:
        await asyncio.sleep(0)
        raise dispatching.Refused("nobody waits for this")

    def handler(context: Any, request: Any) -> Any:
        if is_async:
            return refuse_later()
        raise dispatching.Refused("nobody waits for this")

    async def scenario() -> None:
        monkeypatch.setattr(dispatching, "handler_of", lambda key: handler)
        async with running_server() as (_, broker, _controller):
            client = await RawClient.connect(broker)
            with pytest.raises((asyncio.IncompleteReadError, ConnectionError)):
                await client.call(request())
            await client.close()

    asyncio.run(scenario())
    assert "nobody waits for this" in caplog.text
    assert "Traceback" not in caplog.text


def test_a_client_that_does_not_read_is_not_read_from_and_costs_bounded_memory() -> None:
    async def scenario() -> None:
        async with running_server() as (server, broker, _controller):
            client = await RawClient.connect(broker, receive_buffer_bytes=4096)
            client.transport.pause_reading()
            chunk, sent = framed(request()) * 1000, 0
            while not (server.connections and all(c.read_paused for c in server.connections)):
                assert sent < 5000, "the server goes on reading"
                client.send(chunk)
                sent += 1
                await asyncio.sleep(0)
            async with asyncio.timeout(60):
                while not all(c.write_paused for c in server.connections):
                    await asyncio.sleep(0)
            for _ in range(100):
                client.send(chunk)
            await asyncio.sleep(0.2)
            (connection,) = server.connections
            assert connection.read_paused
            assert connection.transport.get_write_buffer_size() + len(connection.buffer) < 2 << 20
            client.transport.resume_reading()
            expected = (sent + 100) * 1000 * len(framed(await client.frame()))
            async with asyncio.timeout(60):
                await client.reader.readexactly(expected - expected // ((sent + 100) * 1000))
            await client.close()

    asyncio.run(scenario())


def test_connections_above_the_limit_of_an_address_are_closed() -> None:
    async def scenario() -> None:
        async with running_server(max_connections_per_ip=2) as (_, broker, _controller):
            clients = [await RawClient.connect(broker) for _ in range(2)]
            for client in clients:
                await client.call(request())
            assert await (await RawClient.connect(broker)).is_closed()
            await clients[0].close()
            await asyncio.sleep(0.05)
            again = await RawClient.connect(broker)
            await again.call(request())
            for client in (*clients, again):
                await client.close()

    asyncio.run(scenario())


def test_above_max_connections_new_ones_wait_until_one_ends() -> None:
    async def scenario() -> None:
        async with running_server(max_connections=1) as (_, broker, _controller):
            first, second = await RawClient.connect(broker), None
            await first.call(request())
            second = await RawClient.connect(broker)
            waiting = asyncio.create_task(second.call(request(correlation_id=3)))
            await asyncio.sleep(0.2)
            assert not waiting.done()
            await first.close()
            assert (await waiting)[:4] == b"\0\0\0\x03"
            await second.close()

    asyncio.run(scenario())


def test_an_idle_connection_is_closed_and_a_busy_one_is_not() -> None:
    async def scenario() -> None:
        async with running_server(connections_max_idle_ms=1500) as (_, broker, _controller):
            idle, busy = await RawClient.connect(broker), await RawClient.connect(broker)
            closed = asyncio.create_task(idle.is_closed())
            while not closed.done():
                await busy.call(request())
                await asyncio.sleep(0.02)
            assert await closed
            await busy.call(request())
            await busy.close()

    asyncio.run(scenario())


def test_a_request_before_the_server_is_ready_waits_for_it() -> None:
    async def scenario() -> None:
        server = Server(Services(), Limits())
        address = server.bind(Listener("PLAINTEXT", is_controller=False), "127.0.0.1", 0)
        client = await RawClient.connect(address)
        early: Awaitable[bytes] = asyncio.create_task(client.call(request(correlation_id=4)))
        await asyncio.sleep(0.1)
        server.start()
        assert (await early)[:4] == b"\0\0\0\x04"
        await client.close()
        await server.stop()

    asyncio.run(scenario())


def test_stopping_closes_every_connection() -> None:
    async def scenario() -> None:
        async with running_server() as (server, broker, _controller):
            clients = [await RawClient.connect(broker) for _ in range(5)]
            for client in clients:
                await client.call(request())
            await server.stop()
            for client in clients:
                assert await client.is_closed()
                await client.close()

    asyncio.run(scenario())


@pytest.mark.parametrize("waits", [False, True])
def test_a_throttled_client_is_answered_at_once_and_then_muted(monkeypatch: pytest.MonkeyPatch, waits: bool) -> None:
    muted_ms = {1: 600_000, 2: 50}  # by correlation id

    def throttling(frame: Any, services: Any, peer: Any) -> Any:
        (correlation_id,) = struct.unpack_from(">i", frame, 4)
        answer = dispatching.dispatch(frame, services, peer)

        async def later() -> Any:
            await asyncio.sleep(0)
            peer.information.mute_ms = muted_ms.get(correlation_id, 0)
            return answer

        if waits:
            return later()
        peer.information.mute_ms = muted_ms.get(correlation_id, 0)
        return answer

    monkeypatch.setattr("barnabas.broker.connection.dispatch", throttling)

    async def scenario() -> None:
        async with running_server(connections_max_idle_ms=200) as (_, broker, _controller):
            client = await RawClient.connect(broker)
            assert await client.call(request(correlation_id=1))
            client.send(framed(request(correlation_id=5)) * 3)
            assert not await client.is_closed(STILL_OPEN_S)  # and no answer either
            client.writer.close()
            client = await RawClient.connect(broker)
            client.send(b"".join(framed(request(correlation_id=each)) for each in (2, 3, 4)))
            assert [struct.unpack_from(">i", await client.frame())[0] for _ in range(3)] == [2, 3, 4]
            await client.close()

    asyncio.run(scenario())
