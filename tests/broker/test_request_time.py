"""The time that a request takes of the event loop: its own steps, and not what it waits for."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.request_time import RequestTime
from barnabas.quotas.bounds import REQUEST_PERCENTAGE
from barnabas.quotas.clients import ClientQuota
from barnabas.quotas.rate import Windows
from barnabas.slices import Slices, in_slices
from tests.quotas.entities import bounds

SECOND_NS = 1_000_000_000


class Clock:
    """A clock that work advances."""

    def __init__(self) -> None:
        self.now_ns = 0

    def __call__(self) -> int:
        return self.now_ns

    def work(self, seconds: float) -> None:
        self.now_ns += round(seconds * SECOND_NS)


class Measured(RequestTime):
    """The time of a request whose bound is 50 % over one window of a second: a second of work is 50 % too much."""

    def __init__(self, clock: Clock) -> None:
        self.quota = ClientQuota(bounds(({"user": "u"}, 50.0), key=REQUEST_PERCENTAGE), Windows(2, 1000))
        super().__init__(self.quota, "u", clock)

    def spent_s(self) -> float:
        """What was recorded and was not looked at before, in seconds; a second is 100 % of one window."""
        throttle_time_ms = self.record("c", 0)
        self.quota.add("u", "c", -self.quota_of(throttle_time_ms), 0)
        return self.quota_of(throttle_time_ms) / 100

    @staticmethod
    def quota_of(throttle_time_ms: int) -> float:
        return throttle_time_ms / 1000 * 50 + 50


def test_time_runs_until_it_pauses() -> None:
    clock = Clock()
    time = Measured(clock)
    clock.work(2)
    time.pause()
    clock.work(100)
    time.pause()
    assert time.spent_s() == 2


def test_the_time_so_far_counts_for_the_request_and_the_rest_for_later_ones() -> None:
    clock = Clock()
    time = Measured(clock)
    clock.work(1.5)
    assert time.record("c", 0) == 2000  # 150 % of one window is 100 % more than 50 %
    clock.work(1)
    time.pause()
    time.settle(0)
    assert time.quota.record("u", "c", 0, 0) == 4000
    time.settle(0)
    assert time.quota.record("u", "c", 0, 0) == 4000


def test_a_request_that_was_not_recorded_has_no_rest() -> None:
    clock = Clock()
    time = Measured(clock)
    clock.work(5)
    time.settle(0)
    assert time.quota.record("u", "c", 0, 0) == 0


def test_steps_count_and_the_time_between_them_does_not() -> None:
    clock = Clock()
    time = Measured(clock)
    time.pause()

    def work() -> Slices[str]:
        clock.work(1)
        yield
        clock.work(2)
        yield
        clock.work(3)
        return "done"

    steps = time.of_steps(work())
    results = []
    try:
        while True:
            next(steps)
            clock.work(100)
    except StopIteration as end:
        results.append(end.value)
    assert (results, time.spent_s()) == (["done"], 6)


def test_a_coroutine_counts_except_where_it_waits_also_with_sliced_work_in_it() -> None:
    clock = Clock()
    time = Measured(clock)
    time.pause()

    def sliced() -> Slices[int]:
        clock.work(1)
        yield asyncio.sleep(0)
        clock.work(2)
        return 7

    async def work() -> int:
        clock.work(3)
        await asyncio.sleep(0)
        return await in_slices(time.of_steps(sliced()))

    async def scenario() -> int:
        async def others() -> None:
            for _ in range(10):
                clock.work(100)
                await asyncio.sleep(0)

        other = asyncio.create_task(others())
        result = await time.of(work())
        await other
        return result

    assert asyncio.run(scenario()) == 7
    assert time.spent_s() == 6


def test_errors_and_cancellations_reach_the_work() -> None:
    clock = Clock()
    time = Measured(clock)
    time.pause()
    seen: list[str] = []

    async def work(waits: bool) -> None:
        try:
            if waits:
                await asyncio.Event().wait()
            raise ValueError("failed")
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise

    async def scenario() -> None:
        with pytest.raises(ValueError, match="failed"):
            await time.of(work(False))

        async def run(awaitable: Any) -> None:
            await awaitable

        task = asyncio.create_task(run(time.of(work(True))))
        await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(scenario())
    assert seen == ["cancelled"]


def test_work_that_is_given_up_is_closed() -> None:
    closed = []

    def work() -> Slices[None]:
        try:
            yield
        finally:
            closed.append(True)

    steps = Measured(Clock()).of_steps(work())
    next(steps)
    steps.close()
    assert closed == [True]
