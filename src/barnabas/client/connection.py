"""One connection to one node: requests pipelined, answers matched by correlation id.

It does not choose versions, look for nodes or try again: that is for whoever holds it. A peer that breaks the protocol ends
the connection, and everything that waits on it fails with `ConnectionLostError`.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Callable
from typing import Any, NamedTuple, cast

from barnabas import wire
from barnabas.wire import APIS, Api, MalformedError, Message, message_class
from barnabas.wire.frame import FrameBuffer
from barnabas.wire.messages.header import RequestHeader

MAX_RESPONSE_BYTES = 1 << 30
_SIZE = struct.Struct(">i")


class ConnectionLostError(ConnectionError):
    """The connection ended before the answer came; whether the request was carried out is not known."""


class _Waiting(NamedTuple):
    api: Api
    version: int
    answer: asyncio.Future[Any]


class Connection(asyncio.Protocol):
    """`open` makes one; `call` may be used by many tasks at once."""

    def __init__(self, client_id: str, on_lost: Callable[[], None] | None = None) -> None:
        self.client_id = client_id
        self._on_lost = on_lost
        self._buffer = FrameBuffer(MAX_RESPONSE_BYTES)
        self._waiting: dict[int, _Waiting] = {}
        self._next_correlation_id = 0
        self._transport: asyncio.Transport | None = None

    @classmethod
    async def open(cls, host: str, port: int, client_id: str, *, timeout_ms: int = 10_000) -> Connection:
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                _, connection = await loop.create_connection(lambda: cls(client_id), host, port)
        except TimeoutError:
            raise ConnectionLostError(f"{host}:{port} did not take a connection within {timeout_ms} ms") from None
        return connection

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    async def call(self, request: Message, version: int, *, timeout_ms: int = 30_000) -> Any:
        """The response to a request."""
        key = request.schema().key
        if key is None or self._transport is None or self._transport.is_closing():
            raise ConnectionLostError("the connection is closed")
        api = APIS[key]
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=self.client_id
        )
        body = wire.encode(header, api.request_header_version(version)) + wire.encode(request, version)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = _Waiting(api, version, answer)
        self._transport.write(_SIZE.pack(len(body)) + body)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                return await answer
        finally:
            self._waiting.pop(correlation_id, None)

    def close(self) -> None:
        if self._transport is not None:
            self._transport.close()

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def data_received(self, data: bytes) -> None:
        self._buffer.feed(data)
        try:
            while (frame := self._buffer.next_frame()) is not None:
                self._answer(bytes(frame))
        except MalformedError as error:
            self._fail(ConnectionLostError(f"the peer broke the protocol: {error}"))
            self.close()

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(
            ConnectionLostError(f"the connection was lost: {error}" if error else "the peer closed the connection")
        )
        if self._on_lost is not None:
            self._on_lost()

    def _answer(self, frame: bytes) -> None:
        if len(frame) < 4:
            raise MalformedError("a response without a correlation id")
        waiting = self._waiting.get(_SIZE.unpack_from(frame)[0])
        if waiting is None:
            return  # its caller has stopped waiting
        api, version, answer = waiting
        _, position = wire.decode_from("ResponseHeader", api.response_header_version(version), frame, 0)
        response, _ = wire.decode_from(message_class(api.response), version, frame, position)
        if not answer.done():
            answer.set_result(response)

    def _fail(self, error: ConnectionLostError) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if not each.answer.done():
                each.answer.set_exception(error)
