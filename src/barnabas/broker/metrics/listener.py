"""The HTTP listener of a node's metrics: /metrics, /healthz and /readyz, and nothing else.

All who ask for metrics at the same time get the same text, which is written in slices between the requests of clients.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable

from barnabas.broker.http_listener import HttpListener, HttpRequest, Page
from barnabas.broker.metrics.exposition import CONTENT_TYPE
from barnabas.broker.metrics.health import why_not_alive, why_not_ready
from barnabas.broker.metrics.observed import Observed
from barnabas.broker.metrics.render import Renderer
from barnabas.slices import in_slices


class MetricsListener(HttpListener):
    """The listener of one node. `observe` returns the node's parts."""

    def __init__(self, observe: Callable[[], Observed], sock: socket.socket) -> None:
        super().__init__(sock)
        self._observe = observe
        self._renderer = Renderer()
        self._writing: asyncio.Task[bytes] | None = None

    async def stop(self) -> None:
        await super().stop()
        if self._writing is not None:
            self._writing.cancel()
            await asyncio.wait([self._writing])

    async def page(self, request: HttpRequest) -> Page:
        node, path = self._observe(), request.path
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
