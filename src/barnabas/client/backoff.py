"""Exponential backoff with jitter, up to a maximum. Pure.

The caller passes a random number between 0 and 1, so that tests are deterministic.
"""

from __future__ import annotations

from typing import NamedTuple

JITTER = 0.2
_MAX_DOUBLINGS = 32


class Backoff(NamedTuple):
    """Delays that double from a first to a maximal one.

    >>> [Backoff(100, 1_000).delay_ms(attempt, 0.5) for attempt in range(6)]
    [100.0, 200.0, 400.0, 800.0, 1000.0, 1000.0]
    >>> Backoff(100, 1_000).delay_ms(0, 0.0), Backoff(100, 1_000).delay_ms(9, 1.0)
    (80.0, 1200.0)
    """

    first_ms: float
    max_ms: float

    def delay_ms(self, attempt: int, random: float) -> float:
        """Return the delay after failure number `attempt`, counted from 0, with up to 20 % of jitter."""
        middle_ms = min(self.first_ms * 2.0 ** min(attempt, _MAX_DOUBLINGS), max(self.max_ms, self.first_ms))
        return middle_ms * (1 + JITTER * (2 * random - 1))
