"""Slices: long work on the event loop, cut into turns of a few milliseconds.

Its one rule: work whose size a client or a disk decides is a generator that yields where it may pause, and this module
decides when it does. The generator needs no event loop, so the pure parts can be written this way too. In between,
the loop serves everyone else; all sliced work of a loop shares one turn at a time, however much of it there is.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Generator
from typing import Any, TypeVar
from weakref import WeakKeyDictionary

R = TypeVar("R")
Slices = Generator[None, None, R]

TURN_S = 0.002
MAX_STEPS = 10_000  # of one turn: a limit also where the clock is simulated and stands still meanwhile

_UNFINISHED: Any = object()
_TURNS: WeakKeyDictionary[asyncio.AbstractEventLoop, asyncio.Lock] = WeakKeyDictionary()


def begin(work: Slices[R]) -> R | Awaitable[R]:
    """Run the first turn at once. Return the result if that was enough, or an awaitable of it."""
    result = _run_turn(work, asyncio.get_running_loop().time)
    return _finish(work) if result is _UNFINISHED else result


async def in_slices(work: Slices[R]) -> R:
    """Run the work in turns and return its result."""
    result = _run_turn(work, asyncio.get_running_loop().time)
    return await _finish(work) if result is _UNFINISHED else result


async def _finish(work: Slices[R]) -> R:
    loop = asyncio.get_running_loop()
    turn = _TURNS.get(loop)
    if turn is None:
        turn = _TURNS[loop] = asyncio.Lock()
    result: R = _UNFINISHED
    try:
        while result is _UNFINISHED:
            async with turn:
                await asyncio.sleep(0)
                result = _run_turn(work, loop.time)
    finally:
        work.close()
    return result


def _run_turn(work: Slices[R], clock: Callable[[], float]) -> R:
    """Continue the work until its turn ends. Return its result, or `_UNFINISHED`."""
    until = clock() + TURN_S
    try:
        for _ in range(MAX_STEPS):
            next(work)
            if clock() >= until:
                break
    except StopIteration as end:
        result: R = end.value
        return result
    return _UNFINISHED  # type: ignore[no-any-return]
