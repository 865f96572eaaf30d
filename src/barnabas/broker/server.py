"""Listening sockets, and the limits on connections to them.

A socket is bound before the node is ready and accepts connections afterwards, so early clients wait instead of failing,
as with Kafka. At `max.connections`, of the node or of a listener, accepting stops until a connection closes. Above
`max.connection.creation.rate` it pauses. A connection above `max.connections.per.ip` is closed at once; one above the
quota `connection_creation_rate` of its address is not served, and closed when its throttle time is over. A connection
that is idle for `connections.max.idle.ms` is closed. What all connections hold in memory is limited by `memory_guard`.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections import Counter
from collections.abc import Mapping
from functools import partial
from typing import Any, NamedTuple

from barnabas.broker.client_lines import ClientLines
from barnabas.broker.connection import Connection
from barnabas.broker.context import Listener, Services
from barnabas.broker.counters import ListenerCounters
from barnabas.broker.listener_security import NO_SECURITY, ListenerSecurity
from barnabas.broker.memory_guard import MemoryGuard
from barnabas.broker.surroundings import Listen, listening_socket
from barnabas.broker.tls_handshakes import MAX_IN_TURN, TlsHandshakes
from barnabas.client import shared
from barnabas.wire.frame import SCRATCH_BYTES

_log = logging.getLogger(__name__)

UNLIMITED = 2**31 - 1
CLOSE_S = 0.5
ACCEPT_PAUSE_S = 0.1  # after the process has run out of file descriptors
MAX_THROTTLED = 1024  # connections of a listener that are above the quota of their address and not closed yet


class ListenerLimits(NamedTuple):
    """The limits of one listener. A protected one, that of brokers beside others, is exempt from the node's rate."""

    max_connections: int = UNLIMITED
    max_connection_creation_rate: int = UNLIMITED
    is_protected: bool = False


NO_LISTENER_LIMITS = ListenerLimits()


class Limits(NamedTuple):
    """The limits on connections and their memory, with the names of their settings. A memory of 0 or less is unlimited."""

    request_max_bytes: int = 100 * 1024 * 1024
    connections_max_idle_ms: int = 10 * 60 * 1000
    max_connections: int = UNLIMITED
    max_connections_per_ip: int = UNLIMITED
    max_connections_per_ip_overrides: Mapping[str, int] = {}
    max_connection_creation_rate: int = UNLIMITED
    listeners: Mapping[str, ListenerLimits] = {}
    request_memory_max_bytes: int = 512 << 20
    response_memory_max_bytes: int = 512 << 20
    request_stall_ms: int = 10_000


class Server:
    """All endpoints of a node; `max.connections` applies to their total. `listen` creates the listening sockets."""

    def __init__(self, services: Services, limits: Limits, listen: Listen = listening_socket) -> None:
        self.services = services
        self.limits = limits
        self._listen = listen
        self.endpoints: list[Endpoint] = []
        self.connections: dict[Connection, None] = {}  # in the order in which they were opened
        self.by_host: Counter[str] = Counter()  # of connections, from when they are accepted
        self.memory = MemoryGuard(*_memory_limits(limits))
        self.lines = ClientLines()
        self._idle_check: asyncio.Task[None] | None = None
        self._serves_clients = True
        self._limit_rates()

    def bind(
        self, listener: Listener, host: str, port: int, security: ListenerSecurity = NO_SECURITY
    ) -> tuple[str, int]:
        """Bind and listen, without accepting yet, and return the address with the real port."""
        sock = self._listen(host, port)
        endpoint = Endpoint(self, listener, sock, security)
        self.endpoints.append(endpoint)
        address = sock.getsockname()
        return address[0], address[1]

    def secure(self, listener_name: str, security: ListenerSecurity) -> None:
        """Replace the protection of a listener, for new connections."""
        for endpoint in self.endpoints:
            if endpoint.listener.name == listener_name:
                endpoint.security = security

    def start(self, *, is_controller: bool | None = None) -> None:
        """Start to accept connections, on the listeners of one kind or on all that do not accept yet."""
        for endpoint in self.endpoints:
            if is_controller in (None, endpoint.listener.is_controller):
                endpoint.start()
        if self.limits.connections_max_idle_ms > 0 and self._idle_check is None:
            self._idle_check = asyncio.get_running_loop().create_task(self._close_idle())

    def dismiss_clients(self) -> None:
        """Answer no further request of clients. A connection closes when its request in progress is answered."""
        self._serves_clients = False
        for connection in list(self.connections):
            if not connection.endpoint.listener.is_controller:
                connection.close_after_answer()

    async def stop(self) -> None:
        """Stop accepting, wait for the requests in progress, then close every connection."""
        for endpoint in self.endpoints:
            await endpoint.stop()
        if self._idle_check is not None:
            await shared.stop(self._idle_check)
        under_way = [c.under_way for c in self.connections if c.under_way is not None]
        if under_way:
            await asyncio.wait(under_way, timeout=5)
        for connection in list(self.connections):
            connection.close("stop")
        await self._until_closed()
        self.lines.end_second()

    def close_connections(self) -> None:
        """Close every connection at once. New ones are accepted."""
        for connection in list(self.connections):
            connection.close("stop", at_once=True)

    async def drop(self) -> None:
        """Close everything at once, as if the process had died."""
        for endpoint in self.endpoints:
            await endpoint.stop()
        if self._idle_check is not None:
            await shared.stop(self._idle_check)
        while self.connections:
            self.close_connections()  # in each turn, because a connection that was just accepted comes later
            await asyncio.sleep(0)

    async def _until_closed(self) -> None:
        """Give connections a moment to end TLS in order, then drop those that are left."""
        deadline_s = asyncio.get_running_loop().time() + CLOSE_S
        while self.connections and asyncio.get_running_loop().time() < deadline_s:
            await asyncio.sleep(CLOSE_S / 50)
        self.close_connections()
        await asyncio.sleep(0)

    def limit(self, limits: Limits) -> None:
        """Replace the limits. Open connections stay open."""
        self.limits = limits
        self.memory.limit(*_memory_limits(limits))
        self._limit_rates()
        self._make_room()

    def _limit_rates(self) -> None:
        rates = self.services.quotas.connections
        rates.limit = self.limits.max_connection_creation_rate
        rates.limits = {name: each.max_connection_creation_rate for name, each in self.limits.listeners.items()}

    def _make_room(self) -> None:
        """Let those listeners accept connections that have room for another one."""
        has_room = sum(each.present for each in self.endpoints) < self.limits.max_connections
        for endpoint in self.endpoints:
            if has_room and endpoint.present < endpoint.own_limits.max_connections:
                endpoint.room.set()
            else:
                endpoint.room.clear()

    def admit(self, host: str) -> bool:
        limits = self.limits
        limit = limits.max_connections_per_ip_overrides.get(host, limits.max_connections_per_ip)
        return self.by_host[host] < limit

    def arrived(self, endpoint: Endpoint, host: str) -> None:
        """Count a connection, before a TLS handshake if there is one: as in Kafka, it counts for the limits."""
        endpoint.present += 1
        self.by_host[host] += 1
        self._make_room()

    def gone(self, endpoint: Endpoint, host: str) -> None:
        """Count a connection no more."""
        endpoint.present -= 1
        self.by_host[host] -= 1
        if not self.by_host[host]:
            del self.by_host[host]
        self._make_room()

    def opened(self, connection: Connection) -> None:
        self.connections[connection] = None
        connection.endpoint.counters.open += 1
        if not self._serves_clients and not connection.endpoint.listener.is_controller:
            connection.close("stop")

    def closed(self, connection: Connection) -> None:
        self.connections.pop(connection, None)
        if connection.information.at_close is not None:
            connection.information.at_close()
        counters = connection.endpoint.counters
        counters.open -= 1
        counters.closed[connection.closed_by] += 1
        self.gone(connection.endpoint, connection.host)

    async def _close_idle(self) -> None:
        limit_s = self.limits.connections_max_idle_ms / 1000
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(min(max(limit_s / 4, 0.01), 30))
            oldest = loop.time() - limit_s
            for connection in [c for c in self.connections if c.last_active_s < oldest and c.is_idle]:
                _log.info("closing the connection from %s: idle for more than %g s", connection.host, limit_s)
                connection.close("idle", at_once=True)


class Endpoint:
    """One listening socket and its accept loop."""

    def __init__(self, server: Server, listener: Listener, sock: socket.socket, security: ListenerSecurity) -> None:
        self.server = server
        self.listener = listener
        self.security = security  # of new connections
        self.services = server.services
        self.limits = server.limits
        self.loop = asyncio.get_running_loop()
        self.opened = server.opened
        self.closed = server.closed
        self.counters = ListenerCounters()
        self.present = 0  # connections that were accepted and are not closed
        self.room = asyncio.Event()  # for another connection
        self.room.set()
        self.scratch = memoryview(bytearray(SCRATCH_BYTES))  # shared: all connections receive in one thread
        self._socket = sock
        self._accepting: asyncio.Task[None] | None = None
        given_up = partial(server.gone, self)
        self._handshakes = TlsHandshakes(listener.name, self.counters, server.lines, self._connect, given_up)
        self._throttled: dict[socket.socket, asyncio.TimerHandle] = {}  # the oldest first

    @property
    def own_limits(self) -> ListenerLimits:
        return self.server.limits.listeners.get(self.listener.name, NO_LISTENER_LIMITS)

    def start(self) -> None:
        if self._accepting is None:
            self._accepting = self.loop.create_task(self._accept())

    async def stop(self) -> None:
        if self._accepting is not None:
            # Else asyncio could accept one more connection in this turn, and would neither return nor close it.
            self.loop.remove_reader(self._socket)
            accepting, self._accepting = self._accepting, None
            await shared.stop(accepting)
        await self._handshakes.stop()
        while self._throttled:
            self._close_throttled(next(iter(self._throttled)))
        self._socket.close()

    async def _accept(self) -> None:
        in_turn = 0
        while True:
            await self.room.wait()
            try:
                sock, address = await self.loop.sock_accept(self._socket)
            except OSError as error:
                _log.error("cannot accept a connection on %s: %s", self.listener.name, error)
                await asyncio.sleep(ACCEPT_PAUSE_S)
                continue
            self.counters.accepted += 1
            host = address[0].removeprefix("::ffff:")
            if not await self._is_in_time(sock, host):
                continue
            if not self.server.admit(host):
                text = "closing a connection from %s on %s: too many from this address"
                self.server.lines.log(_log, logging.INFO, text, host, self.listener.name)
                self.counters.closed["limit"] += 1
                sock.close()
                continue
            self.server.arrived(self, host)
            if self.security.tls is not None:
                self._handshakes.begin(sock, host, self.security.tls)
                in_turn += 1
                if in_turn % MAX_IN_TURN == 0:  # many may wait to be accepted
                    await asyncio.sleep(0)
                continue
            try:
                await self._connect(sock, host)
            except OSError as error:  # the client has disconnected meanwhile
                text = "a connection from %s on %s was lost before it was set up: %s"
                self.server.lines.log(_log, logging.INFO, text, host, self.listener.name, error)
                self.counters.closed["client"] += 1
                sock.close()

    async def _connect(self, sock: socket.socket, host: str, **tls: Any) -> None:
        """Serve an accepted socket, after a TLS handshake if there is something in `tls`. Raises OSError."""
        connection = Connection(self, host)
        try:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            await self.loop.connect_accepted_socket(lambda: connection, sock, **tls)
        except BaseException as error:
            is_open = connection in self.server.connections
            if is_open and isinstance(error, asyncio.CancelledError):
                connection.close("stop")  # uvloop closes its socket, and never calls `connection_lost`
                connection.connection_lost(None)
            elif not is_open and not connection.information.closed:
                self.server.gone(self, host)
            raise

    async def _is_in_time(self, sock: socket.socket, host: str) -> bool:
        """Apply the limits on new connections per second. A connection above that of its address is closed later."""
        rates, clock = self.services.quotas.connections, self.services.monotonic_ms
        name, is_protected = self.listener.name, self.own_limits.is_protected
        wait_ms = rates.accepted(name, clock(), is_protected=is_protected)
        if wait_ms:
            self.counters.accept_waits += 1
            self.counters.accept_waited_ms += wait_ms
            try:
                await asyncio.sleep(wait_ms / 1000)
            except asyncio.CancelledError:
                sock.close()
                raise
        throttle_time_ms = rates.throttle_time_ms(name, host, clock(), is_protected=is_protected)
        if throttle_time_ms:
            _log.debug("not serving a connection from %s on %s: too many per second", host, name)
            self.counters.closed["rate"] += 1
            self._throttled[sock] = self.loop.call_later(throttle_time_ms / 1000, self._close_throttled, sock)
            if len(self._throttled) > MAX_THROTTLED:
                self._close_throttled(next(iter(self._throttled)))
        return not throttle_time_ms

    def _close_throttled(self, sock: socket.socket) -> None:
        self._throttled.pop(sock).cancel()
        sock.close()


def _memory_limits(limits: Limits) -> tuple[int, int, int]:
    return limits.request_memory_max_bytes, limits.response_memory_max_bytes, limits.request_stall_ms
