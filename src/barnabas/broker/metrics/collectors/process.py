"""The process and the node as a whole, with the names that Prometheus' own clients use. Read from /proc, in a thread."""

from __future__ import annotations

import asyncio
import os
import platform
import resource
import threading
from collections import Counter
from pathlib import Path
from typing import Final, NamedTuple

from barnabas import __version__
from barnabas.broker.metrics.exposition import Exposition, counter, gauge, labels
from barnabas.broker.metrics.health import broker_state, why_not_ready
from barnabas.broker.metrics.observed import Observed
from barnabas.slices import Slices

BUILD = gauge("barnabas_build_info", "1, with the versions of barnabas and Python.", "version", "python")
STATE = gauge(
    "kafka_server_kafkaserver_brokerstate",
    "State of the broker: 0 not running, 1 starting, 2 recovery, 3 running, 6 pending controlled shutdown.",
)
READY = gauge("barnabas_ready", "1 if /readyz answers 200, otherwise 0.")
UPTIME = gauge("barnabas_uptime_seconds", "Seconds since the node was started.")
RESIDENT = gauge("process_resident_memory_bytes", "Resident memory of the process.")
VIRTUAL = gauge("process_virtual_memory_bytes", "Virtual memory of the process.")
CPU = counter("process_cpu_seconds_total", "User and system CPU time of the process.")
OPEN_FDS = gauge("process_open_fds", "Open file descriptors of the process.")
MAX_FDS = gauge("process_max_fds", "Limit on open file descriptors.")
THREADS = gauge("barnabas_threads", "Threads of Python in the process.")
METRICS = (BUILD, STATE, READY, UPTIME, RESIDENT, VIRTUAL, CPU, OPEN_FDS, MAX_FDS, THREADS)

_PROC: Final = Path("/proc/self")


def collect(node: Observed, out: Exposition, left_out: Counter[str]) -> Slices[None]:
    out.add(BUILD, 1, labels(version=__version__, python=platform.python_version()))
    out.add(STATE, int(broker_state(node)))
    out.add(READY, int(why_not_ready(node) is None))
    out.add(UPTIME, (node.services.monotonic_ms() - node.started_ms) / 1000)
    used = resource.getrusage(resource.RUSAGE_SELF)
    out.add(CPU, used.ru_utime + used.ru_stime)
    out.add(MAX_FDS, resource.getrlimit(resource.RLIMIT_NOFILE)[0])
    out.add(THREADS, threading.active_count())
    reading = asyncio.ensure_future(asyncio.to_thread(_read_proc))
    yield reading
    found = reading.result()
    if found is not None:
        out.add(RESIDENT, found.resident_bytes)
        out.add(VIRTUAL, found.virtual_bytes)
        out.add(OPEN_FDS, found.open_fds)


class _Proc(NamedTuple):
    resident_bytes: int
    virtual_bytes: int
    open_fds: int


def _read_proc() -> _Proc | None:
    """Return what Linux knows of this process, or None where there is no /proc. Runs in a thread."""
    try:
        virtual_pages, resident_pages, *_ = (_PROC / "statm").read_text().split()
        page = resource.getpagesize()
        fds = len(os.listdir(_PROC / "fd"))  # noqa: PTH208  (there may be very many)
        return _Proc(int(resident_pages) * page, int(virtual_pages) * page, fds)
    except OSError:
        return None
