"""One client's connection: bytes in, frames to `dispatch`, answers out in the order of the requests.

One request is under way at a time; the others wait as bytes, and reading stops when too many wait or when the client does
not take its answers. A frame that cannot be read closes the connection with one log line.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Sequence
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.context import ClientInformation, Peer
from barnabas.broker.dispatch import Pieces, Refused, dispatch
from barnabas.replicas.reading import StoredRecords
from barnabas.security.acl import host_text
from barnabas.security.principal import ANONYMOUS
from barnabas.storage import FileRange, StorageError
from barnabas.wire.errors import MalformedError
from barnabas.wire.frame import FrameBuffer

if TYPE_CHECKING:
    from barnabas.broker.server import Endpoint

log = logging.getLogger(__name__)

WAITING_BYTES_MAX = 1 << 20  # what may pile up behind the request that is under way
JOINED_BYTES_MAX = 1 << 16  # an answer with more than this is records, which are not copied once more
STREAMED_BYTES_MAX = 1 << 22  # of an answer, what is read before the client has taken it


class Connection(asyncio.BufferedProtocol):
    """Created by `broker.server` for each socket that it accepts."""

    def __init__(self, endpoint: Endpoint, host: str) -> None:
        self.endpoint = endpoint
        self.host = host
        self.information = ClientInformation()
        self.peer = Peer(host_text(host), ANONYMOUS, endpoint.listener, self.information)
        self.last_active_s = endpoint.loop.time()
        self.buffer = FrameBuffer(endpoint.limits.request_max_bytes, endpoint.scratch)
        self.under_way: asyncio.Task[None] | None = None
        self.write_paused = False
        self.read_paused = False
        self.closing = False
        self._writable: asyncio.Future[None] | None = None
        self.transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """Whether it is for the client to do something: to ask, or to take its answer."""
        return self.under_way is None or self.write_paused

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

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer.room()

    def buffer_updated(self, size: int) -> None:
        self.last_active_s = self.endpoint.loop.time()
        self.buffer.received(size)
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
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
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
            if _has_stored(answer):
                self.under_way = endpoint.loop.create_task(self._finish(answer))
                return
            self._write(answer)
            if self.write_paused:
                return

    async def _finish(self, answer: Pieces | Awaitable[Pieces | None]) -> None:
        try:
            pieces = answer if isinstance(answer, list) else await answer
        except Refused as error:
            self.refuse(str(error))
            return
        if pieces is not None and not self.closing:
            if _has_stored(pieces):
                await self._stream(pieces)
            else:
                self._write(pieces)
        self.under_way = None
        self.last_active_s = self.endpoint.loop.time()
        if not self.closing and not self.write_paused:
            self._serve()

    def _write(self, pieces: Pieces) -> None:
        if sum(map(len, pieces)) > JOINED_BYTES_MAX:
            self.transport.writelines(pieces)
        else:
            self.transport.write(b"".join(pieces))

    async def _stream(self, pieces: Sequence[Any]) -> None:
        """Write an answer with records that are still on the disk, no faster than the client takes them."""
        ready: list[Any] = []
        for piece in pieces:
            if not isinstance(piece, StoredRecords):
                ready.append(piece)
                continue
            for chunk in piece.chunks():
                try:
                    data = await _read(chunk)
                except StorageError as error:
                    piece.failed(error)
                    self.refuse(f"an answer cannot be ended: {error}")
                    return
                if len(data) != chunk.size:
                    self.refuse(f"an answer cannot be ended: {chunk.file.path} was cut off")
                    return
                self.transport.writelines([*ready, data])
                ready = []
                if self.transport.get_write_buffer_size() > STREAMED_BYTES_MAX and not self.closing:
                    self._writable = self.endpoint.loop.create_future()
                    await self._writable
                if self.closing:
                    return
        self.transport.writelines(ready)

    def refuse(self, why: str) -> None:
        log.warning("closing the connection of %s on %s: %s", self.host, self.endpoint.listener.name, why)
        self.close()

    def close(self) -> None:
        self.closing = True
        if self.write_paused:
            self.transport.abort()  # a close would wait until the client has taken what is written
        else:
            self.transport.close()

    def _pause_reading(self) -> None:
        if not self.read_paused and not self.closing:
            self.read_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self.read_paused and not self.closing:
            self.read_paused = False
            self.transport.resume_reading()


def _has_stored(pieces: Sequence[object]) -> bool:
    return any(piece.__class__ is StoredRecords for piece in pieces)


async def _read(chunk: FileRange) -> bytes | bytearray:
    """What the disk has to be waited for is read in a thread."""
    data = chunk.read_cached()
    return await asyncio.to_thread(chunk.file.read, chunk.size, chunk.position) if data is None else data
