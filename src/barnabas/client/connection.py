"""One connection to one node: requests are pipelined, responses are matched by correlation id.

It neither finds nodes nor retries. `open` returns a bare connection, whose caller chooses the version of each request;
`handshake.connect` returns one with negotiated versions that is logged in. If the peer breaks the protocol, the connection is
closed, and everything that waits on it fails with `ConnectionLostError`. If the node throttles this client, requests wait until
it may send again (`throttling`).
"""

from __future__ import annotations

import asyncio
import logging
import os
import socket
import ssl
import struct
import threading
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple, cast

from barnabas import wire
from barnabas.client.errors import ConnectionLostError, NotConnectedError, NotKafkaError, TlsError, UnknownHostError
from barnabas.client.throttling import Throttle, throttle_time_ms
from barnabas.client.versions import NodeVersions, encode_best
from barnabas.config.endpoints import address_text
from barnabas.wire import APIS, Api, ErrorCode, MalformedError, Message, message_class
from barnabas.wire.frame import SCRATCH_BYTES, Frame, FrameBuffer
from barnabas.wire.messages.header import RequestHeader

__all__ = ["Connection", "ConnectionLostError"]

_log = logging.getLogger(__name__)

MAX_RESPONSE_BYTES = 1 << 30
MAX_FIRST_RESPONSE_BYTES = 0x15000000 - 1  # a TLS alert or ASCII text, read as a size, is above this
FIRST_ROOM = 1 << 26  # more than fetch.max.bytes: responses of that size are received without growing the buffer
MAX_ABANDONED = 1 << 16
CLOSE_TIMEOUT_S = 5.0
_SIZE = struct.Struct(">i")
_UNSUPPORTED_VERSION = struct.pack(">h", ErrorCode.UNSUPPORTED_VERSION)
_API_VERSIONS = 18

_FOREIGN = (
    (b"\x15\x03", "TLS; set security.protocol to SSL or SASL_SSL"),
    (b"\x16\x03", "TLS; set security.protocol to SSL or SASL_SSL"),
    (b"HTTP", "HTTP"),
    (b"SSH-", "SSH"),
    (b"-ERR", "Redis"),
    (b"220", "SMTP or FTP"),
)


_of_thread = threading.local()


def _scratch() -> memoryview:
    """Return a buffer that all connections of this thread receive into: each takes its bytes out before the next reads."""
    found: memoryview | None = getattr(_of_thread, "scratch", None)
    if found is None:
        found = _of_thread.scratch = memoryview(bytearray(SCRATCH_BYTES))
    return found


class _Waiting(NamedTuple):
    api: Api
    version: int
    answer: asyncio.Future[Any]
    views: bool


class Connection(asyncio.BufferedProtocol):
    """A connection, made by `open`. Any number of tasks may use `call` at once."""

    def __init__(self, client_id: str, on_lost: Callable[[], None] | None = None, *, address: str = "the peer") -> None:
        self.client_id = client_id
        self.address = address
        self.versions: NodeVersions | None = None
        self.before_call: Callable[[], Awaitable[None]] | None = None  # renews the login if it is due
        self.last_used_s = 0.0
        self.throttle = Throttle()
        self._on_lost = on_lost
        self._scratch = _scratch()
        self._buffer = FrameBuffer(MAX_RESPONSE_BYTES, self._scratch, lambda: FIRST_ROOM)
        self._opening = b""
        self._answers = 0
        self._waiting: dict[int, _Waiting] = {}
        self._abandoned: dict[int, None] = {}
        self._next_correlation_id = 0
        self._transport: asyncio.Transport | None = None
        self._writable: asyncio.Future[None] | None = None
        self._lost = asyncio.get_running_loop().create_future()

    @classmethod
    async def open(
        cls,
        host: str,
        port: int,
        client_id: str,
        *,
        timeout_ms: float = 10_000,
        tls: ssl.SSLContext | None = None,
        host_name: str | None = None,
    ) -> Connection:
        """Connect, without sending anything. Raises `NotConnectedError`, or `TlsError` if TLS fails.

        The certificate of the node must have `host_name`, which is the host unless given.
        """
        loop, address = asyncio.get_running_loop(), address_text(host, port)
        try:
            async with asyncio.timeout(timeout_ms / 1000):
                _, connection = await loop.create_connection(
                    lambda: cls(client_id, address=address),
                    host,
                    port,
                    ssl=tls,
                    server_hostname=host_name if tls is not None else None,
                )
        except TimeoutError:
            raise NotConnectedError(f"{address} did not accept a connection within {timeout_ms:g} ms") from None
        except ssl.SSLError as error:
            raise _tls_error(address, error) from error
        except socket.gaierror as error:
            kind = UnknownHostError if error.errno == socket.EAI_NONAME else NotConnectedError
            raise kind(f"{address}: the name cannot be resolved: {error.strerror or error}") from error
        except OSError as error:
            if tls is not None and isinstance(error, ConnectionError) and not isinstance(error, ConnectionRefusedError):
                ask = "does it speak TLS, or require a client certificate?"
                raise TlsError(f"{address} closed the connection during the TLS handshake: {ask}") from error
            reason = os.strerror(error.errno) if error.errno else str(error)
            raise NotConnectedError(f"{address} cannot be reached: {reason}") from error
        return connection

    @property
    def is_open(self) -> bool:
        return self._transport is not None and not self._transport.is_closing()

    @property
    def in_flight(self) -> int:
        """Number of requests that are sent and not yet answered."""
        return len(self._waiting)

    async def call(
        self,
        request: Message,
        version: int | None = None,
        *,
        timeout_ms: float = 30_000,
        least_version: int = 0,
        feature: str = "",
        on_sent: Callable[[], None] | None = None,
        views: bool = False,
    ) -> Any:
        """Send a request and return the response, in the newest common version unless one is given (`versions.encode_best`).

        `on_sent` is called when the request is written, before it is answered. Raises TimeoutError if no response comes in
        time; a later one is dropped. The timeout begins when the node does not throttle this client any more.
        With `views`, records in a large response are memoryviews of its buffer, which is kept as long as one of them is.
        """
        await self._wait_throttled()
        async with asyncio.timeout(timeout_ms / 1000):
            if self.before_call is not None:
                await self.before_call()
            return await self.exchange(request, version, least_version, feature, on_sent, views)

    async def exchange(
        self,
        request: Message,
        version: int | None = None,
        least_version: int = 0,
        feature: str = "",
        on_sent: Callable[[], None] | None = None,
        views: bool = False,
    ) -> Any:
        """Like `call`, but without a timeout, and without renewing the login first."""
        key, version, body = self._encoded(request, version, least_version, feature)
        await self._wait_throttled()
        await self._wait_writable()
        correlation_id = self._write(key, version, body)
        answer = asyncio.get_running_loop().create_future()
        self._waiting[correlation_id] = _Waiting(APIS[key], version, answer, views)
        if on_sent is not None:
            on_sent()
        try:
            return await answer
        finally:
            if self._waiting.pop(correlation_id, None) is not None and self.is_open:
                self._abandon(correlation_id)

    async def post(self, request: Message, version: int | None = None) -> None:
        """Send a request that has no response: Produce with acks=0."""
        await self._wait_throttled()
        if self.before_call is not None:
            await self.before_call()
        key, version, body = self._encoded(request, version, 0, "")
        await self._wait_writable()
        self._write(key, version, body)

    def close(self) -> None:
        """Close the connection; waiting calls fail. `wait_closed` returns when the socket is closed."""
        if self._transport is not None:
            self._fail(ConnectionLostError(f"the connection to {self.address} was closed on this side"))
            self._transport.close()

    async def wait_closed(self) -> None:
        """Wait until the socket is closed; abort it if the peer does not close TLS or does not read."""
        try:
            async with asyncio.timeout(CLOSE_TIMEOUT_S):
                await asyncio.shield(self._lost)
        except TimeoutError:
            if self._transport is not None:
                self._transport.abort()
            await asyncio.shield(self._lost)

    # --- requests

    def _encoded(
        self, request: Message, version: int | None, least_version: int, feature: str
    ) -> tuple[int, int, bytes]:
        key = request.schema().key
        if key is None:
            raise TypeError(f"{type(request).__name__} is not a request")
        if version is not None:
            return key, version, wire.encode(request, version)
        if self.versions is None:
            raise TypeError("no versions were negotiated on this connection: pass `version`")
        return key, *encode_best(request, self.versions, self.address, least=least_version, feature=feature)

    async def _wait_throttled(self) -> None:
        """Wait until the node may be sent requests. Returns early if the connection is lost."""
        loop = asyncio.get_running_loop()
        while (left_s := self.throttle.left_s(loop.time())) > 0 and not self._lost.done():
            await asyncio.wait([self._lost], timeout=left_s)

    async def _wait_writable(self) -> None:
        while self._writable is not None:
            await asyncio.shield(self._writable)
        if not self.is_open:
            raise NotConnectedError(f"the connection to {self.address} is closed")

    def _write(self, key: int, version: int, body: bytes) -> int:
        assert self._transport is not None
        correlation_id = self._next_correlation_id
        self._next_correlation_id = (correlation_id + 1) & 0x7FFFFFFF
        header = RequestHeader(
            request_api_key=key, request_api_version=version, correlation_id=correlation_id, client_id=self.client_id
        )
        head = wire.encode(header, APIS[key].request_header_version(version))
        self.last_used_s = asyncio.get_running_loop().time()
        self._transport.write(b"".join((_SIZE.pack(len(head) + len(body)), head, body)))
        return correlation_id

    def _abandon(self, correlation_id: int) -> None:
        self._abandoned[correlation_id] = None
        if len(self._abandoned) > MAX_ABANDONED:
            self._break(ConnectionLostError(f"{self.address} did not answer {MAX_ABANDONED} requests"))

    # --- called by the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)

    def pause_writing(self) -> None:
        self._writable = asyncio.get_running_loop().create_future()

    def resume_writing(self) -> None:
        if self._writable is not None:
            self._writable.set_result(None)
            self._writable = None

    def get_buffer(self, sizehint: int) -> memoryview:
        return self._buffer.room()

    def buffer_updated(self, size: int) -> None:
        if self._answers == 0 and len(self._opening) < 4:
            self._opening += self._scratch[: min(size, 8)]
            if (what := foreign_protocol(self._opening)) is not None:
                self._break(NotKafkaError(f"{self.address} does not speak Kafka's protocol but {what}"))
                return
        self._buffer.received(size)
        try:
            while (frame := self._buffer.next_frame()) is not None:
                self._answer(frame)
        except MalformedError as error:
            self._break(ConnectionLostError(f"{self.address} broke the protocol: {error}"))

    def connection_lost(self, error: Exception | None) -> None:
        self._fail(self._loss(error))
        self.resume_writing()
        if not self._lost.done():
            self._lost.set_result(None)
        if self._on_lost is not None:
            self._on_lost()

    def _loss(self, error: Exception | None) -> ConnectionLostError:
        if isinstance(error, ssl.SSLError) and self._answers == 0:
            return _tls_error(self.address, error)
        if error is not None:
            return ConnectionLostError(f"the connection to {self.address} was lost: {error}")
        if self._answers <= 1 and self._waiting:
            asked = next(iter(self._waiting.values())).api.name
            tls = self._transport is not None and self._transport.get_extra_info("sslcontext") is not None
            wants = "a client certificate or SASL" if tls else "TLS or SASL"
            hint = f"does the listener require {wants}, or is it not Kafka?"
            return ConnectionLostError(f"{self.address} closed the connection instead of answering {asked} ({hint})")
        return ConnectionLostError(f"{self.address} closed the connection")

    def _answer(self, frame: Frame) -> None:
        if len(frame) < 4:
            raise MalformedError("a response without a correlation id")
        (correlation_id,) = _SIZE.unpack_from(frame)
        waiting = self._waiting.get(correlation_id)
        if waiting is None:
            if correlation_id not in self._abandoned:
                raise MalformedError(f"a response to request {correlation_id}, which was not sent")
            del self._abandoned[correlation_id]  # its caller has stopped waiting
            return
        api, version, answer, views = waiting
        if not views:
            frame = bytes(frame)
        if api is APIS[_API_VERSIONS] and frame[4:6] == _UNSUPPORTED_VERSION:
            version = 0  # a refused version is always answered in version 0
        _, position = wire.decode_from("ResponseHeader", api.response_header_version(version), frame, 0)
        response, _ = wire.decode_from(message_class(api.response), version, frame, position)
        self._answers += 1
        if time_ms := throttle_time_ms(api, version, response):
            _log.info("%s throttles this client for %d ms", self.address, time_ms)
            self.throttle.extend(time_ms, asyncio.get_running_loop().time())
        if not answer.done():
            answer.set_result(response)

    def _break(self, error: ConnectionLostError) -> None:
        self._fail(error)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: ConnectionLostError) -> None:
        waiting, self._waiting = self._waiting, {}
        for each in waiting.values():
            if not each.answer.done():
                each.answer.set_exception(error)


def foreign_protocol(opening: bytes) -> str | None:
    """Name the protocol of a peer's first bytes, or return None if they may be a Kafka response.

    >>> foreign_protocol(b"HTTP/1.1 400 Bad Request")
    'HTTP'
    >>> foreign_protocol(bytes([0, 0, 1, 26, 0, 0, 0, 0]))
    """
    if len(opening) < 4 or 0 <= _SIZE.unpack_from(opening)[0] <= MAX_FIRST_RESPONSE_BYTES:
        return None
    known = next((name for start, name in _FOREIGN if opening.startswith(start)), None)
    return known or f"something that begins with {opening[:8]!r}"


def _tls_error(address: str, error: ssl.SSLError) -> TlsError:
    if isinstance(error, ssl.SSLCertVerificationError):
        return TlsError(f"the certificate of {address} is not accepted: {error.verify_message}")
    _, is_alert, alert = (error.reason or "").partition("_ALERT_")
    if is_alert:
        return TlsError(f"{address} refused the TLS handshake: {alert.replace('_', ' ').lower()}")
    reason = (error.reason or str(error)).replace("_", " ").lower()
    if error.reason in ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING"):
        reason += "; does it speak TLS?"
    return TlsError(f"TLS with {address} failed: {reason}")
