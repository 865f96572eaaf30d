"""One simulated world: machines with processes, disks and clocks, the network between them, and the trace of a run.

Its one rule: the seed decides everything. Each purpose has a stream of randomness of its own. All that happens on the network
and the disks goes into a digest, so that two runs of one seed can be compared.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import random
import time
import uuid
from collections import deque
from collections.abc import Coroutine, Iterator
from hashlib import blake2b
from random import Random
from typing import Any
from unittest.mock import patch

from barnabas import slices
from barnabas.broker.surroundings import Surroundings
from barnabas.storage import files
from barnabas.storage.log_dirs import HeldLocks
from tests.simulation.disk import Disks
from tests.simulation.loop import RUNNING, Process, SimulatedLoop
from tests.simulation.network import Network

EPOCH_MS = 1_700_000_000_000
MAX_TRACE = 20_000
THREAD_S = 0.002
MAX_CLOCK_ERROR_MS = 200


class Violation(AssertionError):  # noqa: N818 - the word says what it is
    """Something that must never be so."""


class World:
    """Everything around the nodes. `trace` has the last things that happened, as text."""

    def __init__(self, seed: int | str, *, keeps_trace: bool = False) -> None:
        self.seed = seed
        self.events = 0
        self.trace: deque[str] = deque(maxlen=MAX_TRACE)
        self.violations: list[str] = []
        self.processes: dict[str, Process] = {}
        self.clock_errors_ms: dict[str, int] = {}
        self._keeps_trace = keeps_trace
        self._digest = blake2b(digest_size=16)
        self._lives = 0
        self._thread_random = self.random_for("threads")
        self.network = Network(self.random_for, self.note)
        self.loop = SimulatedLoop(self._thread_times, self.network.connect)
        self.network.loop = self.loop
        self.disks = Disks(lambda: self.wall_ms() * 1_000_000, self.note)

    def random_for(self, purpose: str) -> Random:
        """Return a stream of randomness that nobody else uses."""
        return Random(f"{self.seed}/{purpose}")

    @property
    def digest(self) -> str:
        return self._digest.hexdigest()

    def note(self, *event: object) -> None:
        """Add an event to the digest, and to the trace if that is kept."""
        self.events += 1
        line = f"{self.loop.time():.6f} {event}"
        self._digest.update(line.encode())
        if self._keeps_trace:
            self.trace.append(line)

    def say(self, *event: object) -> None:
        """Add an event that a reader of the trace needs, and that is the same in each run of the seed."""
        self.note(*event)
        if not self._keeps_trace:
            self.trace.append(f"{self.loop.time():.6f} {event}")

    def violated(self, what: str) -> None:
        """Note that something happened that must not. The run goes on to the next check."""
        self.say("VIOLATION", what)
        self.violations.append(what)

    # --- machines

    def add_machine(self, machine: str) -> None:
        self.disks.add(machine)
        limit = MAX_CLOCK_ERROR_MS
        self.clock_errors_ms[machine] = self.random_for(f"clock/{machine}").randint(-limit, limit)

    def start(self, machine: str) -> Process:
        """Begin a new life of the program on a machine."""
        assert machine not in self.processes
        self._lives += 1
        process = self.processes[machine] = Process(machine, self._lives)
        self.network.off.discard(machine)
        if machine in self.disks.conditions:
            self.disks.conditions[machine].has_failed = False
        self.say("start", machine)
        return process

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        return self.loop.spawn(process, work)

    def kill(self, machine: str, *, power: bool) -> None:
        """End the program on a machine, or with `power` the machine itself: what was not flushed is then lost."""
        process = self.processes.pop(machine, None)
        if process is None:
            return
        self.say("power lost" if power else "killed", machine)
        self.loop.kill(process)
        if power:
            self.network.off.add(machine)
        self.network.process_ended(process, silently=power)
        with files.open_files.lock:
            for file in [each for each in files.open_files.files if each.name.startswith(f"/{machine}/")]:
                file.close()
        files.flushed_directories.clear()
        self.disks.process_ended(machine)
        if power:
            self.disks.lose_power(machine, self.random_for(f"power/{process}"))

    def pause(self, machine: str) -> None:
        if machine in self.processes:
            self.say("paused", machine)
            self.loop.pause(self.processes[machine])

    def resume(self, machine: str) -> None:
        if machine in self.processes:
            self.say("resumed", machine)
            self.loop.resume(self.processes[machine])

    def surroundings(self, process: Process) -> Surroundings:
        """What a node of this process is given."""
        machine = process.machine

        def monotonic_ns() -> int:
            return 1_000_000_000 + int(self.loop.time() * 1e9)

        return Surroundings(
            now_ms=lambda: self.wall_ms(machine),
            monotonic_ms=lambda: monotonic_ns() // 1_000_000,
            monotonic_ns=monotonic_ns,
            session_ms=lambda: monotonic_ns() // 1_000_000,
            thread_cpu_ms=lambda: 0,
            random_for=lambda purpose: self.random_for(f"{process}/{purpose}"),
            listen=self.network.listen,
            host_name=lambda: machine,
            locks=HeldLocks(),
            watches_loop=False,
        )

    def wall_ms(self, machine: str | None = None) -> int:
        """The time of day on a machine, by default that of the running process."""
        if machine is None:
            process = RUNNING.get()
            machine = "" if process is None else process.machine
        return EPOCH_MS + int(self.loop.time() * 1000) + self.clock_errors_ms.get(machine, 0)

    def _thread_times(self, process: Process | None) -> tuple[float, float]:
        draw = self._thread_random.random
        condition = self.disks.conditions.get(process.machine) if process is not None else None
        slowness = 1.0 if condition is None else condition.slowness
        return draw() * THREAD_S * slowness, draw() * THREAD_S / 4

    # --- running

    def run(self, work: Coroutine[Any, Any, Any]) -> Any:
        """Run in this world until the work is done. Nothing else may run in this process meanwhile."""
        bits = self.random_for("standard library")
        random.seed(f"{self.seed}/standard library")
        with contextlib.ExitStack() as stack:
            for target, name, value in (
                (files, "system", self.disks),
                (slices, "_TURNS", _Turns()),
                # Clients take the time of day and their ids from the standard library.
                (time, "time", lambda: self.wall_ms() / 1000),
                (uuid, "uuid4", lambda: uuid.UUID(int=bits.getrandbits(128), version=4)),
            ):
                stack.enter_context(patch.object(target, name, value))
            stack.enter_context(self._logging())
            self.loop.set_exception_handler(self._unhandled)
            asyncio.set_event_loop(self.loop)
            return self.loop.run_until_complete(work)

    def _unhandled(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if not isinstance(error, asyncio.CancelledError):
            self.violated(f"unhandled: {context.get('message')}: {error!r}")

    @contextlib.contextmanager
    def _logging(self) -> Iterator[None]:
        """Put what nodes log into the trace. A traceback is a violation: what may happen is logged without."""
        handler = _Handler(self)
        logger = logging.getLogger("barnabas")
        before, propagates = logger.level, logger.propagate
        logger.addHandler(handler)
        logger.setLevel(logging.INFO if self._keeps_trace else logging.WARNING)
        logger.propagate = False
        try:
            yield
        finally:
            logger.removeHandler(handler)
            logger.setLevel(before)
            logger.propagate = propagates


class _Turns:
    """The locks of sliced work: one of each process, as each has an event loop of its own in reality."""

    def __init__(self) -> None:
        self._locks: dict[Process | None, asyncio.Lock] = {}

    def get(self, loop: asyncio.AbstractEventLoop) -> asyncio.Lock | None:
        return self._locks.get(RUNNING.get())

    def __setitem__(self, loop: asyncio.AbstractEventLoop, lock: asyncio.Lock) -> None:
        self._locks[RUNNING.get()] = lock


class _Handler(logging.Handler):
    def __init__(self, world: World) -> None:
        super().__init__()
        self._world = world
        self._formatter = logging.Formatter()

    def emit(self, record: logging.LogRecord) -> None:
        world, process = self._world, RUNNING.get()
        world.trace.append(f"{world.loop.time():.6f} {process} {record.levelname} {record.name} {record.getMessage()}")
        if record.exc_info and record.exc_info[1] is not None:
            text = self._formatter.formatException(record.exc_info)
            world.violated(f"{process}: {record.getMessage()}\n{text}")
