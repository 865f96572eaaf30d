"""The HTTP listener of a node: /metrics, /healthz and /readyz, and nothing else.

Its one rule: nobody who connects here can harm the node. A connection has one request, GET or HEAD, with a limit on its
size and its time, and so has its response. There are few connections at a time, and the others are closed at once. All
who ask for metrics at the same time get the same text, which is written in slices between the requests of clients.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Callable
from typing import Final, NamedTuple, cast

from barnabas.broker.metrics.exposition import CONTENT_TYPE
from barnabas.broker.metrics.health import why_not_alive, why_not_ready
from barnabas.broker.metrics.observed import Observed
from barnabas.broker.metrics.render import Renderer
from barnabas.slices import in_slices

_log = logging.getLogger(__name__)

MAX_CONNECTIONS: Final = 16
MAX_HEAD_BYTES: Final = 8192
REQUEST_S: Final = 5.0  # to send a request
RESPONSE_S: Final = 30.0  # to write and take a response
LINGER_S: Final = 0.5  # after a refusal, so that the client reads it before the connection is gone

_END_OF_HEAD: Final = b"\r\n\r\n"
_PLAIN: Final = "text/plain; charset=utf-8"
_REASONS: Final = {
    200: "OK",
    400: "Bad Request",
    404: "Not Found",
    405: "Method Not Allowed",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    503: "Service Unavailable",
}


class Page(NamedTuple):
    """A response."""

    status: int
    body: bytes
    content_type: str = _PLAIN


class MetricsListener:
    """The listener of one node. `observe` returns the node's parts."""

    def __init__(self, observe: Callable[[], Observed], sock: socket.socket) -> None:
        self._observe = observe
        self._socket = sock
        self._renderer = Renderer()
        self._server: asyncio.Server | None = None
        self._writing: asyncio.Task[bytes] | None = None
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
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])

    async def page(self, path: str) -> Page:
        node = self._observe()
        if path == "/metrics":
            return Page(200, await self._metrics(), CONTENT_TYPE)
        if path in ("/healthz", "/readyz"):
            why = why_not_alive(node) if path == "/healthz" else why_not_ready(node)
            return Page(200, b"ok\n") if why is None else Page(503, f"{why}\n".encode(errors="replace"))
        return Page(404, b"there are /metrics, /healthz and /readyz\n")

    async def _metrics(self) -> bytes:
        """Return the metrics. Requests that come while they are being written get the same ones."""
        if self._writing is None:
            self._writing = asyncio.ensure_future(in_slices(self._renderer.render(self._observe())))
            self._writing.add_done_callback(self._written)
        return await asyncio.shield(self._writing)

    def _written(self, task: asyncio.Task[bytes]) -> None:
        self._writing = None
        if not task.cancelled():
            task.exception()  # raised to those who wait for it


class HttpConnection(asyncio.Protocol):
    """One connection, for one request."""

    def __init__(self, listener: MetricsListener) -> None:
        self._listener = listener
        self._head = b""
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
        self._head += data
        if _END_OF_HEAD in self._head[:MAX_HEAD_BYTES]:
            self._is_asked = True
            self._transport.pause_reading()
            self._end_after(RESPONSE_S)
            self._answering = asyncio.get_running_loop().create_task(self._answer())
        elif len(self._head) >= MAX_HEAD_BYTES:
            self._refuse(Page(431, f"a request may have {MAX_HEAD_BYTES} bytes\n".encode()))

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

    async def _answer(self) -> None:
        method, _, rest = self._head.partition(b"\r\n")[0].partition(b" ")
        target, _, version = rest.partition(b" ")
        if not version.startswith(b"HTTP/1.") or not target.startswith(b"/"):
            self._refuse(Page(400, b"this is no request of HTTP/1\n"))
        elif method not in (b"GET", b"HEAD"):
            self._refuse(Page(405, b"use GET\n"))
        else:
            try:
                page = await self._listener.page(target.partition(b"?")[0].decode("latin-1"))
            except Exception:
                _log.exception("a request to the metrics listener failed")
                page = Page(500, b"internal error; the log of the node has it\n")
            self._write(page, with_body=method == b"GET")
            self._transport.close()  # after everything is sent

    def _refuse(self, page: Page) -> None:
        """Answer and close a little later: closing with unread input would discard the answer."""
        self._is_asked = True
        self._head = b""
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
            lines.append("Allow: GET, HEAD")
        head = "\r\n".join(lines).encode() + _END_OF_HEAD
        self._transport.write(head + page.body if with_body else head)
