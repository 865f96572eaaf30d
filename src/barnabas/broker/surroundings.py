"""The world around a node: its clocks, its sources of randomness, its listening sockets, its locks and the name of its host.

Its one rule: a node and the parts that it builds take these from here and never from the operating system, so that a test
or a simulation can replace them. Other timers, outgoing connections and work in threads belong to the event loop, files to
`storage.files`, the times of log lines to `logging`.
"""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from random import Random, SystemRandom
from typing import TYPE_CHECKING, Final

from barnabas.replicated.scheduler import Handle
from barnabas.storage.log_dirs import THIS_PROCESS, HeldLocks

if TYPE_CHECKING:
    from barnabas.broker.faults.faults import Faults

BACKLOG: Final = 1024


def wall_clock_ms() -> int:
    """Time of day in milliseconds since 1970."""
    return time.time_ns() // 1_000_000


def monotonic_clock_ms() -> int:
    """Monotonic time in milliseconds."""
    return time.monotonic_ns() // 1_000_000


def thread_cpu_clock_ms() -> int:
    """CPU time of the calling thread in milliseconds."""
    return time.thread_time_ns() // 1_000_000


def system_random(purpose: str) -> Random:
    """Return the operating system's source of randomness, for any purpose."""
    return SystemRandom()


def listening_socket(host: str, port: int) -> socket.socket:
    """Bind a socket and listen. An empty host and `::` are every interface, over IPv6 and IPv4 where the machine has both."""
    if host in ("", "::") and socket.has_dualstack_ipv6():
        sock = socket.create_server(("", port), family=socket.AF_INET6, dualstack_ipv6=True, backlog=BACKLOG)
    else:
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        sock = socket.create_server((host, port), family=family, backlog=BACKLOG)
    sock.setblocking(False)
    return sock


def loop_timer(delay_ms: float, callback: Callable[[], None]) -> asyncio.TimerHandle:
    """Have a function called by the event loop after some time."""
    return asyncio.get_running_loop().call_later(max(delay_ms, 0) / 1000, callback)


Listen = Callable[[str, int], socket.socket]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """The real world by default. A seeded `random_for` should return a stream of its own for each purpose."""

    now_ms: Callable[[], int] = wall_clock_ms
    monotonic_ms: Callable[[], int] = monotonic_clock_ms
    monotonic_ns: Callable[[], int] = time.monotonic_ns  # the same clock, finer, for latencies
    thread_cpu_ms: Callable[[], int] = thread_cpu_clock_ms
    random_for: Callable[[str], Random] = system_random
    listen: Listen = listening_socket
    host_name: Callable[[], str] = socket.getfqdn
    locks: HeldLocks = THIS_PROCESS
    watches_loop: bool = True  # with a thread, for which a simulation has no place
    # These may be moved ahead: the time of sessions of groups, and the timers of coordinators and of periodic work.
    session_ms: Callable[[], int] = monotonic_clock_ms
    call_later: Callable[[float, Callable[[], None]], Handle] = loop_timer
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep
    faults: Faults | None = None


REAL_WORLD: Final = Surroundings()
