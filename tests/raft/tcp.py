"""A raft driver on a TCP port, for tests beside Apache Kafka: just enough of a server and a client for it."""

from __future__ import annotations

import asyncio
import struct
from typing import Any

from barnabas import wire
from barnabas.raft import RaftDriver
from barnabas.raft.voters import Node
from barnabas.wire import APIS, Message
from barnabas.wire.frame import encode_response
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.header import RequestHeader
from tests.raft.simulation import LISTENER, VERSIONS

_SIZE = struct.Struct(">i")


class TcpTransport:
    """One connection for each request: slow, and simple."""

    def __init__(self) -> None:
        self.sent: list[tuple[Node, Message]] = []

    async def send(self, destination: Node, request: Message) -> Message:
        self.sent.append((destination, request))
        key = request.schema().key
        assert key is not None
        version, api = VERSIONS[key], APIS[key]
        header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=1, client_id="barnabas")
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        reader, writer = await asyncio.open_connection(destination.host, destination.port)
        try:
            writer.write(_SIZE.pack(len(frame)) + frame)
            size = _SIZE.unpack(await reader.readexactly(4))[0]
            answer = await reader.readexactly(size)
        except asyncio.IncompleteReadError as error:
            raise ConnectionError("closed") from error
        finally:
            writer.close()
        found: Message = wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
        return found


class TcpServer:
    """Answers what the driver answers, and ApiVersions."""

    def __init__(self, driver: RaftDriver, host: str, port: int) -> None:
        self._driver = driver
        self._address = (host, port)
        self._server: asyncio.Server | None = None
        self._tasks: set[asyncio.Task[Any]] = set()

    async def start(self) -> None:
        self._server = await asyncio.start_server(self._serve, *self._address)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
            for task in list(self._tasks):
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while True:
                size = _SIZE.unpack(await reader.readexactly(4))[0]
                await self._answer(await reader.readexactly(size), writer)
        except (asyncio.IncompleteReadError, ConnectionError, wire.KafkaError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _answer(self, frame: bytes, writer: asyncio.StreamWriter) -> None:
        key, version = struct.unpack_from(">hh", frame)
        api = APIS[key]
        header, position = wire.decode_from(RequestHeader, api.request_header_version(version), frame, 0)
        if key == 18:
            response: Message = api_versions()
            version = min(version, 4)
        else:
            request = wire.decode(api.request, version, frame[position:])
            response = await self._driver.handle(request, version, LISTENER)
        writer.writelines(encode_response(api, version, header.correlation_id, response))


def api_versions() -> ApiVersionsResponse:
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=key, min_version=0, max_version=version)
            for key, version in sorted(VERSIONS.items())
        ],
        supported_features=[
            ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
        ],
    )
