"""How fast something happens, over a few windows of time, and how long a client above its quota has to wait.

The figures are those of Kafka. A rate is what was recorded in the last windows, divided by the time since the oldest of
them began. Windows that are missing, because nothing was recorded before, count as time in which nothing happened. So a
client without any history may send as much at once as its quota allows in all windows but one.
"""

from __future__ import annotations

from collections import OrderedDict
from math import floor
from typing import Final, Generic, NamedTuple, TypeVar

K = TypeVar("K")

MAX_THROTTLE_TIME_MS: Final = 2**31 - 1
MAX_RATES: Final = 16384
FORGOTTEN_AFTER_MS: Final = 60 * 60 * 1000


class Windows(NamedTuple):
    """The number of windows and their length, `quota.window.num` and `quota.window.size.seconds`."""

    number: int
    size_ms: int


class Measured(NamedTuple):
    """A rate per second, and the time over which it was measured."""

    per_second: float
    over_ms: int

    def throttle_time_ms(self, bound: float) -> int:
        """Return the time without anything recorded that brings the rate down to the bound; 0 if it is not above it."""
        if self.per_second <= bound:
            return 0
        if bound <= 0:
            return MAX_THROTTLE_TIME_MS
        return min(floor((self.per_second - bound) / bound * self.over_ms + 0.5), MAX_THROTTLE_TIME_MS)


class _Sample:
    """What was recorded in one window."""

    __slots__ = ("began_ms", "last_ms", "value")

    def __init__(self, now_ms: int) -> None:
        self.reset(now_ms)

    def reset(self, now_ms: int) -> None:
        self.began_ms = self.last_ms = now_ms
        self.value = 0.0


class Rate:
    """A rate over the last windows. A window begins when something is recorded after the end of the one before."""

    __slots__ = ("_current", "_samples", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._samples: list[_Sample] = []  # one more than windows, because the oldest may have begun before the first
        self._current = 0

    def record(self, value: float, now_ms: int) -> None:
        """Add a value. A negative one takes back what was recorded."""
        if not self._samples:
            self._samples.append(_Sample(now_ms))
        sample = self._samples[self._current]
        if now_ms - sample.began_ms >= self._windows.size_ms:
            sample = self._next(now_ms)
        sample.value += value
        sample.last_ms = now_ms

    def measure(self, now_ms: int) -> Measured:
        number, size_ms = self._windows
        total, oldest_ms = 0.0, now_ms
        for sample in self._samples:
            if now_ms - sample.last_ms >= number * size_ms:
                sample.reset(now_ms)
            total += sample.value
            oldest_ms = min(oldest_ms, sample.began_ms)
        over_ms = now_ms - oldest_ms
        over_ms += max(number - 1 - over_ms // size_ms, 0) * size_ms
        over_ms = max(over_ms, 1)
        return Measured(total * 1000 / over_ms, over_ms)

    def _next(self, now_ms: int) -> _Sample:
        self._current = (self._current + 1) % (self._windows.number + 1)
        if self._current == len(self._samples):
            self._samples.append(_Sample(now_ms))
        else:
            self._samples[self._current].reset(now_ms)
        return self._samples[self._current]


class Rates(Generic[K]):
    """The rates of many, such as clients. An idle one is forgotten after an hour, or when there are `MAX_RATES`."""

    __slots__ = ("_rates", "_windows")

    def __init__(self, windows: Windows) -> None:
        self._windows = windows
        self._rates: OrderedDict[K, tuple[Rate, int]] = OrderedDict()  # with the time of the last use; oldest first

    def __len__(self) -> int:
        return len(self._rates)

    def of(self, key: K, now_ms: int) -> Rate:
        """Return the rate of a key, in which something is about to be recorded."""
        found = self._rates.get(key)
        rate = Rate(self._windows) if found is None else found[0]
        self._rates[key] = rate, now_ms
        if found is None:
            self._forget(now_ms)
        else:
            self._rates.move_to_end(key)
        return rate

    def _forget(self, now_ms: int) -> None:
        """Forget what is idle: at most two for each new one, so that no request has to do much."""
        for _ in range(2):
            key, (_, last_ms) = next(iter(self._rates.items()))
            if len(self._rates) > MAX_RATES or now_ms - last_ms >= FORGOTTEN_AFTER_MS:
                del self._rates[key]
