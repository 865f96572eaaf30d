"""Clocks and timers that can be moved ahead, so that hours pass at once for retention, sessions, transactions and tokens.

Its one rule: time that nodes wait for each other or for a disk is not moved. No node was silent meanwhile, so no broker is
fenced and no controller is elected. Timeouts of requests in progress are not moved either.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.broker.faults.rules import RuleError
from barnabas.broker.surroundings import Surroundings

MAX_AHEAD_MS: Final = 100 * 365 * 24 * 3600 * 1000


class Timer:
    """A call that is due at a time of the moved clock."""

    def __init__(self, clock: MovableClock, due_ms: int, callback: Callable[[], None]) -> None:
        self._clock = clock
        self._due_ms = due_ms
        self._callback = callback
        self._loop = asyncio.get_running_loop()
        self._handle: asyncio.TimerHandle
        self.arm()

    def arm(self) -> None:
        """Wait for the rest of the time."""
        left_ms = max(0, self._due_ms - self._clock.monotonic_ms())
        self._handle = self._loop.call_later(left_ms / 1000, self._fire)

    def move(self) -> None:
        self._handle.cancel()
        self.arm()

    def cancel(self) -> None:
        self._handle.cancel()
        self._clock.timers.pop(self, None)

    def _fire(self) -> None:
        self._clock.timers.pop(self, None)
        self._callback()


class MovableClock:
    """The clocks of the nodes of one process, ahead of those of `base`."""

    def __init__(self, base: Surroundings) -> None:
        self._base = base
        self.ahead_ms = 0
        self.timers: dict[Timer, None] = {}

    def now_ms(self) -> int:
        return self._base.now_ms() + self.ahead_ms

    def monotonic_ms(self) -> int:
        return self._base.monotonic_ms() + self.ahead_ms

    def call_later(self, delay_ms: float, callback: Callable[[], None]) -> Timer:
        timer = Timer(self, self.monotonic_ms() + int(max(delay_ms, 0)), callback)
        self.timers[timer] = None
        return timer

    async def sleep(self, seconds: float) -> None:
        over: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        timer = self.call_later(seconds * 1000, lambda: None if over.done() else over.set_result(None))
        try:
            await over
        finally:
            timer.cancel()

    def advance(self, ms: int) -> None:
        """Move the clocks ahead. What is due by then happens in the next turns of the event loop. Raises RuleError."""
        if not isinstance(ms, int) or isinstance(ms, bool) or ms < 0 or self.ahead_ms + ms > MAX_AHEAD_MS:
            raise RuleError(f"time moves ahead by whole milliseconds, and by a hundred years at most, not by {ms!r}")
        self.ahead_ms += ms
        for timer in list(self.timers):
            timer.move()
