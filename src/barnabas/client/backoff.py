"""How long to wait before trying again: longer each time, up to a limit, and not all at the same moment. Pure.

Randomness is given as a number between 0 and 1, so that a test knows the answer.
"""

from __future__ import annotations

from typing import NamedTuple

JITTER = 0.2
_MAX_DOUBLINGS = 32


class Backoff(NamedTuple):
    """
    >>> [Backoff(100, 1_000).delay_ms(attempt, 0.5) for attempt in range(6)]
    [100.0, 200.0, 400.0, 800.0, 1000.0, 1000.0]
    >>> Backoff(100, 1_000).delay_ms(0, 0.0), Backoff(100, 1_000).delay_ms(9, 1.0)
    (80.0, 1200.0)
    """

    first_ms: float
    max_ms: float

    def delay_ms(self, attempt: int, random: float) -> float:
        """The wait after the failure number `attempt`, counted from 0: a fifth more or less than its place in the row."""
        middle_ms = min(self.first_ms * 2.0 ** min(attempt, _MAX_DOUBLINGS), max(self.max_ms, self.first_ms))
        return middle_ms * (1 + JITTER * (2 * random - 1))
