"""TLS handshakes of new connections to one listener, so that slow clients keep nobody else from connecting.

Its one rule: their number is limited, because each costs about a millisecond of the event loop once its client sends
something. At the limit, accepting waits; if the oldest handshake is slow, it is given up for the next client.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import socket
import ssl
from collections.abc import Awaitable, Callable

from barnabas.broker.counters import ListenerCounters
from barnabas.client.tls import ALERT

_log = logging.getLogger(__name__)

MAX_UNDER_WAY = 64
SLOW_AFTER_S = 3.0
TIMEOUT_S = 10.0
SHUTDOWN_TIMEOUT_S = 2.0
ALERT_S = 0.1


class TlsHandshakes:
    """The handshakes under way on a listener, the oldest first."""

    def __init__(self, listener_name: str, counters: ListenerCounters) -> None:
        self._listener_name = listener_name
        self._counters = counters
        self._begun: dict[asyncio.Task[None], float] = {}

    async def begin(
        self, sock: socket.socket, host: str, context: ssl.SSLContext, connect: Callable[..., Awaitable[None]]
    ) -> None:
        """Begin a handshake. Returns when another one may begin, which may be before this one is done."""
        loop = asyncio.get_running_loop()
        task = loop.create_task(self._shake_hands(sock, host, context, connect))
        self._begun[task] = loop.time()
        task.add_done_callback(lambda done: self._begun.pop(done, None))
        while len(self._begun) >= MAX_UNDER_WAY:
            oldest, begun_s = next(iter(self._begun.items()))
            age_s = loop.time() - begun_s
            if age_s >= SLOW_AFTER_S:
                self._begun.pop(oldest)
                oldest.cancel()
            else:
                await asyncio.wait(self._begun, timeout=SLOW_AFTER_S - age_s, return_when=asyncio.FIRST_COMPLETED)

    async def stop(self) -> None:
        """Give up all handshakes."""
        tasks = list(self._begun)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _shake_hands(
        self, sock: socket.socket, host: str, context: ssl.SSLContext, connect: Callable[..., Awaitable[None]]
    ) -> None:
        alert = bytearray()
        ALERT.set(alert)
        alerted: socket.socket | None = None
        try:
            alerted = sock.dup()  # the event loop closes the other one before it returns an error
            await connect(
                sock,
                host,
                ssl=context,
                ssl_handshake_timeout=TIMEOUT_S,
                ssl_shutdown_timeout=SHUTDOWN_TIMEOUT_S,
            )
        except asyncio.CancelledError:
            sock.close()
            _log.info("giving up a TLS handshake with %s on %s: too many are under way", host, self._listener_name)
            raise
        except OSError as error:  # TimeoutError and SSLError too
            sock.close()
            _log.warning("failed TLS handshake with %s on %s: %s", host, self._listener_name, _reason(error))
            if isinstance(error, ssl.SSLError):
                self._counters.failed_logins += 1
            if alert and alerted is not None:
                await _tell(alerted, alert)
        finally:
            if alerted is not None:
                alerted.close()


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
