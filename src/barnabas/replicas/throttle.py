"""Replication throttles: how many bytes a second replicas that are not in sync may fetch, on each side. Pure.

As in Kafka, the rate is that of the last seconds (`replication.quota.window.num` samples of
`replication.quota.window.size.seconds`). Once it is above the limit, throttled replicas wait, and replicas that are in
sync do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable

ALL = "*"


class Throttle:
    """The throttle of leaders or of followers. `max_bytes_per_second` returns the limit, `now_ms` the time."""

    def __init__(
        self,
        max_bytes_per_second: Callable[[], int],
        now_ms: Callable[[], int],
        window_ms: int = 1000,
        windows: int = 11,
    ) -> None:
        self._max_bytes_per_second = max_bytes_per_second
        self._now_ms = now_ms
        self._window_ms = window_ms
        self._windows = windows
        self._samples: deque[list[int]] = deque()  # start and bytes of each

    @property
    def window_s(self) -> float:
        return self._window_ms / 1000

    def record(self, size: int) -> None:
        """Count bytes of throttled replicas."""
        now_ms = self._now_ms()
        if not self._samples or now_ms - self._samples[-1][0] >= self._window_ms:
            self._samples.append([now_ms, 0])
            self._forget(now_ms)
        self._samples[-1][1] += size

    @property
    def is_exceeded(self) -> bool:
        now_ms = self._now_ms()
        self._forget(now_ms)
        if not self._samples:
            return False
        elapsed_ms = max(now_ms - self._samples[0][0], self._window_ms)
        return sum(size for _, size in self._samples) * 1000 / elapsed_ms > self._max_bytes_per_second()

    def _forget(self, now_ms: int) -> None:
        while self._samples and now_ms - self._samples[0][0] >= self._window_ms * self._windows:
            self._samples.popleft()


def is_throttled(throttled_replicas: Iterable[str], partition_id: int, broker_id: int) -> bool:
    """Whether a list such as `leader.replication.throttled.replicas` names the replica of a broker.

    >>> [is_throttled(each, 3, 1) for each in (["*"], ["3:1", "4:2"], ["3:2"], [])]
    [True, True, False, False]
    """
    return any(each in (ALL, f"{partition_id}:{broker_id}") for each in throttled_replicas)
