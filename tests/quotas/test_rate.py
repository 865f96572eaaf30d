"""Rates over windows, and throttle times. The expected figures follow from the formulas that Kafka documents."""

from __future__ import annotations

import pytest

from barnabas.quotas import rate as module
from barnabas.quotas.rate import MAX_THROTTLE_TIME_MS, Measured, Rate, Rates, Windows

WINDOWS = Windows(11, 1000)


def rate(*recorded: tuple[int, float], windows: Windows = WINDOWS) -> Rate:
    found = Rate(windows)
    for now_ms, value in recorded:
        found.record(value, now_ms)
    return found


def test_windows_that_are_missing_count_as_time_in_which_nothing_happened() -> None:
    assert rate((0, 15_000)).measure(0) == Measured(1500.0, 10_000)
    assert rate((0, 15_000)).measure(500) == Measured(15_000 / 10.5, 10_500)
    assert rate((0, 15_000)).measure(5000) == Measured(1500.0, 10_000)


def test_time_passes_and_the_rate_falls_until_the_sample_is_too_old() -> None:
    found = rate((0, 22_000))
    assert found.measure(10_999) == Measured(22_000 * 1000 / 10_999, 10_999)
    assert found.measure(11_000) == Measured(0.0, 10_000)


def test_a_window_begins_with_the_first_record_after_the_end_of_the_one_before() -> None:
    found = rate((0, 1000), (900, 1000), (2500, 1000), (3499, 1000), (3500, 1000))
    assert found.measure(3500) == Measured(5000 * 1000 / 10_500, 10_500)


def test_a_window_that_began_before_the_oldest_time_still_counts_whole() -> None:
    found = rate((0, 500), (999, 500), *((second * 1000, 1000.0) for second in range(1, 12)))
    assert found.measure(11_500) == Measured(12_000 * 1000 / 11_500, 11_500)


def test_samples_are_used_again_in_a_ring() -> None:
    found = rate(*((second * 1000, 1000.0) for second in range(100)))
    assert found.measure(99_500) == Measured(11_000 * 1000 / 10_500, 10_500)  # of the seconds 89 to 99
    assert found.measure(99_000 + 10_999).per_second == 1000 * 1000 / 10_999


def test_what_is_taken_back_does_not_count() -> None:
    assert rate((0, 500), (10, 9000), (10, -9000)).measure(10).per_second == 500 * 1000 / 10_010


def test_with_one_window_there_is_always_some_time() -> None:
    assert rate((0, 5), windows=Windows(1, 1000)).measure(0) == Measured(5000.0, 1)


def test_the_throttle_time_brings_the_rate_down_to_the_bound() -> None:
    measured = rate((0, 15_000)).measure(0)
    assert measured.throttle_time_ms(1000) == 5000
    assert rate((0, 15_000)).measure(5000 + 10_000).throttle_time_ms(1000) == 0
    assert measured.throttle_time_ms(1500) == 0
    assert measured.throttle_time_ms(1499.9) == 1  # 0.67 ms
    assert measured.throttle_time_ms(1e-9) == measured.throttle_time_ms(0) == MAX_THROTTLE_TIME_MS


def test_what_is_idle_for_an_hour_is_forgotten() -> None:
    rates: Rates[str] = Rates(WINDOWS)
    old = rates.of("old", 0)
    rates.of("other", 1000)
    assert rates.of("old", 3_600_000) is old
    rates.of("new", 3_601_000)
    assert len(rates) == 2
    assert rates.of("old", 3_601_000) is old


def test_there_is_room_for_a_limited_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "MAX_RATES", 2)
    rates: Rates[int] = Rates(WINDOWS)
    first, second = rates.of(1, 0), rates.of(2, 0)
    assert rates.of(1, 0) is first
    rates.of(3, 0)
    assert len(rates) == 2
    assert rates.of(1, 0) is first
    assert rates.of(2, 0) is not second
