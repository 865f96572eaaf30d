"""Sliced work, counted: how often it pauses, and how many rows of a request it walks between two pauses."""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator
from typing import Any, TypeVar

R = TypeVar("R")
T = TypeVar("T")


def counted(work: Generator[Any, None, R]) -> tuple[R, int]:
    """The result of sliced work, and how often it paused."""
    pauses = 0
    while True:
        try:
            next(work)
            pauses += 1
        except StopIteration as end:
            return end.value, pauses


class Walked(list[T]):
    """A list that counts how often one of its items was looked at in a loop."""

    def __init__(self, items: Iterable[T]) -> None:
        super().__init__(items)
        self.walked = 0

    def __iter__(self) -> Iterator[T]:
        for item in super().__iter__():
            self.walked += 1
            yield item


def most_between_pauses(work: Generator[Any, None, R], rows: Walked[Any]) -> tuple[R, int]:
    """The result of sliced work, and the most items of the list that it walked without a pause."""
    most = 0
    while True:
        before = rows.walked
        try:
            next(work)
        except StopIteration as end:
            return end.value, max(most, rows.walked - before)
        most = max(most, rows.walked - before)
