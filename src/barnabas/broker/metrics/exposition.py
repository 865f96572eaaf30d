"""Prometheus' text exposition format, version 0.0.4: metrics, labels and rows to text. No clock, no I/O.

Its one rule: the rows of a metric stand together, whatever the order in which they were added, and their number has a
limit. Values of labels are escaped.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from barnabas.broker.metrics.histogram import Histogram
from barnabas.slices import Slices

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"
MAX_ROWS: Final = 200_000
ROWS_AT_ONCE: Final = 1000  # joined before other work gets its turn

_ESCAPES: Final = str.maketrans({"\\": r"\\", '"': r"\"", "\n": r"\n"})


class Metric(NamedTuple):
    """What is measured: one name, with one row for each combination of the values of its labels."""

    name: str
    type: str
    help: str
    labels: tuple[str, ...] = ()


def counter(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "counter", help, labels)


def gauge(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "gauge", help, labels)


def histogram(name: str, help: str, *labels: str) -> Metric:
    return Metric(name, "histogram", help, labels)


def labels(**values: object) -> str:
    """Return the text of labels, to be used for the rows of several metrics."""
    return "{" + ",".join(f'{name}="{str(value).translate(_ESCAPES)}"' for name, value in values.items()) + "}"


class Exposition:
    """The rows of the metrics that were declared."""

    def __init__(self, metrics: Sequence[Metric], max_rows: int = MAX_ROWS) -> None:
        self._metrics = metrics
        self._rows: dict[str, list[str]] = {metric.name: [] for metric in metrics}
        self._max_rows = max_rows
        self._count = 0
        self.left_out = 0  # rows above the limit

    def add(self, metric: Metric, value: float, labels: str = "") -> None:
        self._add(metric.name, f"{metric.name}{labels} {value}")

    def add_histogram(self, metric: Metric, found: Histogram, labels: str = "", *, unit: float = 1) -> None:
        """Add a histogram whose values are `unit` times as large as those to be shown."""
        start = f"{labels[:-1]}," if labels else "{"
        total = 0
        for bound, total in found.cumulated():
            shown = "+Inf" if bound is None else f"{bound / unit:g}"
            self._add(metric.name, f'{metric.name}_bucket{start}le="{shown}"}} {total}')
        self._add(metric.name, f"{metric.name}_sum{labels} {found.sum / unit}")
        self._add(metric.name, f"{metric.name}_count{labels} {total}")

    def drop(self, metrics: Sequence[Metric]) -> None:
        """Remove the rows of metrics that are not complete."""
        for metric in metrics:
            self._count -= len(self._rows[metric.name])
            self._rows[metric.name].clear()

    def encode(self) -> Slices[bytes]:
        """Return the text, with the help and type of every metric, also of those without rows."""
        pieces: list[bytes] = []
        for metric in self._metrics:
            rows = self._rows[metric.name]
            pieces.append(f"# HELP {metric.name} {metric.help}\n# TYPE {metric.name} {metric.type}\n".encode())
            for start in range(0, len(rows), ROWS_AT_ONCE):
                text = "\n".join(rows[start : start + ROWS_AT_ONCE])
                pieces.append(f"{text}\n".encode(errors="replace"))
                yield
        return b"".join(pieces)

    def _add(self, name: str, row: str) -> None:
        if self._count >= self._max_rows:
            self.left_out += 1
            return
        self._count += 1
        self._rows[name].append(row)
