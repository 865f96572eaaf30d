"""One client's connection: reads frames, passes them to `dispatch`, writes responses in the order of the requests.

One request is in progress at a time; later ones wait as bytes. Reading pauses while too many bytes wait or while the
client does not read its responses. A connection answers only a few requests in one turn of the event loop, so that a
client that sends very many does not delay the others. After a response that throttles the client, the connection is
muted for the throttle time: nothing is read, as in Kafka. A frame that cannot be decoded closes the connection with one
log line.
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
from barnabas.slices import TURN_S
from barnabas.storage import FileRange, StorageError
from barnabas.wire.errors import MalformedError
from barnabas.wire.frame import FrameBuffer

if TYPE_CHECKING:
    from barnabas.broker.server import Endpoint

_log = logging.getLogger(__name__)

MAX_WAITING_BYTES = 1 << 20  # limit on bytes waiting behind the request in progress
MAX_FRAMES_PER_TURN = 8
MAX_JOINED_BYTES = 1 << 16  # a larger response has records, which are not copied again
MAX_STREAMED_BYTES = 1 << 22  # of a response, read ahead of the client


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
        self._is_next_turn_due = False  # requests wait for the connection's next turn
        self._writable: asyncio.Future[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self.transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """True while the node waits for the client: for a request, or for the client to read a response."""
        is_waiting = self.under_way is None and not self._is_next_turn_due and self._muted is None
        return is_waiting or self.write_paused

    # --- callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.information.port = (transport.get_extra_info("peername") or (self.host, 0))[1]
        self.endpoint.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        self.closing = self.information.closed = True
        if self.under_way is not None:
            self.under_way.cancel()
        if self._muted is not None:
            self._muted.cancel()
        self.endpoint.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        return self.buffer.room()

    def buffer_updated(self, size: int) -> None:
        self.last_active_s = self.endpoint.loop.time()
        self.buffer.received(size)
        if self._may_serve():
            self._serve()
        elif len(self.buffer) > MAX_WAITING_BYTES:
            self._pause_reading()

    def pause_writing(self) -> None:
        self.write_paused = True
        self._pause_reading()

    def resume_writing(self) -> None:
        self.write_paused = False
        self.last_active_s = self.endpoint.loop.time()
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        if self._may_serve():
            self._serve()

    # --- requests, one after another

    def _may_serve(self) -> bool:
        waits = self.under_way is not None or self._muted is not None or self._is_next_turn_due
        return not waits and not self.write_paused and not self.closing

    def _serve(self) -> None:
        """Answer the requests received so far, until one has to wait or the turn ends."""
        endpoint = self.endpoint
        clock = endpoint.loop.time
        until = clock() + TURN_S
        for _ in range(MAX_FRAMES_PER_TURN):
            if self.closing:
                return
            try:
                frame = self.buffer.next_frame()
                if frame is None:
                    self._resume_reading()
                    return
                answer = dispatch(frame, endpoint.services, self.peer)
            except (Refused, MalformedError) as error:
                self.refuse(str(error))
                return
            if answer is not None:
                if not isinstance(answer, list) or _has_stored(answer):
                    self.under_way = endpoint.loop.create_task(self._finish(answer))
                    return
                self._write(answer)
                if self.information.mute_ms:
                    self._mute()
                    return
                if self.write_paused:
                    return
            if clock() >= until:
                break
        self._is_next_turn_due = True
        endpoint.loop.call_soon(self._serve_on)

    def _serve_on(self) -> None:
        self._is_next_turn_due = False
        if self._may_serve():
            self._serve()

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
        if self.information.mute_ms:
            self._mute()
        if self._may_serve():
            self._serve()

    def _mute(self) -> None:
        """Stop reading for the throttle time that the last handler has set."""
        mute_ms, self.information.mute_ms = self.information.mute_ms, 0
        if not self.closing:
            self._muted = self.endpoint.loop.call_later(mute_ms / 1000, self._unmute)
            self._pause_reading()

    def _unmute(self) -> None:
        self._muted = None
        self.last_active_s = self.endpoint.loop.time()
        if self._may_serve():
            self._serve()

    def _write(self, pieces: Pieces) -> None:
        if sum(map(len, pieces)) > MAX_JOINED_BYTES:
            self.transport.writelines(pieces)
        else:
            self.transport.write(b"".join(pieces))

    async def _stream(self, pieces: Sequence[Any]) -> None:
        """Write a response with records that are still on disk, no faster than the client reads it."""
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
                    self.refuse(f"a response cannot be completed: {error}")
                    return
                if len(data) != chunk.size:
                    self.refuse(f"a response cannot be completed: {chunk.file.path} was truncated")
                    return
                self.transport.writelines([*ready, data])
                ready = []
                if self.transport.get_write_buffer_size() > MAX_STREAMED_BYTES and not self.closing:
                    self._writable = self.endpoint.loop.create_future()
                    await self._writable
                if self.closing:
                    return
        self.transport.writelines(ready)

    def refuse(self, why: str) -> None:
        _log.warning("closing the connection from %s on %s: %s", self.host, self.endpoint.listener.name, why)
        self.close()

    def close(self) -> None:
        self.closing = True
        if self.write_paused:
            self.transport.abort()  # close() would wait until the client has read everything written
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
    """Return the bytes of the chunk. What is not in the page cache is read in a thread."""
    data = chunk.read_cached()
    return await asyncio.to_thread(chunk.file.read, chunk.size, chunk.position) if data is None else data
