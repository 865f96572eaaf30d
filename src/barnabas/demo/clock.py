"""The wall clock of this process, set back while half a day is played in seconds.

Its one rule: it never goes back once it is set, and in the end it is the true one again. What is timed does not notice: that
goes by the monotonic clock.
"""

from __future__ import annotations

import time
from types import TracebackType
from typing import Self

_TRUE = time.time_ns
_TRUE_S = time.time


class Clock:
    """`with Clock(begin_ms)`: it is that time now, until `move_to` says another. None: the clock stays as it is."""

    def __init__(self, begin_ms: int | None) -> None:
        self._is_set = begin_ms is not None
        self._behind_ns = 0 if begin_ms is None else max(0, _TRUE() - begin_ms * 1_000_000)

    def __enter__(self) -> Self:
        if self._is_set:
            time.time_ns = lambda: _TRUE() - self._behind_ns
            time.time = lambda: _TRUE_S() - self._behind_ns / 1e9
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        time.time_ns, time.time = _TRUE, _TRUE_S

    def move_to(self, at_ms: int) -> None:
        """Never back, and never beyond the true time."""
        self._behind_ns = min(self._behind_ns, max(0, _TRUE() - at_ms * 1_000_000))


def true_ms() -> int:
    return _TRUE() // 1_000_000
