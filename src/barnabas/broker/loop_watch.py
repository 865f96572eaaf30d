"""Watches the event loop: how late it is, and what kept it busy for too long.

Its one rule: watching costs nothing worth measuring and changes nothing. A timer on the loop records how late it runs.
A thread looks at the loop's stack while the timer is overdue, so that the log line can name the code that was running. A
turn that used the CPU for too long is a warning. One that only waited, for a disk or because the machine was busy with
other processes, is an info.
"""

from __future__ import annotations

import asyncio
import logging
import sys
import threading
from collections.abc import Callable
from types import FrameType
from typing import Final

from barnabas.broker.metrics.histogram import Histogram

_log = logging.getLogger(__name__)

BEAT_S = 0.05
MAX_TURN_MS = 100  # a longer turn is logged
LOG_EVERY_MS = 10_000
FRAMES_SHOWN = 3
LAG_BOUNDS_MS: Final = (1, 2, 5, 10, 25, 50, 100, 250, 500, 1000, 2500, 5000, 10_000)


class LoopWatch:
    """The watch over the loop that runs it. `thread_cpu_ms` returns the CPU time of the thread that calls it."""

    def __init__(self, monotonic_ms: Callable[[], int], thread_cpu_ms: Callable[[], int]) -> None:
        self.longest_ms = 0  # of all turns so far
        self.lag_ms = 0  # at the last beat
        self.long_turns = 0
        self.lags_ms = Histogram(LAG_BOUNDS_MS)  # of all beats
        self._monotonic_ms = monotonic_ms
        self._thread_cpu_ms = thread_cpu_ms
        self._last_beat_ms = monotonic_ms()
        self._last_cpu_ms = 0
        self._logged_ms = -LOG_EVERY_MS
        self._unlogged = 0
        self._seen = ""
        self._loop_thread = threading.get_ident()
        self._timer: asyncio.TimerHandle | None = None
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._look, name="loop-watch", daemon=True)

    def start(self) -> None:
        self._last_beat_ms, self._last_cpu_ms = self._monotonic_ms(), self._thread_cpu_ms()
        self._beat()
        self._thread.start()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._stopped.set()
        if self._thread.is_alive():
            self._thread.join()

    def _beat(self) -> None:
        now_ms, cpu_ms = self._monotonic_ms(), self._thread_cpu_ms()
        self.lag_ms = max(0, now_ms - self._last_beat_ms - round(BEAT_S * 1000))
        self._last_beat_ms = now_ms
        self._timer = asyncio.get_running_loop().call_later(BEAT_S, self._beat)
        self.lags_ms.observe(self.lag_ms)
        self.longest_ms = max(self.longest_ms, self.lag_ms)
        if self.lag_ms > MAX_TURN_MS:
            self.long_turns += 1
            self._report(now_ms, cpu_ms - self._last_cpu_ms)
        self._last_cpu_ms = cpu_ms
        self._seen = ""

    def _report(self, now_ms: int, worked_ms: int) -> None:
        if now_ms - self._logged_ms < LOG_EVERY_MS:
            self._unlogged += 1
            return
        more = f" ({self._unlogged} more since the last message)" if self._unlogged else ""
        level = logging.WARNING if worked_ms > MAX_TURN_MS else logging.INFO
        text = "the event loop was late by %d ms, of which it worked %d ms%s: %s"
        _log.log(level, text, self.lag_ms, worked_ms, more, self._seen or "nothing was seen")
        self._logged_ms, self._unlogged = now_ms, 0

    def _look(self) -> None:
        """Look at the stack of the loop's thread while a beat is overdue. Runs in the watching thread."""
        while not self._stopped.wait(BEAT_S):
            overdue_ms = self._monotonic_ms() - self._last_beat_ms - round(BEAT_S * 1000)
            if overdue_ms > MAX_TURN_MS // 2 and not self._seen:
                frame = sys._current_frames().get(self._loop_thread)
                self._seen = "" if frame is None else _describe(frame)


def _describe(frame: FrameType) -> str:
    """Name the innermost functions of this project, from the inside out, or the innermost of all."""
    found: list[str] = []
    innermost = f"{frame.f_code.co_qualname} of {frame.f_globals.get('__name__')}"
    current: FrameType | None = frame
    while current is not None and len(found) < FRAMES_SHOWN:
        module = str(current.f_globals.get("__name__"))
        if module.startswith("barnabas."):
            found.append(f"{module}:{current.f_lineno} {current.f_code.co_qualname}")
        current = current.f_back
    return " < ".join(found) or innermost
