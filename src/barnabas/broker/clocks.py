"""The clocks of the shell: the wall clock, and one that nobody sets. What decides is given the time."""

from __future__ import annotations

import time


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def monotonic_ms() -> int:
    return time.monotonic_ns() // 1_000_000
