"""The trend of lag: how fast it grows or shrinks, and when a group will have caught up. Pure.

Its one rule: the rate is measured over a window of samples, because groups commit in steps. Between two commits, lag only
grows, so the difference of two neighbouring samples says little.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

K = TypeVar("K", bound=Hashable)

WINDOW_MS = 30_000
"""Time over which the rate is measured. It holds several commits of a consumer, which commits every 5 s by default."""
MAX_SAMPLES = 600
"""Samples of one partition that are kept. With more in a window, the window is shorter."""


class LagSample(NamedTuple):
    """The lag at a moment."""

    at_ms: int
    lag: int


class LagTrend(NamedTuple):
    """The change of lag, in records per second; above 0 it grows. `catch_up_ms` is None if the lag does not shrink."""

    lag_per_second: float
    catch_up_ms: int | None


def lag_trend(samples: Sequence[LagSample]) -> LagTrend | None:
    """Return the trend from the first sample to the last, or None if no time lies between them.

    >>> lag_trend([LagSample(0, 1_000), LagSample(5_000, 1_000), LagSample(10_000, 400)])
    LagTrend(lag_per_second=-60.0, catch_up_ms=6667)
    >>> lag_trend([LagSample(0, 100), LagSample(2_000, 300)])
    LagTrend(lag_per_second=100.0, catch_up_ms=None)
    """
    if len(samples) < 2 or samples[-1].at_ms <= samples[0].at_ms:
        return None
    first, last = samples[0], samples[-1]
    per_ms = (last.lag - first.lag) / (last.at_ms - first.at_ms)
    catch_up_ms = 0 if last.lag == 0 else round(last.lag / -per_ms) if per_ms < 0 else None
    return LagTrend(round(1000 * per_ms, 3), catch_up_ms)


class LagHistory(Generic[K]):
    """The samples of the last `window_ms` for each key. Keys that are missing from a sample are forgotten."""

    def __init__(self, window_ms: int = WINDOW_MS) -> None:
        self._window_ms = window_ms
        self._samples: dict[K, deque[LagSample]] = {}

    def add(self, at_ms: int, lags: Mapping[K, int | None]) -> None:
        """Add the lag of each key at a moment. An unknown lag (None) starts the history of its key anew."""
        known = {key: lag for key, lag in lags.items() if lag is not None}
        self._samples = {key: self._samples.get(key) or deque(maxlen=MAX_SAMPLES) for key in known}
        for key, samples in self._samples.items():
            samples.append(LagSample(at_ms, known[key]))
            # One sample from before the window stays, so that a window shorter than the interval still has two.
            while len(samples) > 2 and samples[1].at_ms <= at_ms - self._window_ms:
                samples.popleft()

    def trend(self, key: K) -> LagTrend | None:
        return lag_trend(tuple(self._samples.get(key, ())))


def sum_of_trends(lags: Iterable[int | None], trends: Iterable[LagTrend | None]) -> LagTrend | None:
    """Return the trend of the sum: rates add up, and all have caught up when the slowest has. None if none is known.

    >>> sum_of_trends([100, 10], [LagTrend(-10.0, 10_000), LagTrend(-1.0, 10_000)])
    LagTrend(lag_per_second=-11.0, catch_up_ms=10000)
    >>> sum_of_trends([100, 10], [LagTrend(-10.0, 10_000), LagTrend(5.0, None)])
    LagTrend(lag_per_second=-5.0, catch_up_ms=None)
    """
    known = [(lag, trend) for lag, trend in zip(lags, trends, strict=True) if trend is not None]
    if not known:
        return None
    waits = [trend.catch_up_ms for lag, trend in known if lag]
    is_certain = all(wait is not None for wait in waits)
    catch_up_ms = max((wait or 0 for wait in waits), default=0) if is_certain else None
    return LagTrend(round(sum(trend.lag_per_second for _, trend in known), 3), catch_up_ms)
