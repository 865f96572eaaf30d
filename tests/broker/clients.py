"""A raw client of the protocol, for tests that care about bytes, and a server to point it at."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
from collections.abc import AsyncIterator
from typing import Any

from barnabas import wire
from barnabas.broker.context import FinalizedFeatures, Listener
from barnabas.broker.server import Limits, Server
from barnabas.metadata.image import EMPTY_IMAGE
from barnabas.wire import APIS, Message
from barnabas.wire.messages.header import RequestHeader
from tests.broker.harness import MemoryNode

TIMEOUT_S = 20.0
LEVELS = {"kraft.version": 1, "metadata.version": 21}


class Services(MemoryNode):
    """A node with an empty image, but for the levels of its features."""

    def __init__(self) -> None:
        super().__init__(image=EMPTY_IMAGE)

    @property
    def finalized_features(self) -> FinalizedFeatures:
        return FinalizedFeatures(36, dict(LEVELS))


class RawClient:
    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    @classmethod
    async def connect(cls, address: tuple[str, int], receive_buffer_bytes: int | None = None) -> RawClient:
        sock = socket.socket()
        if receive_buffer_bytes is not None:
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, receive_buffer_bytes)
        sock.setblocking(False)
        await asyncio.get_running_loop().sock_connect(sock, address)
        return cls(*await asyncio.open_connection(sock=sock))

    @property
    def transport(self) -> asyncio.Transport:
        transport = self.writer.transport
        assert isinstance(transport, asyncio.Transport)
        return transport

    def send(self, data: bytes) -> None:
        self.writer.write(data)

    async def frame(self) -> bytes:
        """The next frame without its size."""
        async with asyncio.timeout(TIMEOUT_S):
            (size,) = struct.unpack(">i", await self.reader.readexactly(4))
            return await self.reader.readexactly(size)

    async def call(self, frame: bytes) -> bytes:
        self.send(struct.pack(">i", len(frame)) + frame)
        return await self.frame()

    async def is_closed(self, within_s: float = TIMEOUT_S) -> bool:
        """Whether the server ends the stream without another byte; if it does, this side is closed as well."""
        try:
            async with asyncio.timeout(within_s):
                ended = await self.reader.read(1) == b""
        except ConnectionResetError:
            ended = True
        except TimeoutError:
            ended = False
        if ended:
            await self.close()
        return ended

    async def close(self) -> None:
        self.writer.close()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def running_server(**limits: Any) -> AsyncIterator[tuple[Server, tuple[str, int], tuple[str, int]]]:
    """A server with a broker and a controller listener, and their addresses."""
    server = Server(Services(), Limits(**limits))
    broker = server.bind(Listener("PLAINTEXT", is_controller=False), "127.0.0.1", 0)
    controller = server.bind(Listener("CONTROLLER", is_controller=True), "127.0.0.1", 0)
    server.start()
    try:
        yield server, broker, controller
    finally:
        await server.stop()


async def ask(address: tuple[str, int], request: Message, version: int) -> Any:
    """The answer to one request, on a connection of its own."""
    key = request.schema().key or 0
    api = APIS[key]
    header = RequestHeader(request_api_key=key, request_api_version=version, correlation_id=7, client_id="test")
    client = await RawClient.connect(address)
    try:
        frame = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = await client.call(frame)
    finally:
        client.writer.close()
    return wire.decode(api.response, version, answer[4 + api.response_header_version(version) :])
