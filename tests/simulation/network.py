"""The network between machines: connections in memory, with delays, cut links, lost and half-open connections.

Its one rule: each direction of each link has its own stream of randomness, so that a change elsewhere in a run does not
change what happens here. As with TCP, the bytes of a connection arrive in order or not at all: what is sent over a cut
link is held until it heals, and the connection is lost if that takes too long. A machine without power answers nothing,
so its peers keep half-open connections; the first bytes that reach it after its return are refused. What one side of a
connection has sent and given up may still arrive on it later, after what was sent again on another connection: that is how
messages are doubled and change places.
"""

from __future__ import annotations

import asyncio
import errno
import zlib
from collections import deque
from collections.abc import Callable
from contextvars import copy_context
from random import Random
from typing import Any

from tests.simulation.loop import RUNNING, Process, SimulatedLoop

HIGH_BYTES, LOW_BYTES = 64 * 1024, 16 * 1024
GIVE_UP_S = 20.0  # a cut that lasts this long ends the connections over it
CONNECT_AGAIN_S = 1.0
FIRST_PORT = 40_000
APART_S = 1e-6  # timers of one moment have no order
SPLIT = 0.05  # of the deliveries come in two pieces


def _reset() -> ConnectionResetError:
    return ConnectionResetError(errno.ECONNRESET, "Connection reset by peer")


class Network:
    """All links. `random_for` returns the randomness of a purpose, `note` takes what happens."""

    def __init__(self, random_for: Callable[[str], Random], note: Callable[..., None]) -> None:
        self.loop: SimulatedLoop
        self.delay_s = (0.0002, 0.003)
        self.listeners: dict[tuple[str, int], Listener] = {}
        self.transports: dict[Transport, None] = {}
        self.cut: set[tuple[str, str]] = set()  # from, to
        self.off: set[str] = set()  # machines without power
        self.slow: dict[tuple[str, str], float] = {}  # links whose delays are multiplied
        self.far: dict[str, float] = {}  # machines that are so many times as far from all others
        self.late: dict[Transport, None] = {}  # connections that hold back what they are given to send
        self._random_for = random_for
        self._note = note
        self._randoms: dict[tuple[str, str], Random] = {}
        self._next_port = FIRST_PORT
        self._numbers: dict[str, int] = {}  # of machines

    def random_of(self, source: str, target: str) -> Random:
        found = self._randoms.get((source, target))
        if found is None:
            found = self._randoms[source, target] = self._random_for(f"network/{source}/{target}")
        return found

    def delay(self, source: str, target: str) -> float:
        factor = self.slow.get((source, target), 1.0)
        if source != target:
            factor *= self.far.get(source, 1.0) * self.far.get(target, 1.0)
        return self.random_of(source, target).uniform(*self.delay_s) * factor

    # --- what plans do

    def cut_link(self, source: str, target: str) -> None:
        """Stop the traffic in one direction."""
        self.cut.add((source, target))

    def heal_link(self, source: str, target: str) -> None:
        self.cut.discard((source, target))
        for transport in self.transports:
            if (transport.machine, transport.peer.machine) == (source, target) and transport not in self.late:
                transport.send_held()

    def lose_connections(self, source: str, target: str, random: Random) -> None:
        """Lose about half of the connections of a link; the two sides notice it at different times."""
        for transport in list(self.transports):
            if (transport.machine, transport.peer.machine) == (source, target) and random.random() < 0.5:
                transport.lose(self.delay(source, target))
                transport.peer.lose(self.delay(target, source))

    def hold_back(self, source: str, target: str, random: Random, share: float = 0.5) -> list[Transport]:
        """Have about a share of the connections of a link hold back what `source` sends from now on, and return them."""
        held = [
            transport
            for transport in self.transports
            if (transport.machine, transport.peer.machine) == (source, target) and random.random() < share
        ]
        self.late.update(dict.fromkeys(held))
        return held

    def deliver_late(self, transport: Transport) -> None:
        """Deliver what a connection has held back. It ends then, if its sender has given it up."""
        self.late.pop(transport, None)
        transport.send_held()
        if transport.is_lost:
            transport.peer.lose(max(0.0, transport.last_arrival_s - self.loop.time()) + APART_S)

    def process_ended(self, process: Process, *, silently: bool) -> None:
        """Close what a dead process had open. Its machine tells the peers, unless it has no power."""
        for address, listener in list(self.listeners.items()):
            if listener.process is process:
                del self.listeners[address]
        for transport in list(self.transports):
            if transport.process is process:
                transport.died()
                if not silently and not transport.peer.is_lost:
                    transport.peer.lose(self.delay(transport.machine, transport.peer.machine))

    # --- connections

    def listen(self, host: str, port: int) -> Any:
        """Stand in for a listening socket. Its type is `Any`, because the product expects a real one."""
        process = RUNNING.get()
        assert process is not None
        if port == 0:
            port = self._free_port()
        if (host, port) in self.listeners:
            raise OSError(errno.EADDRINUSE, "Address already in use")
        listener = self.listeners[host, port] = Listener(self, process, (host, port))
        return listener

    def closed(self, listener: Listener) -> None:
        if self.listeners.get(listener.address) is listener:
            del self.listeners[listener.address]

    def _address_of(self, machine: str) -> str:
        return f"10.0.0.{self._numbers.setdefault(machine, len(self._numbers) + 1)}"

    def _free_port(self) -> int:
        self._next_port += 1
        return self._next_port

    async def connect(self, factory: Callable[[], Any], host: str, port: int) -> tuple[Transport, Any]:
        process = RUNNING.get()
        assert process is not None, "only processes of the simulation connect"
        source, local = process.machine, (self._address_of(process.machine), self._free_port())
        while True:
            await asyncio.sleep(self.delay(source, host))
            if not {(source, host), (host, source)} & self.cut and host not in self.off:
                listener = self.listeners.get((host, port))
                if listener is not None:
                    break
                await asyncio.sleep(self.delay(host, source))
                raise ConnectionRefusedError(errno.ECONNREFUSED, "Connection refused")
            await asyncio.sleep(CONNECT_AGAIN_S)  # a machine that is off or cut off answers nothing
        ours = Transport(self, process, source, local, (host, port))
        theirs = Transport(self, listener.process, host, (host, port), local)
        ours.peer, theirs.peer = theirs, ours
        self.transports[ours] = self.transports[theirs] = None
        listener.arrived(Accepted(theirs))
        await asyncio.sleep(self.delay(host, source))
        if ours.is_lost:
            raise _reset()
        return ours, ours.attach(factory)

    def deliver(self, transport: Transport, item: bytes | None) -> None:
        """Send bytes, or the end of the stream, to the other side of a connection."""
        source, target = transport.machine, transport.peer.machine
        at_s = max(transport.last_arrival_s + APART_S, self.loop.time() + self.delay(source, target))
        pieces: list[bytes | None] = [item]
        if item is not None and len(item) > 1 and self.random_of(source, target).random() < SPLIT:
            middle = self.random_of(source, target).randrange(1, len(item))
            pieces = [item[:middle], item[middle:]]
        for piece in pieces:
            transport.last_arrival_s = at_s
            self.loop.call_at(at_s, transport.peer.arrived, piece, context=transport.peer.context)
            at_s += APART_S
        self._note("sent", source, target, -1 if item is None else len(item), 0 if item is None else zlib.crc32(item))


class Listener:
    """Stands in for a listening socket."""

    def __init__(self, network: Network, process: Process, address: tuple[str, int]) -> None:
        self.process = process
        self.address = address
        self._network = network
        self._backlog: deque[Accepted] = deque()
        self._waiter: asyncio.Future[None] | None = None

    def getsockname(self) -> tuple[str, int]:
        return self.address

    def close(self) -> None:
        self._network.closed(self)
        for each in self._backlog:
            each.close()

    def arrived(self, accepted: Accepted) -> None:
        self._backlog.append(accepted)
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)

    async def accept(self) -> tuple[Accepted, tuple[str, int]]:
        while not self._backlog:
            self._waiter = asyncio.get_running_loop().create_future()
            await self._waiter
        accepted = self._backlog.popleft()
        return accepted, accepted.transport.remote


class Accepted:
    """Stands in for the socket of an accepted connection."""

    def __init__(self, transport: Transport) -> None:
        self.transport = transport

    def setsockopt(self, *arguments: object) -> None:
        pass

    def close(self) -> None:
        self.transport.abort()

    def attach(self, factory: Callable[[], Any]) -> tuple[Transport, Any]:
        if self.transport.is_lost:
            raise _reset()
        return self.transport, self.transport.attach(factory)


class Transport(asyncio.Transport):
    """One side of a connection."""

    def __init__(
        self,
        network: Network,
        process: Process,
        machine: str,
        local: tuple[str, int],
        remote: tuple[str, int],
    ) -> None:
        super().__init__()
        self.peer: Transport
        self.process = process
        self.machine = machine
        self.local, self.remote = local, remote
        self.context = copy_context()
        self.context.run(RUNNING.set, process)
        self.last_arrival_s = 0.0
        self.is_lost = False
        self._network = network
        self._loop = network.loop
        self._protocol: Any = None
        self._inbox: deque[bytes | None] = deque()
        self._held: list[bytes | None] = []  # while the link is cut
        self._is_reading = True
        self._is_closing = False
        self._in_flight = 0
        self._is_full = False

    def attach(self, factory: Callable[[], Any]) -> Any:
        """Make the protocol of a new connection."""
        self._protocol = factory()
        self._protocol.connection_made(self)
        self._soon(self._read)
        return self._protocol

    def _soon(self, callback: Callable[..., None], *arguments: object) -> None:
        self._loop.call_soon(callback, *arguments, context=self.context)

    # --- asyncio.Transport

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        return {"peername": self.remote, "sockname": self.local}.get(name, default)

    def set_protocol(self, protocol: Any) -> None:
        self._protocol = protocol

    def get_protocol(self) -> Any:
        return self._protocol

    def is_closing(self) -> bool:
        return self._is_closing

    def get_write_buffer_size(self) -> int:
        return self._in_flight

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        pass

    def is_reading(self) -> bool:
        return self._is_reading and not self._is_closing

    def pause_reading(self) -> None:
        self._is_reading = False

    def resume_reading(self) -> None:
        if not self._is_reading:
            self._is_reading = True
            self._soon(self._read)

    def write(self, data: Any) -> None:
        if self._is_closing or self.is_lost or not data:
            return
        self._in_flight += len(data)
        self._send(bytes(data))
        if self._in_flight > HIGH_BYTES and not self._is_full:
            self._is_full = True
            self._protocol.pause_writing()

    def writelines(self, pieces: Any) -> None:
        self.write(b"".join(pieces))

    def can_write_eof(self) -> bool:
        return True

    def write_eof(self) -> None:
        self._send(None)

    def close(self) -> None:
        if not self._is_closing:
            self._is_closing = True
            self._send(None)
            self._soon(self._connection_lost, None)

    def abort(self) -> None:
        self.close()

    # --- sending

    def _send(self, item: bytes | None) -> None:
        network = self._network
        if self._held or self in network.late or (self.machine, self.peer.machine) in network.cut:
            if not self._held:
                self._loop.call_later(GIVE_UP_S, self._give_up, context=self.context)
            self._held.append(item)
        else:
            network.deliver(self, item)

    def send_held(self) -> None:
        held, self._held = self._held, []
        for item in held:
            self._network.deliver(self, item)

    def _give_up(self) -> None:
        if self._held and (self.machine, self.peer.machine) in self._network.cut:
            self.lose(0.0)

    def lose(self, after_s: float) -> None:
        """Lose the connection; this side notices after a while."""
        self._loop.call_later(after_s, self._connection_lost, _reset(), context=self.context)

    def died(self) -> None:
        """End with the process, which notices nothing any more."""
        self.is_lost = self._is_closing = True
        self._network.transports.pop(self, None)

    def _connection_lost(self, error: Exception | None) -> None:
        if not self.is_lost:
            self.died()
            if self._protocol is not None:
                self._protocol.connection_lost(error)

    # --- receiving

    def arrived(self, item: bytes | None) -> None:
        if self.is_lost:
            if not self.process.is_alive and self.machine not in self._network.off:
                self.peer.lose(self._network.delay(self.machine, self.peer.machine))
            return
        if item is not None:
            self.peer.taken(len(item))
        self._inbox.append(item)
        self._read()

    def taken(self, size: int) -> None:
        """Note that the other side has received bytes."""
        self._in_flight -= size
        if self._is_full and self._in_flight <= LOW_BYTES and not self.is_lost:
            self._is_full = False
            self._soon(self._protocol.resume_writing)

    def _read(self) -> None:
        while self._inbox and self._protocol is not None and self._is_reading and not self.is_lost:
            item = self._inbox.popleft()
            if self._is_closing:
                continue
            if item is None:
                if not self._protocol.eof_received():
                    self.close()
            elif isinstance(self._protocol, asyncio.BufferedProtocol):
                self._read_buffered(item)
            else:
                self._protocol.data_received(item)

    def _read_buffered(self, item: bytes) -> None:
        view = memoryview(item)
        while view and not self._is_closing:
            if not self._is_reading:
                self._inbox.appendleft(bytes(view))
                return
            room = self._protocol.get_buffer(len(view))
            size = min(len(room), len(view))
            room[:size] = view[:size]
            self._protocol.buffer_updated(size)
            view = view[size:]
