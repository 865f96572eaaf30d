"""What connections do when the memory of requests or responses is short: wait, read one after another, or be closed.

Requests: see `request_memory` for who waits. The one that reads ahead of the others is the one that needs the fewest
bytes and has sent some of them. While memory is short, a connection whose unfinished request makes no progress for
`stall_ms` is closed: nobody else can use its memory.

Responses: what clients have not read yet is counted. Above half of the limit, records are read from disk only as fast
as each client takes them. Above the limit, the connection with the most unread bytes is closed.
"""

from __future__ import annotations

import asyncio
import fcntl
import logging
import struct
import termios
from itertools import islice
from typing import TYPE_CHECKING, NamedTuple

from barnabas.broker.request_memory import UNLIMITED, RequestMemory
from barnabas.wire.frame import FIRST_ROOM

if TYPE_CHECKING:
    from barnabas.broker.connection import Connection

_log = logging.getLogger(__name__)

MIN_PROGRESS_BYTES = 1 << 14  # in `stall_ms`
MAX_CHECK_S = 0.25
PLENTY_BYTES = 1 << 26  # requests that hold less in total get more room than their bytes need
PLENTY_PART = 8  # of the limit, if that is less
PLENTIFUL_ROOM = 1 << 20
MAX_CHOICES = 256  # connections that are compared when one may read ahead


class _Mark(NamedTuple):
    """What was missing of a request at some time."""

    missing_bytes: int
    since_s: float


class MemoryGuard:
    """Limits the memory of a node's connections. A limit of 0 or less is none."""

    def __init__(self, request_limit_bytes: int, response_limit_bytes: int, stall_ms: int) -> None:
        self.requests: RequestMemory[Connection] = RequestMemory()
        self.unread_bytes = 0  # of responses, by clients that are slow to read
        self.stalled_total = 0  # connections closed because their request made no progress
        self.unread_closed_total = 0  # connections closed because of their unread responses
        self._unread: dict[Connection, int] = {}
        self._marks: dict[Connection, _Mark] = {}
        self._check: asyncio.TimerHandle | None = None
        self.limit(request_limit_bytes, response_limit_bytes, stall_ms)

    def limit(self, request_limit_bytes: int, response_limit_bytes: int, stall_ms: int) -> None:
        """Replace the limits."""
        self.requests.limit_bytes = request_limit_bytes if request_limit_bytes > 0 else UNLIMITED
        self.response_limit_bytes = response_limit_bytes if response_limit_bytes > 0 else UNLIMITED
        self._stall_s = stall_ms / 1000
        self._give_turns()

    # --- requests

    def first_room(self) -> int:
        """Return how much of an announced request to trust, because a buffer that grows is copied."""
        requests = self.requests
        is_plenty = requests.held_bytes < min(PLENTY_BYTES, requests.limit_bytes // PLENTY_PART)
        return PLENTIFUL_ROOM if is_plenty else FIRST_ROOM

    def update(self, connection: Connection) -> None:
        """Count what the connection holds now. It waits if memory is short, and others go on if it has released some."""
        buffer = connection.buffer
        if self.requests.hold(connection, buffer.allocated_bytes + connection.frame_bytes, buffer.growth_bytes):
            connection.wait_for_memory()
        self._give_turns()

    def forget(self, connection: Connection) -> None:
        """Release what a closed connection has held."""
        self.requests.forget(connection)
        self._marks.pop(connection, None)
        self.unread(connection, 0)
        self._give_turns()

    def _give_turns(self) -> None:
        requests = self.requests
        if not requests.waiting_count:
            return
        for connection in requests.released():
            connection.memory_is_free()
        if not requests.waiting_count:
            return
        if requests.ahead is None:
            first = islice(requests.waiting, MAX_CHOICES)
            ready = [each for each in first if each.is_receiving and _available_bytes(each)]
            chosen = min(ready, key=lambda each: each.buffer.missing_bytes, default=None)
            if chosen is not None:
                requests.let_ahead(chosen)
                chosen.memory_is_free()
        if self._check is None:
            loop = asyncio.get_running_loop()
            self._check = loop.call_later(min(self._stall_s / 4, MAX_CHECK_S), self._check_progress)

    def _check_progress(self) -> None:
        self._check = None
        requests = self.requests
        if not requests.waiting_count:
            self._marks.clear()
            return
        now_s = asyncio.get_running_loop().time()
        if requests.ahead is not None and not requests.ahead.is_receiving:
            requests.ahead = None  # its request is complete and may take long
        for connection in list(requests.holders):
            if not connection.is_receiving:
                self._marks.pop(connection, None)
            elif self._is_stalled(connection, now_s):
                self.stalled_total += 1
                connection.refuse(f"memory is short, and its request makes no progress for {self._stall_s:g} s")
        self._give_turns()

    def _is_stalled(self, connection: Connection, now_s: float) -> bool:
        missing_bytes = connection.buffer.missing_bytes
        mark = self._marks.get(connection)
        if (
            mark is not None and 0 <= mark.missing_bytes - missing_bytes < MIN_PROGRESS_BYTES
        ):  # below 0: a later request
            if now_s - mark.since_s < self._stall_s:
                return False
            if mark.missing_bytes - missing_bytes + _available_bytes(connection) < MIN_PROGRESS_BYTES:
                return True
        self._marks[connection] = _Mark(missing_bytes, now_s)
        return False

    # --- responses

    @property
    def is_response_memory_short(self) -> bool:
        return self.unread_bytes > self.response_limit_bytes // 2

    def unread(self, connection: Connection, size: int) -> None:
        """Count what a client has not read yet."""
        self.unread_bytes += size - self._unread.get(connection, 0)
        if not size:
            self._unread.pop(connection, None)
            return
        self._unread[connection] = size
        if self.unread_bytes > self.response_limit_bytes:
            slowest = max(self._unread, key=self._unread.__getitem__)
            self.unread_closed_total += 1
            slowest.refuse(
                f"the clients of this node have not read {self.unread_bytes} bytes, this one the most of all"
            )
            self.unread(slowest, 0)  # at once, so that no other is closed for it


def _available_bytes(connection: Connection) -> int:
    """The number of bytes that wait in the socket."""
    sock = connection.transport.get_extra_info("socket")
    if sock is None or sock.fileno() < 0:
        return 0
    try:
        found = fcntl.ioctl(sock.fileno(), termios.FIONREAD, struct.pack("i", 0))
    except OSError:
        return 0
    return int(struct.unpack("i", found)[0])
