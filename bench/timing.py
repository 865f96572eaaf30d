"""Timing of small functions in turns: garbage collection off, the best of a few repeats in each round."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

T = TypeVar("T")

ROUNDS = 7
REPEATS = 3
REPEAT_S = 0.015


def in_turns(functions: Mapping[str, Callable[[], Any]]) -> dict[str, list[float]]:
    """Seconds per call in each round; a round runs all of them, and every other one in the opposite order."""
    counts = {name: _count(function) for name, function in functions.items()}
    best: dict[str, list[float]] = {name: [] for name in functions}
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        for number in range(ROUNDS):
            for name in alternating(list(functions), number):
                best[name].append(min(_time(functions[name], counts[name]) for _ in range(REPEATS)))
    finally:
        if enabled:
            gc.enable()
    return best


def alternating(contestants: list[T], number: int) -> list[T]:
    """The order of a round: whoever goes first in one goes last in the next, so that a place is no advantage."""
    return contestants if number % 2 == 0 else contestants[::-1]


def _time(function: Callable[[], Any], count: int) -> float:
    turns = range(count)
    started = time.perf_counter()
    for _ in turns:
        function()
    return (time.perf_counter() - started) / count


def _count(function: Callable[[], Any]) -> int:
    """How many calls make one repeat long enough to be timed; the first call, which may compile, is not counted."""
    function()
    return max(1, int(REPEAT_S / max(_time(function, 1), 1e-7)))
