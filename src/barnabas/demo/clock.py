"""The wall clock of the demo's node, set back so that half a day can pass in seconds.

Its one rule: it never goes backwards, and at the end it shows the true time again. Timers are not affected: they use
the monotonic clock.
"""

from __future__ import annotations

from collections.abc import Callable


class SetBackClock:
    """Starts at `begin_ms`, or at the true time if that is None, and runs on from there. `move_to` sets it forward."""

    def __init__(self, begin_ms: int | None, true_ms: Callable[[], int]) -> None:
        self.true_ms = true_ms
        self._behind_ms = 0 if begin_ms is None else max(0, true_ms() - begin_ms)

    def now_ms(self) -> int:
        return self.true_ms() - self._behind_ms

    def move_to(self, at_ms: int) -> None:
        """Set the clock forward, never back, and never beyond the true time."""
        self._behind_ms = min(self._behind_ms, max(0, self.true_ms() - at_ms))
