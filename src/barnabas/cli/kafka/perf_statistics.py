"""Statistics of Kafka's performance tools: latencies and rates as their lines. Pure: the time is passed in.

Its one rule: the lines are Kafka's. A rate over no time is NaN or Infinity, as in Java.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

_MAX_SAMPLES = 500_000
_MEGABYTE = 1024 * 1024
_PERCENTILES = (0.5, 0.95, 0.99, 0.999)


def ratio(value: float, by: float) -> float:
    """Divide as Java does.

    >>> ratio(1, 0), ratio(0, 0), ratio(1, 2)
    (inf, nan, 0.5)
    """
    if by:
        return value / by
    return math.nan if not value else math.copysign(math.inf, value)


def fixed(value: float, digits: int) -> str:
    """Format as Java's `%.Nf`.

    >>> fixed(1.25, 4), fixed(math.nan, 2), fixed(math.inf, 2)
    ('1.2500', 'NaN', 'Infinity')
    """
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "Infinity" if value > 0 else "-Infinity"
    return f"{value:.{digits}f}"


def percentiles(values: Sequence[int], wanted: Sequence[float]) -> list[int]:
    """Return percentiles of sorted values; 0 if there are none.

    >>> percentiles([1, 2, 3, 4], [0.5, 0.99])
    [3, 4]
    """
    return [values[min(int(each * len(values)), len(values) - 1)] if values else 0 for each in wanted]


class ProducerStatistics:
    """Counts records of a producer; at most 500,000 latencies are kept, evenly sampled."""

    def __init__(
        self, expected: int, now_ms: int, reporting_interval_ms: int, *, is_steady_state: bool = False
    ) -> None:
        self._start_ms = self._window_start_ms = now_ms
        self._sampling = max(1, expected // min(expected, _MAX_SAMPLES))
        self._reporting_interval_ms = reporting_interval_ms
        self._is_steady_state = is_steady_state
        self._latencies: list[int] = []
        self._count = self._bytes = self._total_latency = self._max_latency = 0
        self._window_count = self._window_bytes = self._window_latency = self._window_max = 0
        self.is_quiet = False
        """Whether intervals are not reported."""

    def record(self, latency_ms: int, size: int, now_ms: int) -> list[str]:
        """Count a record that was written. Returns the lines to print, at the end of an interval."""
        if self._count % self._sampling == 0:
            self._latencies.append(latency_ms)
        self._count += 1
        self._bytes += size
        self._total_latency += latency_ms
        self._max_latency = max(self._max_latency, latency_ms)
        self._window_count += 1
        self._window_bytes += size
        self._window_latency += latency_ms
        self._window_max = max(self._window_max, latency_ms)
        if now_ms - self._window_start_ms < self._reporting_interval_ms:
            return []
        lines = ["In steady state."] if self._is_steady_state and self._count == self._window_count else []
        if not self.is_quiet:
            lines.append(self._window_line(now_ms))
        self._window_start_ms = now_ms
        self._window_count = self._window_bytes = self._window_latency = self._window_max = 0
        return lines

    def _window_line(self, now_ms: int) -> str:
        elapsed_s = (now_ms - self._window_start_ms) / 1000
        return (
            f"{self._window_count} records sent, {fixed(ratio(self._window_count, elapsed_s), 1)} records/sec "
            f"({fixed(ratio(self._window_bytes / _MEGABYTE, elapsed_s), 2)} MB/sec), "
            f"{fixed(ratio(self._window_latency, self._window_count), 1)} ms avg latency, "
            f"{fixed(self._window_max, 1)} ms max latency."
        )

    def total_line(self, now_ms: int) -> str:
        elapsed_s = (now_ms - self._start_ms) / 1000
        found = percentiles(sorted(self._latencies), _PERCENTILES)
        return (
            f"{self._count}{' steady state' if self._is_steady_state else ''} records sent, "
            f"{fixed(ratio(self._count, elapsed_s), 6)} records/sec "
            f"({fixed(ratio(self._bytes / _MEGABYTE, elapsed_s), 2)} MB/sec), "
            f"{fixed(ratio(self._total_latency, self._count), 2)} ms avg latency, "
            f"{fixed(self._max_latency, 2)} ms max latency, "
            f"{found[0]} ms 50th, {found[1]} ms 95th, {found[2]} ms 99th, {found[3]} ms 99.9th."
        )


class ConsumerStatistics:
    """Counts records of a consumer, and the time it takes to join its group."""

    def __init__(self, now_ms: int) -> None:
        self.start_ms = now_ms
        self.messages = 0
        self.bytes = 0
        self.join_ms = 0
        self._round_join_ms = 0
        self._join_start_ms = now_ms
        self._report_ms = now_ms
        self._reported_messages = 0
        self._reported_bytes = 0

    def revoked(self, now_ms: int) -> None:
        """Note that the member has no partitions any more."""
        self._join_start_ms = now_ms

    def assigned(self, now_ms: int) -> None:
        """Note that the member has its first partitions."""
        took_ms = now_ms - self._join_start_ms
        self.join_ms += took_ms
        self._round_join_ms += took_ms

    def is_due(self, now_ms: int, interval_ms: int) -> bool:
        return now_ms - self._report_ms >= interval_ms

    def interval_cells(self, now_ms: int) -> list[str]:
        """Return the numbers since the last report, and begin the next interval."""
        elapsed_s = (now_ms - self._report_ms) / 1000
        fetch_ms = now_ms - self._report_ms - self._round_join_ms
        megabytes = (self.bytes - self._reported_bytes) / _MEGABYTE
        messages = self.messages - self._reported_messages
        fetch_s = fetch_ms / 1000
        cells = [
            fixed(self.bytes / _MEGABYTE, 4),
            fixed(ratio(megabytes, elapsed_s), 4),
            str(self.messages),
            fixed(ratio(messages, elapsed_s), 4),
            str(self._round_join_ms),
            str(fetch_ms),
            fixed(megabytes / fetch_s if fetch_ms > 0 else 0.0, 4),
            fixed(messages / fetch_s if fetch_ms > 0 else 0.0, 4),
        ]
        self._round_join_ms = 0
        self._report_ms, self._reported_messages, self._reported_bytes = now_ms, self.messages, self.bytes
        return cells

    def total_cells(self, now_ms: int) -> list[str]:
        elapsed_s = (now_ms - self.start_ms) / 1000
        fetch_ms = now_ms - self.start_ms - self.join_ms
        megabytes = self.bytes / _MEGABYTE
        return [
            fixed(megabytes, 4),
            fixed(ratio(megabytes, elapsed_s), 4),
            str(self.messages),
            fixed(ratio(self.messages, elapsed_s), 4),
            str(self.join_ms),
            str(fetch_ms),
            fixed(ratio(megabytes, fetch_ms / 1000), 4),
            fixed(ratio(self.messages, fetch_ms / 1000), 4),
        ]
