"""The trend of lag: over a window of samples, with what is unknown left out."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.operations.groups.trend import (
    MAX_SAMPLES,
    LagHistory,
    LagSample,
    LagTrend,
    lag_trend,
    sum_of_trends,
)


@pytest.mark.parametrize(
    ("samples", "expected"),
    [
        ([], None),
        ([(0, 5)], None),
        ([(7, 5), (7, 3)], None),
        ([(0, 10), (1000, 10)], LagTrend(0.0, None)),
        ([(0, 0), (1000, 0)], LagTrend(0.0, 0)),
        ([(0, 10), (1000, 0)], LagTrend(-10.0, 0)),
        ([(0, 10), (500, 90), (1000, 5)], LagTrend(-5.0, 1000)),
    ],
)
def test_the_trend_is_from_the_first_sample_to_the_last(
    samples: list[tuple[int, int]], expected: LagTrend | None
) -> None:
    assert lag_trend([LagSample(*each) for each in samples]) == expected


@given(st.integers(1, 10**9), st.integers(1, 10**6), st.integers(1, 10**6))
def test_a_lag_that_shrinks_evenly_is_gone_when_the_trend_says(lag: int, shrunk: int, during_ms: int) -> None:
    found = lag_trend([LagSample(0, lag + shrunk), LagSample(during_ms, lag)])
    assert found is not None
    assert found.catch_up_ms == pytest.approx(lag * during_ms / shrunk, abs=1)


def test_samples_before_the_window_are_dropped_but_two_stay() -> None:
    history: LagHistory[str] = LagHistory(window_ms=1000)
    history.add(0, {"a": 1000})
    history.add(5000, {"a": 500})
    assert history.trend("a") == LagTrend(-100.0, 5000)
    history.add(5500, {"a": 600})
    history.add(6000, {"a": 700})
    assert history.trend("a") == LagTrend(200.0, None)
    assert history.trend("b") is None


def test_what_is_unknown_or_gone_starts_anew() -> None:
    history: LagHistory[str] = LagHistory()
    history.add(0, {"a": 10, "b": 10})
    history.add(1000, {"a": None})
    history.add(2000, {"a": 5, "b": 5})
    assert (history.trend("a"), history.trend("b")) == (None, None)


def test_a_history_has_a_limit() -> None:
    history: LagHistory[str] = LagHistory(window_ms=10**9)
    for at_ms in range(2 * MAX_SAMPLES):
        history.add(at_ms, {"a": at_ms})
    assert history.trend("a") == LagTrend(1000.0, None)
    assert len(history._samples["a"]) == MAX_SAMPLES


def test_a_group_has_caught_up_when_its_slowest_partition_has() -> None:
    slow, fast, still = LagTrend(-1.0, 9000), LagTrend(-10.0, 100), LagTrend(0.0, None)
    assert sum_of_trends([9, 1, None], [slow, fast, None]) == LagTrend(-11.0, 9000)
    assert sum_of_trends([9, 0], [slow, still]) == LagTrend(-1.0, 9000)
    assert sum_of_trends([9, 3], [slow, still]) == LagTrend(-1.0, None)
    assert sum_of_trends([None], [None]) is None
