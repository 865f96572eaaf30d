"""Peers that are not good nodes: scripted servers on a free port, one script for each connection they take."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable

from barnabas import wire
from barnabas.wire import APIS, Message
from barnabas.wire.messages.api_versions import ApiVersionsResponse
from barnabas.wire.messages.metadata import MetadataResponse

Script = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Asked:
    """A request as the peer reads it."""

    def __init__(self, frame: bytes) -> None:
        self.key, self.version, self.correlation_id = struct.unpack_from(">hhi", frame)
        api = APIS[self.key]
        self.name = api.name
        _, position = wire.decode_from("RequestHeader", api.request_header_version(self.version), frame, 0)
        self.request, _ = wire.decode_from(api.request, self.version, frame, position)

    def answer(self, response: Message, *, version: int | None = None, correlation_id: int | None = None) -> bytes:
        version = self.version if version is None else version
        header = struct.pack(">i", self.correlation_id if correlation_id is None else correlation_id)
        header += b"\0" * APIS[self.key].response_header_version(version)
        return framed(header + wire.encode(response, version))


def framed(body: bytes) -> bytes:
    return struct.pack(">i", len(body)) + body


async def read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = struct.unpack(">i", await reader.readexactly(4))
    return await reader.readexactly(size)


async def read_request(reader: asyncio.StreamReader) -> Asked:
    return Asked(await read_frame(reader))


def ranges(**versions: tuple[int, int]) -> ApiVersionsResponse:
    """What a node serves, by the names of APIs; ApiVersions itself without being told."""
    keys = {api.name: key for key, api in APIS.items()}
    rows = {"ApiVersions": (0, 4)} | versions
    return ApiVersionsResponse(
        api_keys=[
            ApiVersionsResponse.ApiVersion(api_key=keys[name], min_version=first, max_version=last)
            for name, (first, last) in rows.items()
        ]
    )


def one_broker(port: int, *topics: MetadataResponse.MetadataResponseTopic, node_id: int = 1) -> MetadataResponse:
    broker = MetadataResponse.MetadataResponseBroker(node_id=node_id, host="127.0.0.1", port=port)
    return MetadataResponse(brokers=[broker], controller_id=node_id, cluster_id="scripted", topics=list(topics))


@contextlib.asynccontextmanager
async def peer(script: Script, tls: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """The port of a server that runs the script for each connection, and closes it at the script's end."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        running.add(task)
        try:
            await script(reader, writer)
        except (asyncio.IncompleteReadError, ConnectionError, asyncio.CancelledError):
            pass
        finally:
            running.discard(task)
            writer.close()

    running: set[asyncio.Task[None]] = set()
    server = await asyncio.start_server(serve, "127.0.0.1", 0, ssl=tls)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in running:
            task.cancel()
        await server.wait_closed()
        await asyncio.sleep(0)


def answering(answers: Callable[[Asked], bytes | None]) -> Script:
    """A script that answers each request with bytes, stays silent for b"", and hangs up for None."""

    async def script(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while (data := answers(await read_request(reader))) is not None:
            writer.write(data)
            await writer.drain()

    return script
