"""An event loop with virtual time: it never waits, and whatever runs belongs to a process that can be paused or killed.

Its one rule: nothing comes from outside. Time moves to the next timer when nothing is left to do, or, as if the loop were
busy, a little beyond: what becomes due meanwhile is then done in one turn. Work for threads is run in this thread, in one
piece, after a delay: so races between threads are not simulated.
"""

from __future__ import annotations

import asyncio
import heapq
from asyncio import base_events
from collections.abc import Callable, Coroutine
from contextvars import Context, ContextVar, copy_context
from typing import Any, Protocol

MAX_TURNS_AT_ONE_TIME = 200_000  # more than any work needs; a loop that spins would never end


class DeadlockError(Exception):
    """Nothing will ever happen again."""


class SpinError(Exception):
    """Time stands still, because some work calls itself again and again."""


class Process:
    """One life of the program on a machine. What it starts runs in its context and ends with it."""

    def __init__(self, machine: str, life: int) -> None:
        self.machine = machine
        self.life = life
        self.is_alive = True
        self.is_paused = False
        self.held: list[asyncio.Handle] = []  # while it is paused
        self.context = copy_context()
        self.context.run(RUNNING.set, self)

    def __repr__(self) -> str:
        return f"{self.machine}#{self.life}"


RUNNING: ContextVar[Process | None] = ContextVar("process", default=None)


class Threads(Protocol):
    """How long threads of a process take: to do their work, and to report it."""

    def __call__(self, process: Process | None) -> tuple[float, float]: ...


_Base: Any = base_events.BaseEventLoop  # its attributes and overloads have no types that fit here


class SimulatedLoop(_Base):  # type: ignore[misc]
    """`threads` decides how long work in threads takes. `network` opens connections."""

    def __init__(self, threads: Threads, connect: Callable[..., Coroutine[Any, Any, Any]]) -> None:
        super().__init__()
        self._now_s = 0.0
        self._clock_resolution = 1e-9
        self._selector = self
        self._threads = threads
        self.busy_s: Callable[[], float] = lambda: 0.0  # how far beyond the next timer time moves
        self._connect = connect
        self._turns = 0
        self.is_in_thread = False  # whether what ran last was work for a thread
        self._graves: list[object] = []  # tasks of dead processes: a coroutine that is freed would run its `finally`
        self._paused: list[Process] = []
        self.tasks: dict[asyncio.Task[Any], Process | None] = {}
        self.set_task_factory(self._new_task)

    # --- time

    def time(self) -> float:
        return self._now_s

    def select(self, timeout: float | None) -> tuple[()]:
        if timeout == 0:
            self._turns += 1
            if self._turns > MAX_TURNS_AT_ONE_TIME:
                raise SpinError(f"{MAX_TURNS_AT_ONE_TIME} turns at {self._now_s} s")
        elif self._scheduled:
            self._turns = 0
            self._now_s = max(self._now_s, self._scheduled[0].when()) + self.busy_s()
        elif not self._stopping:
            raise DeadlockError(f"nothing is left to do at {self._now_s} s")
        if self._paused:
            self._hold_back()
        return ()

    def _process_events(self, events: object) -> None:
        pass

    def _write_to_self(self) -> None:
        pass

    # --- processes

    def spawn(self, process: Process, work: Coroutine[Any, Any, Any]) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = self.create_task(work, context=process.context.copy())
        return task

    def _new_task(
        self, loop: asyncio.AbstractEventLoop, work: Coroutine[Any, Any, Any], context: Context | None = None
    ) -> asyncio.Task[Any]:
        task: asyncio.Task[Any] = asyncio.Task(work, loop=loop, context=context)
        self.tasks[task] = RUNNING.get() if context is None else context.get(RUNNING)
        task.add_done_callback(self._ended, context=_NOBODY)
        return task

    def _ended(self, task: asyncio.Task[Any]) -> None:
        self.tasks.pop(task, None)  # it is gone if its process was killed in the same turn

    def call_soon(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        handle: asyncio.Handle = super().call_soon(callback, *args, context=context)
        process = RUNNING.get() if context is None else context.get(RUNNING)
        if process is not None and (process.is_paused or not process.is_alive):
            self._ready.pop()
            (process.held if process.is_alive else self._graves).append(handle)
        return handle

    def call_soon_threadsafe(self, callback: Any, *args: Any, context: Context | None = None) -> asyncio.Handle:
        return self.call_soon(callback, *args, context=context)

    def pause(self, process: Process) -> None:
        """Stop a process at the end of this turn. What becomes due from then on happens when it is resumed."""
        process.is_paused = True
        self._paused.append(process)

    def resume(self, process: Process) -> None:
        process.is_paused = False
        if process in self._paused:
            self._paused.remove(process)
        held, process.held = process.held, []
        self._ready.extend(held)

    def kill(self, process: Process) -> None:
        """End a process between two of its steps. None of its code runs again."""
        self.resume(process)
        process.is_alive = False
        for task in [task for task, owner in self.tasks.items() if owner is process]:
            task._log_destroy_pending = False  # type: ignore[attr-defined]
            self._graves.append(task)
            del self.tasks[task]
        for handles in (self._ready, self._scheduled):
            for handle in handles:
                if _process_of(handle) is process:
                    self._graves.append((handle._callback, handle._args))
                    handle.cancel()

    def _hold_back(self) -> None:
        """Set aside what is due in paused processes."""
        due_s = self._now_s + self._clock_resolution
        for handle in [each for each in self._ready if _is_paused(each)]:
            self._ready.remove(handle)
            _process_of(handle).held.append(handle)  # type: ignore[union-attr]
        due = sorted((each for each in self._scheduled if each._when <= due_s and _is_paused(each)), key=_when)
        for handle in due:
            self._scheduled.remove(handle)
            handle._scheduled = False
            _process_of(handle).held.append(handle)  # type: ignore[union-attr]
        if due:
            heapq.heapify(self._scheduled)

    # --- threads

    def run_in_executor(self, executor: object, func: Callable[..., Any], *args: Any) -> asyncio.Future[Any]:
        """Run the function in one piece after a while, and report its result after another."""
        future: asyncio.Future[Any] = self.create_future()
        working_s, reporting_s = self._threads(RUNNING.get())

        def work() -> None:
            self.is_in_thread = True
            try:
                result = func(*args)
            except Exception as error:
                self.call_later(reporting_s, _finish, future, None, error)
            else:
                self.call_later(reporting_s, _finish, future, result, None)

        self.call_later(working_s, work)
        return future

    async def shutdown_default_executor(self, timeout: float | None = None) -> None:  # noqa: ASYNC109
        pass

    # --- network

    async def create_connection(self, factory: Any, host: Any = None, port: Any = None, **options: Any) -> Any:
        if options.get("ssl") is not None:
            raise NotImplementedError("TLS is not simulated")
        return await self._connect(factory, host, port)

    async def sock_accept(self, listener: Any) -> Any:
        return await listener.accept()

    async def connect_accepted_socket(self, factory: Any, sock: Any, **options: Any) -> Any:
        return sock.attach(factory)

    def remove_reader(self, fd: object) -> bool:
        return False


_NOBODY = copy_context()


def _finish(future: asyncio.Future[Any], result: Any, error: Exception | None) -> None:
    if future.cancelled():
        return
    if error is None:
        future.set_result(result)
    else:
        future.set_exception(error)


def _process_of(handle: asyncio.Handle) -> Process | None:
    return handle._context.get(RUNNING)  # type: ignore[attr-defined, no-any-return]


def _is_paused(handle: asyncio.Handle) -> bool:
    process = _process_of(handle)
    return process is not None and process.is_paused


def _when(handle: asyncio.TimerHandle) -> float:
    return handle.when()
