"""A histogram: how many values were at most each bound, and their sum. It keeps the units of its values."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import accumulate


class Histogram:
    """`bounds` are ascending; what is above the last one is counted too."""

    __slots__ = ("_bounds", "_counts", "sum")

    def __init__(self, bounds: Sequence[int]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self.sum = 0

    def observe(self, value: int) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self.sum += value

    @property
    def count(self) -> int:
        return sum(self._counts)

    def cumulated(self) -> Iterator[tuple[int | None, int]]:
        """Yield each bound with the number of values up to it, and None with the number of all."""
        return zip((*self._bounds, None), accumulate(self._counts), strict=True)

    def add(self, other: Histogram) -> None:
        """Add the values of another histogram with the same bounds."""
        for at, count in enumerate(other._counts):
            self._counts[at] += count
        self.sum += other.sum
