"""A small HTTP listener of a node, for metrics and for faults: one request for each connection, and then it is closed.

Its one rule: nobody who connects here can harm the node. A request has a limit on its size and its time, and so has its
response. There are few connections at a time, and the others are closed at once.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection
from typing import Final, NamedTuple, cast

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 16
MAX_HEAD_BYTES: Final = 8192
MAX_BODY_BYTES: Final = 65536
REQUEST_S: Final = 5.0  # to send a request
RESPONSE_S: Final = 30.0  # to write and take a response
LINGER_S: Final = 0.5  # after a refusal, so that the client reads it before the connection is gone

_END_OF_HEAD: Final = b"\r\n\r\n"
PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    409: "Conflict",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Page(NamedTuple):
    """A response."""

    status: int
    body: bytes
    content_type: str = PLAIN


class HttpRequest(NamedTuple):
    """A request. The names of its headers are in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes = b""


class HttpListener:
    """A listener. A subclass has the pages, and the methods that they take."""

    methods: Collection[str] = ("GET", "HEAD")

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._server: asyncio.Server | None = None
        self.connections: set[HttpConnection] = set()

    @property
    def address(self) -> tuple[str, int]:
        host, port, *_ = self._socket.getsockname()
        return host, port

    async def start(self) -> None:
        loop = asyncio.get_running_loop()
        self._server = await loop.create_server(lambda: HttpConnection(self), sock=self._socket)

    async def stop(self) -> None:
        if self._server is not None:
            self._server.close()
        self._socket.close()
        for connection in tuple(self.connections):
            connection.abort()

    async def page(self, request: HttpRequest) -> Page:
        raise NotImplementedError


class HttpConnection(asyncio.Protocol):
    """One connection, for one request."""

    def __init__(self, listener: HttpListener) -> None:
        self._listener = listener
        self._received = b""
        self._request: HttpRequest | None = None  # while its body is awaited
        self._is_asked = False
        self._deadline: asyncio.TimerHandle | None = None
        self._answering: asyncio.Task[None] | None = None
        self._transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)
        if len(self._listener.connections) >= MAX_CONNECTIONS:
            self._is_asked = True
            self._transport.abort()
            return
        self._listener.connections.add(self)
        self._end_after(REQUEST_S)

    def data_received(self, data: bytes) -> None:
        if self._is_asked:
            return  # one request for each connection; the rest is not read
        self._received += data
        if self._request is None:
            if _END_OF_HEAD in self._received[:MAX_HEAD_BYTES]:
                head, _, self._received = self._received.partition(_END_OF_HEAD)
                self._take_head(head)
            elif len(self._received) >= MAX_HEAD_BYTES:
                self._refuse(Page(431, f"a request may have {MAX_HEAD_BYTES} bytes\n".encode()))
        if self._request is not None and not self._is_asked:
            self._take_body(self._request)

    def connection_lost(self, error: Exception | None) -> None:
        self._listener.connections.discard(self)
        if self._deadline is not None:
            self._deadline.cancel()
        if self._answering is not None:
            self._answering.cancel()

    def abort(self) -> None:
        self._transport.abort()

    def _end_after(self, seconds: float) -> None:
        if self._deadline is not None:
            self._deadline.cancel()
        self._deadline = asyncio.get_running_loop().call_later(seconds, self._transport.abort)

    def _take_head(self, head: bytes) -> None:
        first, *lines = head.decode("latin-1").split("\r\n")
        method, _, rest = first.partition(" ")
        target, _, version = rest.partition(" ")
        methods = self._listener.methods
        if not version.startswith("HTTP/1.") or not target.startswith("/"):
            self._refuse(Page(400, b"this is no request of HTTP/1\n"))
        elif method not in methods:
            self._refuse(Page(405, f"use {', '.join(each for each in methods if each != 'HEAD')}\n".encode()))
        else:
            pairs = (line.partition(":") for line in lines)
            headers = {name.strip().lower(): value.strip() for name, _, value in pairs}
            self._request = HttpRequest(method, target.partition("?")[0], headers)

    def _take_body(self, request: HttpRequest) -> None:
        """Answer when the body is complete. GET and HEAD have none, whatever they say."""
        length = "0" if request.method in ("GET", "HEAD") else request.headers.get("content-length", "0")
        if not (length.isascii() and length.isdigit() and len(length) < 10):
            self._refuse(Page(400, b"Content-Length must be a number\n"))
        elif int(length) > MAX_BODY_BYTES:
            self._refuse(Page(413, f"a body may have {MAX_BODY_BYTES} bytes\n".encode()))
        elif len(self._received) >= int(length):
            self._is_asked = True
            self._transport.pause_reading()
            self._end_after(RESPONSE_S)
            whole = request._replace(body=self._received[: int(length)])
            self._answering = asyncio.get_running_loop().create_task(self._answer(whole))

    async def _answer(self, request: HttpRequest) -> None:
        try:
            page = await self._listener.page(request)
        except Exception:
            _log.exception("a request to %s failed", type(self._listener).__name__)
            page = Page(500, b"internal error; the log of the node has it\n")
        self._write(page, with_body=request.method != "HEAD")
        self._transport.close()  # after everything is sent

    def _refuse(self, page: Page) -> None:
        """Answer and close a little later: closing with unread input would discard the answer."""
        self._is_asked = True
        self._received = b""
        self._write(page)
        self._transport.resume_reading()
        self._end_after(LINGER_S)

    def _write(self, page: Page, *, with_body: bool = True) -> None:
        lines = [
            f"HTTP/1.1 {page.status} {_REASONS[page.status]}",
            f"Content-Type: {page.content_type}",
            f"Content-Length: {len(page.body)}",
            "Cache-Control: no-store",
            "Connection: close",
        ]
        if page.status == 405:
            lines.append(f"Allow: {', '.join(self._listener.methods)}")
        head = "\r\n".join(lines).encode() + _END_OF_HEAD
        self._transport.write(head + page.body if with_body else head)
