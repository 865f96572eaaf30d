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
import ssl
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, cast

from barnabas.broker.context import ClientInformation, Peer
from barnabas.broker.dispatch import Dropped, Pieces, Refused, Unfinished, dispatch
from barnabas.broker.login import TIMEOUT_S as LOGIN_TIMEOUT_S
from barnabas.broker.login import Login
from barnabas.broker.request_memory import MAX_READ_BYTES
from barnabas.replicas.reading import CHUNK_BYTES, StoredRecords
from barnabas.security.acl import host_text
from barnabas.security.principal import ANONYMOUS
from barnabas.security.tls.certificate_principal import CertificateError
from barnabas.slices import TURN_S
from barnabas.storage import FileRange, StorageError
from barnabas.wire.errors import MalformedError
from barnabas.wire.frame import FrameBuffer

if TYPE_CHECKING:
    from barnabas.broker.listener_security import ListenerSecurity
    from barnabas.broker.server import Endpoint

_log = logging.getLogger(__name__)

MAX_WAITING_BYTES = 1 << 20  # limit on bytes waiting behind the request in progress
MAX_FRAMES_PER_TURN = 8
MAX_JOINED_BYTES = 1 << 16  # a larger response has records, which are not copied again
MAX_WRITTEN_BYTES = 1 << 21  # of a response at once; a larger one is written in chunks
MAX_STREAMED_BYTES = 1 << 22  # of a response, written ahead of the client
SMALL_CHUNK_BYTES = 1 << 16  # of a response, read at a time while memory for responses is short


class Connection(asyncio.BufferedProtocol):
    """Created by `broker.server` for each socket that it accepts."""

    def __init__(self, endpoint: Endpoint, host: str) -> None:
        self.endpoint = endpoint
        self.host = host
        self.information = ClientInformation()
        self.peer = Peer(host_text(host), ANONYMOUS, endpoint.listener, self.information)
        self.last_active_s = endpoint.loop.time()
        self.guard = endpoint.server.memory
        self.buffer = FrameBuffer(endpoint.limits.request_max_bytes, endpoint.scratch, self.guard.first_room)
        self.frame_bytes = 0  # of the request in progress
        self._login: Login | None = None
        self._login_timeout: asyncio.TimerHandle | None = None
        self.under_way: asyncio.Task[None] | None = None
        self.write_paused = False
        self.read_paused = False
        self.closing = False
        self._answers_no_more = False
        self._is_at_end = False  # the client sends nothing more
        self.closed_by = "client"  # who or what closed the connection, for its metric
        self._counters = endpoint.counters
        self._is_next_turn_due = False  # requests wait for the connection's next turn
        self._writable: asyncio.Future[None] | None = None
        self._muted: asyncio.TimerHandle | None = None
        self._waits_for_memory = False
        self._is_counted = False
        self._unwritten_bytes = 0  # of the response that is being written in chunks
        self._unfinished: Unfinished | None = None
        self.transport: asyncio.Transport

    @property
    def is_idle(self) -> bool:
        """True while the node waits for the client: for a request, or for the client to read a response."""
        is_waiting = self.under_way is None and not self._is_next_turn_due and self._muted is None
        return is_waiting or self.write_paused

    @property
    def is_receiving(self) -> bool:
        """True while only the client can finish the request that it has begun to send."""
        return self._may_serve() and self.buffer.missing_bytes > 0

    # --- callbacks of the transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.Transport, transport)
        self.information.port = (transport.get_extra_info("peername") or (self.host, 0))[1]
        self._authenticate(self.endpoint.security)
        self.endpoint.opened(self)

    def connection_lost(self, error: Exception | None) -> None:
        """End, or do first what was received whole: TLS does not stay open for that after `eof_received`."""
        is_ended_by_client = not self.closing and not isinstance(error, ConnectionError)
        if is_ended_by_client and self.endpoint.security.tls is not None and self.buffer.has_frame:
            self._is_at_end = True
            self.transport = _Gone(self._end)
            self.resume_writing()
        else:
            self._end()

    def _end(self) -> None:
        if self.information.closed:
            return
        self.closing = self.information.closed = True
        self.buffer.clear()
        if self._login_timeout is not None:
            self._login_timeout.cancel()
        if self.under_way is not None:
            # After its first step, which may be due only now: a request that was received is begun, as in Kafka.
            self.endpoint.loop.call_soon(self.under_way.cancel)
        if self._muted is not None:
            self._muted.cancel()
        if self._unfinished is None or self._unfinished.work.done():
            self.guard.forget(self)
        else:  # it still needs the request
            self.guard.update(self)
            self._unfinished.work.add_done_callback(lambda _: self.guard.forget(self))
        self.endpoint.closed(self)

    def get_buffer(self, sizehint: int) -> memoryview:
        room = self.buffer.room()
        requests = self.guard.requests
        return room[:MAX_READ_BYTES] if requests.is_short and requests.ahead is not self else room

    def buffer_updated(self, size: int) -> None:
        self.last_active_s = self.endpoint.loop.time()
        self.buffer.received(size)
        self._counters.incoming_bytes += size
        if not self._may_serve() and len(self.buffer) > MAX_WAITING_BYTES:
            self._pause_reading()
        self._go_on()

    def eof_received(self) -> bool:
        """Keep the connection until the requests that were received whole are done, as in Kafka: a producer with acks=0
        sends its records and disconnects. TLS connections cannot be kept open: see `connection_lost`.
        """
        self._is_at_end = self.buffer.has_frame and self.endpoint.security.tls is None
        return self._is_at_end

    def pause_writing(self) -> None:
        self.write_paused = True
        self._pause_reading()
        self.guard.unread(self, self.transport.get_write_buffer_size() + self._unwritten_bytes)

    def resume_writing(self) -> None:
        self.write_paused = False
        self.last_active_s = self.endpoint.loop.time()
        self.guard.unread(self, self._unwritten_bytes)
        if self._writable is not None and not self._writable.done():
            self._writable.set_result(None)
        self._go_on()

    # --- authentication

    def _authenticate(self, security: ListenerSecurity) -> None:
        """Take the principal from the client's certificate, or expect a login."""
        if security.sasl is not None:
            self._login = Login(security.sasl, self.endpoint.services, self.peer, self.buffer, self._counters)
            self.information.login = self._login
            self._login_timeout = self.endpoint.loop.call_later(LOGIN_TIMEOUT_S, self._check_login, self._login)
        elif security.tls is not None:
            tls: ssl.SSLObject = self.transport.get_extra_info("ssl_object")
            try:
                self.peer = self.peer._replace(principal=security.principal_of(tls.getpeercert(binary_form=True)))
            except CertificateError as error:
                self._counters.failed_logins += 1
                self.refuse(f"the client's certificate has no principal: {error}")
            else:
                self._counters.successful_logins += 1

    def _check_login(self, login: Login) -> None:
        if login.session is None:
            self.refuse(f"no login within {LOGIN_TIMEOUT_S:g} s")

    # --- requests, one after another

    def _may_serve(self) -> bool:
        waits = self.under_way is not None or self._muted is not None or self._is_next_turn_due
        return not waits and not self.write_paused and not self.closing and not self._answers_no_more

    def _go_on(self) -> None:
        """Serve if nothing prevents it, and count the memory that is held afterwards."""
        if self._may_serve():
            self._serve()
        if self.buffer.allocated_bytes or self.frame_bytes or self._is_counted:
            self._count_memory()

    def _count_memory(self) -> None:
        if not self.information.closed:
            self._is_counted = bool(self.buffer.allocated_bytes or self.frame_bytes)
            self.guard.update(self)

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
                    if self._is_at_end:
                        self.close("client")
                    else:
                        self._resume_reading()
                    return
                login = self._login
                answer = dispatch(frame, endpoint.services, self.peer) if login is None else login.receive(frame)
            except (Refused, MalformedError) as error:
                self.refuse(str(error))
                return
            if answer is not None:
                if not isinstance(answer, list) or _is_streamed(answer):
                    self.frame_bytes = len(frame)
                    self._unfinished = answer if isinstance(answer, Unfinished) else None
                    self.under_way = endpoint.loop.create_task(self._finish(answer))
                    return
                self._write(answer)
                if self.information.time is not None:
                    self._settle_time()
            if self.information.mute_ms:  # also without an answer, to a producer with acks=0
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
        self._go_on()

    async def _finish(self, answer: Pieces | Awaitable[Pieces | None]) -> None:
        try:
            pieces = answer if isinstance(answer, list) else await answer
        except Refused as error:
            if error.answer is not None and not self.closing:
                self._write(error.answer)
            self.refuse(str(error), logging.INFO if isinstance(error, Dropped) else logging.WARNING)
            return
        if pieces is not None and not self.closing:
            if _is_streamed(pieces):
                time = self.information.time
                await (self._stream(pieces) if time is None else time.of(self._stream(pieces)))
            else:
                self._write(pieces)
        if self.information.time is not None:
            self._settle_time()
        self.under_way = self._unfinished = None
        self.frame_bytes = 0
        self.last_active_s = self.endpoint.loop.time()
        if self._answers_no_more:
            self.close("stop")
        if self.information.mute_ms:
            self._mute()
        self._go_on()

    def _mute(self) -> None:
        """Stop reading for the throttle time that the last handler has set."""
        mute_ms, self.information.mute_ms = self.information.mute_ms, 0
        if not self.closing:
            self._counters.mutes += 1
            self._counters.muted_ms += mute_ms
            self._muted = self.endpoint.loop.call_later(mute_ms / 1000, self._unmute)
            self._pause_reading()

    def _unmute(self) -> None:
        self._muted = None
        self.last_active_s = self.endpoint.loop.time()
        self._go_on()

    def _settle_time(self) -> None:
        """End the measured time of a request that is answered, if there is one."""
        time, self.information.time = self.information.time, None
        if time is not None:
            time.pause()
            time.settle(self.endpoint.services.monotonic_ms())

    def _write(self, pieces: Pieces) -> None:
        if self.information.time is not None:
            self.information.time.begin()
        size = sum(map(len, pieces))
        self._counters.outgoing_bytes += size
        if size > MAX_JOINED_BYTES:
            self.transport.writelines(pieces)
        else:
            self.transport.write(b"".join(pieces))

    async def _stream(self, pieces: Sequence[Any]) -> None:
        """Write a large response in chunks, no faster than the client reads it. Others have their turn in between."""
        if isinstance(self.transport, _Gone):
            return  # reading records from disk would be for nothing
        ready: list[Any] = []
        ready_bytes = 0
        self._counters.outgoing_bytes += sum(map(len, pieces))
        self._unwritten_bytes = sum(len(piece) for piece in pieces if not isinstance(piece, StoredRecords))
        for piece in pieces:
            position = 0
            while position < len(piece):
                data: bytes | bytearray | memoryview
                if isinstance(piece, StoredRecords):
                    chunk = piece.part(position, self._chunk_bytes())
                    try:
                        data = await _read(chunk)
                    except StorageError as error:
                        piece.failed(error)
                        self.refuse(f"a response cannot be completed: {error}")
                        return
                    if len(data) != chunk.size:
                        self.refuse(f"a response cannot be completed: {chunk.file.path} was truncated")
                        return
                else:
                    data = piece if len(piece) <= CHUNK_BYTES else memoryview(piece)[position : position + CHUNK_BYTES]
                    self._unwritten_bytes -= len(data)
                position += len(data)
                ready.append(data)
                ready_bytes += len(data)
                if isinstance(piece, StoredRecords) or ready_bytes >= CHUNK_BYTES:
                    self.transport.writelines(ready)
                    ready, ready_bytes = [], 0
                    if self.write_paused and not self.closing:
                        await self._until_read()
                    elif not isinstance(piece, StoredRecords):
                        await asyncio.sleep(0)
                    if self.closing:
                        return
        self.transport.writelines(ready)
        self.guard.unread(self, self.transport.get_write_buffer_size() if self.write_paused else 0)

    def _chunk_bytes(self) -> int:
        return SMALL_CHUNK_BYTES if self.guard.is_response_memory_short else CHUNK_BYTES

    async def _until_read(self) -> None:
        """Wait if the client has too much to read."""
        unread = self.transport.get_write_buffer_size()
        self.guard.unread(self, unread + self._unwritten_bytes)
        if unread > MAX_STREAMED_BYTES or self.guard.is_response_memory_short:
            self._writable = self.endpoint.loop.create_future()
            await self._writable

    def refuse(self, why: str, level: int = logging.WARNING) -> None:
        text = "closing the connection from %s on %s: %s"
        self.endpoint.server.lines.log(_log, level, text, self.host, self.endpoint.listener.name, why)
        self.close()

    def close_after_answer(self) -> None:
        """Close when the request in progress is answered, or now if there is none. Requests behind it are dropped."""
        self._answers_no_more = True
        if self.under_way is None:
            self.close("stop")

    def close(self, why: str = "error", *, at_once: bool = False) -> None:
        if not self.closing:
            self.closed_by = why
        self.closing = True
        if self.write_paused or at_once:
            self.transport.abort()  # close() would wait until the client has read everything written
        else:
            self.transport.close()

    def wait_for_memory(self) -> None:
        self._waits_for_memory = True
        self._pause_reading()

    def memory_is_free(self) -> None:
        self._waits_for_memory = False
        if self._may_serve():
            self._resume_reading()

    def _pause_reading(self) -> None:
        if not self.read_paused and not self.closing:
            self.read_paused = True
            self.transport.pause_reading()

    def _resume_reading(self) -> None:
        if self.read_paused and not self.closing and not self._waits_for_memory:
            self.read_paused = False
            self.transport.resume_reading()


class _Gone(asyncio.Transport):
    """In place of a transport that is closed: answers go nowhere. `end` is called when the connection is to be closed."""

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self._end = end

    def write(self, data: bytes | bytearray | memoryview) -> None:
        pass

    def writelines(self, list_of_data: Iterable[bytes | bytearray | memoryview]) -> None:
        pass

    def get_write_buffer_size(self) -> int:
        return 0

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def close(self) -> None:
        self._end()

    def abort(self) -> None:
        self._end()


def _is_streamed(pieces: Sequence[Any]) -> bool:
    """Whether a response has records that are still on disk, or is too large to be written at once."""
    size = 0
    for piece in pieces:
        if piece.__class__ is StoredRecords:
            return True
        size += len(piece)
    return size > MAX_WRITTEN_BYTES


async def _read(chunk: FileRange) -> bytes | bytearray:
    """Return the bytes of the chunk. What is not in the page cache is read in a thread."""
    data = chunk.read_cached()
    return await asyncio.to_thread(chunk.file.read, chunk.size, chunk.position) if data is None else data
