"""The clock of the demo's node."""

from __future__ import annotations

from barnabas.demo.clock import SetBackClock


class TrueTime:
    def __init__(self) -> None:
        self.now_ms = 100_000

    def __call__(self) -> int:
        return self.now_ms


def test_a_clock_that_is_set_back_runs_on_and_is_moved_forward_only() -> None:
    true = TrueTime()
    clock = SetBackClock(40_000, true)
    assert clock.now_ms() == 40_000
    true.now_ms += 5
    assert clock.now_ms() == 40_005
    clock.move_to(70_000)
    assert clock.now_ms() == 70_000
    clock.move_to(50_000)
    assert clock.now_ms() == 70_000


def test_a_clock_never_shows_more_than_the_true_time() -> None:
    true = TrueTime()
    clock = SetBackClock(40_000, true)
    clock.move_to(500_000)
    assert clock.now_ms() == true.now_ms
    assert SetBackClock(500_000, true).now_ms() == true.now_ms


def test_a_clock_without_a_beginning_shows_the_true_time() -> None:
    true = TrueTime()
    clock = SetBackClock(None, true)
    clock.move_to(40_000)
    true.now_ms += 1
    assert clock.now_ms() == true.now_ms
