"""One client's connection: bytes in, frames to `dispatch`, answers out in the order of the requests.

One request is under way at a time; the others wait as bytes, and reading stops when too many wait or when the client does
not take its answers. A frame that cannot be read closes the connection with one log line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable
from typing import TYPE_CHECKING, cast

from barnabas.broker.context import ClientInformation, Peer
from barnabas.broker.dispatch import Pieces, Refused, dispatch
from barnabas.security.acl import host_text
from barnabas.security.principal import ANONYMOUS
from barnabas.wire.errors import MalformedError
from barnabas.wire.frame import FrameBuffer

if TYPE_CHECKING:
    from barnabas.broker.server import Endpoint

log = logging.getLogger(__name__)

WAITING_BYTES_MAX = 1 << 20  # what may pile up behind the request that is under way


class Connection(asyncio.Protocol):
    """Created by `broker.server` for each socket that it accepts."""

    def __init__(self, endpoint: Endpoint, host: str) -> None:
        self.endpoint = endpoint
        self.host = host
        self.information = ClientInformation()
        self.peer = Peer(host_text(host), ANONYMOUS, endpoint.listener, self.information)
        self.last_active_s = endpoint.loop.time()
        self.buffer = FrameBuffer(endpoint.limits.request_max_bytes)
        self.under_way: asyncio.Task[None] | None = None
        self.write_paused = False
        self.read_paused = False
        self.closing = False
        self.transport: asyncio.Transport

    # --- the transport's side

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.information.port = (transport.get_extra_info("peername") or (self.host, 0))[1]
        self.endpoint.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.closing = self.information.closed = True
        if self.under_way is not None:
            self.under_way.cancel()
        self.endpoint.closed(self)

    def data_received(self, data: bytes) -> None:
        self.last_active_s = self.endpoint.loop.time()
        self.buffer.feed(data)
        if self.under_way is None and not self.write_paused:
            self._serve()
        elif len(self.buffer) > WAITING_BYTES_MAX:
            self._pause_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self.write_paused = False
        self.last_active_s = self.endpoint.loop.time()
        if self.under_way is None and not self.closing:
            self._serve()

    # --- requests, one after another

    def _serve(self) -> None:
        """Answer what is there, until something has to be waited for."""
        endpoint = self.endpoint
        while not self.closing:
            try:
                frame = self.buffer.next_frame()
                if frame is None:
                    self._resume_reading()
                    return
                answer = dispatch(frame, endpoint.services, self.peer)
            except (Refused, MalformedError) as error:
                self.refuse(str(error))
                return
            if answer is None:
                continue
            if not isinstance(answer, list):
                self.under_way = endpoint.loop.create_task(self._finish(answer))
                return
            self._write(answer)
            if self.write_paused:
                return

    async def _finish(self, answer: Awaitable[Pieces | None]) -> None:
        pieces = await answer
        self.under_way = None
        self.last_active_s = self.endpoint.loop.time()
        if self.closing:
            return
        if pieces is not None:
            self._write(pieces)
        if not self.write_paused:
            self._serve()

    def _write(self, pieces: Pieces) -> None:
        self.transport.write(b"".join(pieces))

    def refuse(self, why: str) -> None:
        log.warning("closing the connection of %s on %s: %s", self.host, self.endpoint.listener.name, why)
        self.close()

    def close(self) -> None:
        self.closing = True
        self.transport.close()

    def _pause_reading(self) -> None:
        if not self.read_paused and not self.closing:
            self.read_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self.read_paused and not self.closing:
            self.read_paused = False
            self.transport.resume_reading()
