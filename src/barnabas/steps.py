"""Steps: work as a generator that yields where it may pause. It needs no event loop; `slices` runs it in one.

Code that may be given short or long work takes a result or a generator of it, and passes it to `result_of`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Generator, Iterable
from heapq import merge
from types import GeneratorType
from typing import Any, Protocol, TypeVar, cast

R = TypeVar("R")
T = TypeVar("T")
Slices = Generator[Any, None, R]  # yields nothing, or an awaitable

SORTED_PER_STEP = 500
ROWS_PER_STEP = 50  # of loops whose rows are too small to look at the clock for each of them


class Comparable(Protocol):
    def __lt__(self, other: Any, /) -> bool: ...


C = TypeVar("C", bound=Comparable)


def result_of(made: R | Slices[R]) -> Slices[R]:
    """Return a result, or run the generator of it."""
    if isinstance(made, GeneratorType):
        made = yield from made
    return cast(R, made)


def stepwise(rows: Iterable[T], count: int = ROWS_PER_STEP) -> Generator[list[T], None, None]:
    """Cut rows into lists of `count`: work on one list, then yield."""
    some: list[T] = []
    for row in rows:
        some.append(row)
        if len(some) == count:
            yield some
            some = []
    if some:
        yield some


def mapped(function: Callable[[T], R], rows: Iterable[T]) -> Slices[list[R]]:
    """Return the function's results for the rows, in order."""
    found: list[R] = []
    for some in stepwise(rows):
        found += map(function, some)
        yield
    return found


def counted(values: Iterable[T]) -> Slices[Counter[T]]:
    """Return how often each value is there."""
    found: Counter[T] = Counter()
    for some in stepwise(values):
        found.update(some)
        yield
    return found


def in_order(values: Iterable[C]) -> Slices[list[C]]:
    """Return values of which there may be very many, such as texts that a client has sent, sorted."""
    runs: list[list[C]] = []
    for some in stepwise(values, SORTED_PER_STEP):
        runs.append(sorted(some))
        yield
    if len(runs) <= 1:
        return runs[0] if runs else []
    found: list[C] = []
    for some in stepwise(merge(*runs), SORTED_PER_STEP):
        found += some
        yield
    return found


def at_once(work: Slices[R]) -> R:
    """Run work to its end without a pause. It must not wait for anything."""
    while True:
        try:
            next(work)
        except StopIteration as end:
            return cast(R, end.value)
