"""Work as a generator: results of both kinds, rows in small lists, and running it without an event loop."""

from __future__ import annotations

from collections import Counter

from barnabas.steps import (
    ROWS_PER_STEP,
    SORTED_PER_STEP,
    Slices,
    at_once,
    counted,
    in_order,
    mapped,
    result_of,
    stepwise,
)
from tests.counting import counted as counted_pauses


def three_steps() -> Slices[str]:
    yield
    yield
    yield
    return "result"


def test_a_result_and_a_generator_of_it_are_the_same() -> None:
    made: str | Slices[str]
    for made in ("result", three_steps()):
        assert at_once(result_of(made)) == "result"


def test_rows_are_cut_into_lists_without_losing_one() -> None:
    found = list(stepwise(range(2 * ROWS_PER_STEP + 1)))
    assert [len(some) for some in found] == [ROWS_PER_STEP, ROWS_PER_STEP, 1]
    assert [row for some in found for row in some] == list(range(2 * ROWS_PER_STEP + 1))
    assert list(stepwise([])) == []


def test_a_mapping_pauses_after_every_list_of_rows() -> None:
    work = mapped(str, range(10 * ROWS_PER_STEP))
    assert sum(1 for _ in work) == 10
    assert at_once(mapped(str, range(3))) == ["0", "1", "2"]


def test_values_are_counted_and_sorted_with_pauses() -> None:
    values = [f"{number * 7919 % 5003}" for number in range(5003)]
    times, pauses = counted_pauses(counted([*values, *values[:10]]))
    assert times == Counter([*values, *values[:10]])
    assert pauses >= 5013 // ROWS_PER_STEP
    ordered, pauses = counted_pauses(in_order(values))
    assert ordered == sorted(values)
    assert pauses >= 2 * (5003 // SORTED_PER_STEP)
    assert at_once(in_order(["b", "a"])) == ["a", "b"]
    assert at_once(in_order([])) == []
