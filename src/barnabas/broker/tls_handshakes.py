"""TLS handshakes of new connections to one listener, so that clients that are slow or attack keep nobody else from connecting.

Its one rule: a client that has sent nothing costs nothing but its socket, and nobody waits for it. A handshake is begun when
its client has sent something, a few in each turn of the event loop, because it costs up to a millisecond. The number of
those under way is limited, so that not too many can go on in the same turn. At the limit, the newest client is served next:
it is the one that is most likely still there. If others wait, a handshake that takes long is given up.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable
from functools import partial
from typing import NamedTuple

from barnabas.broker.client_lines import ClientLines
from barnabas.broker.counters import ListenerCounters
from barnabas.client.tls import ALERT

_log = logging.getLogger(__name__)

MAX_UNDER_WAY = 64
MAX_IN_TURN = 4  # that are begun in one turn of the event loop
MAX_WAITING = 4096  # sockets of clients whose handshake has not begun
PATIENCE_S = 1.0  # with a handshake under way, while others wait for its place
TIMEOUT_S = 10.0
SHUTDOWN_TIMEOUT_S = 2.0
ALERT_S = 0.1


class _Client(NamedTuple):
    """A connection whose handshake has not begun."""

    sock: socket.socket
    host: str
    context: ssl.SSLContext
    timeout: asyncio.TimerHandle


class TlsHandshakes:
    """The handshakes of a listener. `connect` completes one, and owns the socket then; `given_up` is called with the host of a
    client for which that was not called."""

    def __init__(
        self,
        listener_name: str,
        counters: ListenerCounters,
        lines: ClientLines,
        connect: Callable[..., Awaitable[None]],
        given_up: Callable[[str], None],
    ) -> None:
        self._listener_name = listener_name
        self._counters = counters
        self._lines = lines
        self._connect = connect
        self._given_up = given_up
        self._loop = asyncio.get_running_loop()
        self._silent: dict[int, _Client] = {}  # by the number of the socket; the oldest first, as in the next two
        self._ready: dict[int, _Client] = {}  # have sent something
        self._begun: dict[asyncio.Task[None], float] = {}
        self._next_turn: asyncio.Handle | None = None
        self._is_stopped = False

    def begin(self, sock: socket.socket, host: str, context: ssl.SSLContext) -> None:
        """Take a new connection, and begin its handshake when the client does."""
        has_sent = _has_sent(sock)
        if has_sent and not self._ready and len(self._begun) < MAX_UNDER_WAY:
            self._start(sock, host, context)
            return
        number = sock.fileno()
        timeout = self._loop.call_later(TIMEOUT_S, self._dismiss, number, f"no TLS handshake within {TIMEOUT_S:g} s")
        client = _Client(sock, host, context, timeout)
        if has_sent:
            self._ready[number] = client
            self._go_on()
        else:
            self._silent[number] = client
            self._loop.add_reader(number, self._is_readable, number)
        if len(self._silent) + len(self._ready) > MAX_WAITING:
            oldest = next(iter(self._silent if len(self._silent) > 1 else self._ready))
            self._dismiss(oldest, "too many wait for a TLS handshake")

    async def stop(self) -> None:
        """Give up all handshakes."""
        self._is_stopped = True
        if self._next_turn is not None:
            self._next_turn.cancel()
        for number in (*self._silent, *self._ready):
            self._dismiss(number, "")
        tasks = list(self._begun)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _is_readable(self, number: int) -> None:
        self._loop.remove_reader(number)
        client = self._silent.pop(number)
        self._ready[number] = client
        if _has_sent(client.sock) is None:
            self._dismiss(number, "it has left before a TLS handshake")
        else:
            self._go_on()

    def _dismiss(self, number: int, why: str) -> None:
        """Close a connection whose handshake has not begun."""
        if number in self._silent:
            self._loop.remove_reader(number)
        client = self._silent.pop(number, None) or self._ready.pop(number)
        client.timeout.cancel()
        if why:
            self._say(logging.INFO, "closing the connection from %s on %s: %s", client.host, why)
        client.sock.close()
        self._given_up(client.host)

    def _go_on(self) -> None:
        """Begin some handshakes in the next turn of the event loop."""
        if self._ready and self._next_turn is None and not self._is_stopped:
            self._next_turn = self._loop.call_soon(self._begin_some)

    def _begin_some(self) -> None:
        self._next_turn = None
        for _ in range(MAX_IN_TURN):
            if not self._ready or not self._has_place():
                return
            _, client = self._ready.popitem()
            client.timeout.cancel()
            self._start(client.sock, client.host, client.context)
        self._go_on()

    def _has_place(self) -> bool:
        """Return whether a handshake may begin now. If not, it is looked at again when there is a place."""
        if len(self._begun) >= MAX_UNDER_WAY:
            oldest, begun_s = next(iter(self._begun.items()))
            left_s = PATIENCE_S - (self._loop.time() - begun_s)
            if left_s > 0:
                self._next_turn = self._loop.call_later(left_s, self._begin_some)
                return False
            del self._begun[oldest]
            oldest.cancel()
        return True

    def _start(self, sock: socket.socket, host: str, context: ssl.SSLContext) -> None:
        task = self._loop.create_task(self._shake_hands(sock, host, context))
        self._begun[task] = self._loop.time()
        task.add_done_callback(partial(self._is_done, sock, host))

    def _is_done(self, sock: socket.socket, host: str, task: asyncio.Task[None]) -> None:
        self._begun.pop(task, None)
        if task.cancelled() and sock.fileno() >= 0:  # before its first step
            sock.close()
            self._given_up(host)
        if self._next_turn is not None:  # it may wait for the oldest one to take too long
            self._next_turn.cancel()
            self._next_turn = None
        self._go_on()

    def _say(self, level: int, text: str, host: str, why: str) -> None:
        self._lines.log(_log, level, text, host, self._listener_name, why)

    async def _shake_hands(self, sock: socket.socket, host: str, context: ssl.SSLContext) -> None:
        alert = bytearray()
        ALERT.set(alert)
        alerted: socket.socket | None = None
        try:
            with contextlib.suppress(OSError):
                alerted = sock.dup()  # the event loop closes the other one before it returns an error
            await self._connect(
                sock,
                host,
                ssl=context,
                ssl_handshake_timeout=TIMEOUT_S,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
            )
        except asyncio.CancelledError:
            sock.close()
            self._say(logging.INFO, "giving up a TLS handshake with %s on %s: %s", host, "too many are under way")
            raise
        except OSError as error:  # TimeoutError and SSLError too
            sock.close()
            self._say(logging.WARNING, "failed TLS handshake with %s on %s: %s", host, _reason(error))
            if isinstance(error, ssl.SSLError):
                self._counters.failed_logins += 1
            if alert and alerted is not None:
                await _tell(alerted, alert)
        finally:
            if alerted is not None:
                alerted.close()


def _has_sent(sock: socket.socket) -> bool | None:
    """Return whether a client has sent something; None if it has left."""
    try:
        return True if sock.recv(1, socket.MSG_PEEK) else None
    except BlockingIOError:
        return False
    except OSError:
        return None


async def _tell(sock: socket.socket, alert: bytearray) -> None:
    """Send the alert that says why a handshake failed, and leave the client a moment to read it before it is reset."""
    with contextlib.suppress(OSError):
        sock.send(alert)
        sock.shutdown(socket.SHUT_WR)
    await asyncio.sleep(ALERT_S)


def _reason(error: OSError) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"the client's certificate is not accepted: {error.verify_message}"
    if isinstance(error, ssl.SSLError):
        return (error.reason or str(error)).replace("_", " ").lower()
    return str(error) or type(error).__name__
