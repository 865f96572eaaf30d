"""A scheduler whose clock is turned by hand."""

from __future__ import annotations

from collections.abc import Callable


class ManualHandle:
    def __init__(self, at_ms: int, callback: Callable[[], None]) -> None:
        self.at_ms = at_ms
        self.callback = callback
        self.is_cancelled = False

    def cancel(self) -> None:
        self.is_cancelled = True


class ManualClock:
    """Implements `replicated.scheduler.Scheduler`."""

    def __init__(self, now_ms: int = 1_700_000_000_000) -> None:
        self.time_ms = now_ms
        self._handles: list[ManualHandle] = []

    def now_ms(self) -> int:
        return self.time_ms

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> ManualHandle:
        handle = ManualHandle(self.time_ms + delay_ms, callback)
        self._handles.append(handle)
        return handle

    def advance(self, by_ms: int) -> None:
        """Let time pass; what is due is called in order, each at its time."""
        end_ms = self.time_ms + by_ms
        while due := [h for h in self._handles if h.at_ms <= end_ms and not h.is_cancelled]:
            first = min(due, key=lambda handle: handle.at_ms)
            self._handles.remove(first)
            self.time_ms = max(self.time_ms, first.at_ms)
            first.callback()
        self.time_ms = end_ms
        self._handles = [h for h in self._handles if not h.is_cancelled]

    @property
    def waiting(self) -> int:
        """How many calls are to come."""
        return sum(not handle.is_cancelled for handle in self._handles)
