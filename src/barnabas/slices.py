"""Slices: long work on the event loop, cut into turns of a few milliseconds.

Its one rule: work whose size a client or a disk decides is a generator that yields where it may pause, and this module
decides when it does. The generator needs no event loop, so the pure parts can be written this way too. It may also yield
an awaitable to wait for; its result and its errors are for whoever made it. In between, the loop serves everyone else.
All sliced work of a loop shares one turn at a time, however much of it there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, Generic, NamedTuple, TypeVar, cast
from weakref import WeakKeyDictionary

R = TypeVar("R")
Slices = Generator[Any, None, R]  # yields nothing, or an awaitable

TURN_S = 0.002
MAX_STEPS = 10_000  # of one turn: a limit also where the clock is simulated and stands still meanwhile

_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


class _Done(NamedTuple, Generic[R]):
    result: R


def begin(work: Slices[R]) -> R | asyncio.Task[R]:
    """Run the first turn at once. Return the result if that was enough, or the task that does the rest."""
    step = _run_turn(work, _clock())
    if isinstance(step, _Done):
        return cast(R, step.result)
    return asyncio.get_running_loop().create_task(_finish(work, step))


async def in_slices(work: Slices[R]) -> R:
    """Run the work in turns and return its result."""
    step = _run_turn(work, _clock())
    return step.result if isinstance(step, _Done) else await _finish(work, step)


async def _finish(work: Slices[R], step: _Done[R] | Awaitable[object] | None) -> R:
    loop = asyncio.get_running_loop()
    turn = _TURNS.get(loop)
    if turn is None:
        turn = _TURNS[loop] = asyncio.Lock()
    try:
        while True:
            if isinstance(step, _Done):
                return cast(R, step.result)
            if step is not None:
                await step
            async with turn:
                await asyncio.sleep(0)
                step = _run_turn(work, loop.time)
    finally:
        work.close()


def _clock() -> Callable[[], float]:
    try:
        return asyncio.get_running_loop().time
    except RuntimeError:  # nobody else can be waiting
        return lambda: 0.0


def _run_turn(work: Slices[R], clock: Callable[[], float]) -> _Done[R] | Awaitable[object] | None:
    """Continue the work until it ends, waits for something, or its turn is over (None)."""
    until = clock() + TURN_S
    try:
        for _ in range(MAX_STEPS):
            awaited = next(work)
            if awaited is not None or clock() >= until:
                return cast(Awaitable[object] | None, awaited)
    except StopIteration as end:
        return _Done(end.value)
    return None
