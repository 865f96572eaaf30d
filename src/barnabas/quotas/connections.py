"""Quotas on new connections per second: of an address, of a listener, and of the whole node.

As in Kafka, a new connection above the rate of its listener or of the node waits, and so do those behind it. One above the
rate of its address is not served, and counts for nothing. Neither waits longer than one window.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from barnabas.quotas.bounds import Bounds
from barnabas.quotas.rate import Rate, Rates, Windows

UNLIMITED: Final = 2**31 - 1


class ConnectionRates:
    """The rates of new connections. `limits` are those of listeners by name, and `limit` is that of the node."""

    def __init__(self, windows: Windows, by_ip: Bounds) -> None:
        self.limit = UNLIMITED
        self.limits: Mapping[str, int] = {}
        self._windows = windows
        self._by_ip = by_ip
        self._node = Rate(windows)
        self._listeners: dict[str, Rate] = {}
        self._addresses: Rates[str] = Rates(windows)

    def accepted(self, listener_name: str, now_ms: int, *, is_protected: bool = False) -> int:
        """Record a new connection and return how long it has to wait, in milliseconds.

        A protected listener, that of brokers beside others, is not subject to the limit of the node.
        """
        wait_ms = 0 if is_protected else self._wait_ms(self._node, self.limit, now_ms)
        rate = self._listeners.setdefault(listener_name, Rate(self._windows))
        return max(wait_ms, self._wait_ms(rate, self.limits.get(listener_name, UNLIMITED), now_ms))

    def throttle_time_ms(self, listener_name: str, host: str, now_ms: int, *, is_protected: bool = False) -> int:
        """Record a new connection for its address. If the result is not 0, do not serve it, and close it after that time."""
        bound = self._by_ip.of_ip(host)
        if bound is None:
            return 0
        rate = self._addresses.of(host, now_ms)
        throttle_time_ms = self._wait_ms(rate, bound, now_ms)
        if throttle_time_ms:
            rate.record(-1, now_ms)
            self._listeners[listener_name].record(-1, now_ms)
            if not is_protected:
                self._node.record(-1, now_ms)
        return throttle_time_ms

    def _wait_ms(self, rate: Rate, bound: float, now_ms: int) -> int:
        rate.record(1, now_ms)
        if bound >= UNLIMITED:
            return 0
        return min(rate.measure(now_ms).throttle_time_ms(bound), self._windows.size_ms)
