"""Slices: long work on the event loop, cut into turns of a few milliseconds.

Its one rule: work whose size a client or a disk decides is a generator that yields where it may pause, and this module
decides when it does. The generator needs no event loop, so the pure parts can be written this way too. It may also yield
an awaitable to wait for; its result and its errors are for whoever made it. In between, the loop serves everyone else.
All sliced work of a loop shares one turn at a time, however much of it there is.

`steps` has what such generators themselves need.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Awaitable, Callable
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

from barnabas.steps import Slices

__all__ = ["MAX_STEPS", "TURN_S", "Breather", "Queue", "Slices", "Work", "begin", "in_slices", "waited"]

R = TypeVar("R")

TURN_S = 0.002
MAX_STEPS = 10_000  # of one turn: a limit also where the clock is simulated and stands still meanwhile

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class _Done(NamedTuple, Generic[R]):
    result: R


def begin(work: Slices[R]) -> R | asyncio.Task[R]:
    """Run the first turn at once. Return the result if that was enough, or the task that does the rest."""
    try:
        awaited = next(work)  # most work is small and ends here, without a look at the clock
    except StopIteration as end:
        return cast(R, end.value)
    step = _run_turn(work, _clock(), MAX_STEPS - 1) if awaited is None else awaited
    if isinstance(step, _Done):
        return cast(R, step.result)
    return asyncio.get_running_loop().create_task(_finish(work, step))


async def in_slices(work: Slices[R]) -> R:
    """Run the work in turns and return its result."""
    try:
        awaited = next(work)
    except StopIteration as end:
        return cast(R, end.value)
    step = _run_turn(work, _clock(), MAX_STEPS - 1) if awaited is None else awaited
    return step.result if isinstance(step, _Done) else await _finish(work, step)


async def _finish(work: Slices[R], step: _Done[R] | Awaitable[object] | None) -> R:
    loop = asyncio.get_running_loop()
    turn = _TURNS.get(loop)
    if turn is None:
        turn = _TURNS[loop] = asyncio.Lock()
    clock = _clock()
    try:
        while True:
            if isinstance(step, _Done):
                return cast(R, step.result)
            if step is not None:
                await step
            async with turn:
                await asyncio.sleep(0)
                step = _run_turn(work, clock, MAX_STEPS)
    finally:
        work.close()


def waited(awaitable: Awaitable[R]) -> Slices[R]:
    """Wait for something within sliced work. Its result is returned, and its error raised, here.

    It is cancelled if the work is closed before.
    """
    future = asyncio.ensure_future(awaitable)
    try:
        if not future.done():
            yield asyncio.wait([future])
        return future.result()
    finally:
        future.cancel()


class Breather:
    """For a coroutine with a long loop: `await breather()` lets others run once its turn is over."""

    def __init__(self) -> None:
        self._clock = _clock()
        self._until = self._clock() + TURN_S

    async def __call__(self) -> None:
        if self._clock() >= self._until:
            await in_slices(_pause())
            self._until = self._clock() + TURN_S


def _pause() -> Slices[None]:
    yield asyncio.sleep(0)


class Work(Generic[R]):
    """One piece of work in a `Queue`."""

    def __init__(self, steps: Slices[R]) -> None:
        self.is_done = False
        self.is_at_work = False  # in this moment, so that the caller is part of it
        self._steps = steps
        self._result: R | None = None
        self._error: Exception | None = None
        self._ended: asyncio.Future[None] | None = None

    @property
    def result(self) -> R:
        """The result of work that is done. Raises what the work raised."""
        if self._error is not None:
            raise self._error
        return cast(R, self._result)

    async def wait(self) -> R:
        """Wait for the result. If the caller is cancelled, the work is still done."""
        if not self.is_done:
            if self._ended is None:
                self._ended = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._ended)
        return self.result

    def step(self) -> None:
        self.is_at_work = True
        try:
            next(self._steps)
        except StopIteration as end:
            self._result = end.value
            self._end()
        except Exception as error:
            self._error = error
            self._end()
        finally:
            self.is_at_work = False

    def _end(self) -> None:
        self.is_done = True
        if self._ended is not None and not self._ended.done():
            self._ended.set_result(None)


class Queue:
    """Work that is done in order: each piece begins when the one before has ended. The pieces wait for nothing.

    A caller that cannot wait finishes what has begun, or all of it, in its own turn.
    """

    def __init__(self) -> None:
        self._queue: deque[Work[Any]] = deque()
        self._is_running = False
        self._rest: object = None  # the task, which the event loop itself would not keep

    def add(self, steps: Slices[R]) -> Work[R]:
        """Add work. If nothing is before it, its first turn is now."""
        work = Work(steps)
        self._queue.append(work)
        if not self._is_running:
            self._is_running = True
            self._rest = begin(self._run())
        return work

    def finish_begun(self) -> None:
        """Do the rest of the work that has begun, without a pause. Does nothing within that work, at its end."""
        if self._queue and not self._queue[0].is_at_work:
            self._finish(self._queue[0])

    def finish(self) -> None:
        """Do all work that is left, without a pause."""
        while self._queue and not self._queue[0].is_at_work:
            self._finish(self._queue[0])

    def _finish(self, work: Work[Any]) -> None:
        while not work.is_done:
            work.step()
        if self._queue and self._queue[0] is work:
            self._queue.popleft()

    def _run(self) -> Slices[None]:
        try:
            while self._queue:
                work = self._queue[0]
                if not work.is_done:
                    work.step()
                if work.is_done:
                    if self._queue and self._queue[0] is work:
                        self._queue.popleft()
                    if not self._queue:
                        break
                yield
        finally:
            self._is_running = False


def _clock() -> Callable[[], float]:
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:  # nobody else can be waiting
        return lambda: 0.0


def _run_turn(work: Slices[R], clock: Callable[[], float], max_steps: int) -> _Done[R] | Awaitable[object] | None:
    """Continue the work until it ends, waits for something, or its turn is over (None)."""
    until = clock() + TURN_S
    try:
        for _ in range(max_steps):
            awaited = next(work)
            if awaited is not None or clock() >= until:
                return cast(Awaitable[object] | None, awaited)
    except StopIteration as end:
        return _Done(end.value)
    return None
