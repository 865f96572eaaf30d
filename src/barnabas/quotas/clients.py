"""One quota on what clients do per second, such as `producer_byte_rate`: their rates, and how long they have to wait."""

from __future__ import annotations

from math import inf

from barnabas.quotas.bounds import Bounds, Client
from barnabas.quotas.rate import MAX_THROTTLE_TIME_MS, Rates, Windows


class ClientQuota:
    """The rates of clients, and their bounds. A user is the name of a principal."""

    def __init__(self, bounds: Bounds, windows: Windows, max_throttle_time_ms: int = MAX_THROTTLE_TIME_MS) -> None:
        self.bounds = bounds
        self.throttled = 0  # requests
        self.throttled_ms = 0
        self._windows = windows
        self._max_throttle_time_ms = max_throttle_time_ms
        self._rates: Rates[Client] = Rates(windows)

    def __len__(self) -> int:
        """The number of clients that are remembered."""
        return len(self._rates)

    def record(self, user: str, client_id: str | None, value: float, now_ms: int) -> int:
        """Record a value and return the throttle time, or 0."""
        client = self.bounds.client(user, client_id)
        if client is None:
            return 0
        rate = self._rates.of(client, now_ms)
        rate.record(value, now_ms)
        bound = self.bounds.of(client)
        if bound is None:
            return 0
        return min(rate.measure(now_ms).throttle_time_ms(bound), self._max_throttle_time_ms)

    def add(self, user: str, client_id: str | None, value: float, now_ms: int) -> None:
        """Record a value that only counts for later requests. A negative one takes back what was recorded."""
        client = self.bounds.client(user, client_id)
        if client is not None:
            self._rates.of(client, now_ms).record(value, now_ms)

    def count(self, throttle_time_ms: int) -> None:
        """Count a request that is throttled because of this quota."""
        self.throttled += 1
        self.throttled_ms += throttle_time_ms

    def most_at_once(self, user: str, client_id: str | None) -> float:
        """Return the largest value that does not throttle a client without any history."""
        client = self.bounds.client(user, client_id)
        bound = None if client is None else self.bounds.of(client)
        return inf if bound is None else bound * (self._windows.number - 1) * self._windows.size_ms / 1000
