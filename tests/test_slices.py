"""Sliced work: it gives way to everyone else, shares one turn at a time, and passes on results, errors and cancellation."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import slices
from barnabas.slices import Slices, begin, in_slices


def counting(steps: int, done: list[int], name: int = 0) -> Slices[str]:
    for _ in range(steps):
        done.append(name)
        yield
    return "result"


async def turns_beside(work: asyncio.Future[str], done: list[int]) -> list[int]:
    """The number of steps that the work did in each turn of the loop."""
    counts, before = [], 0
    while not work.done():
        await asyncio.sleep(0)
        counts.append(len(done) - before)
        before = len(done)
    return counts


def test_work_that_ends_in_its_first_turn_needs_no_task() -> None:
    async def scenario() -> None:
        assert begin(counting(3, [])) == "result"

    asyncio.run(scenario())


def test_long_work_gives_way_after_every_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        done: list[int] = []
        work = begin(counting(1000, done))
        assert isinstance(work, asyncio.Task) and len(done) == 10
        counts = await turns_beside(work, done)
        assert max(counts) <= 10 and len(done) == 1000
        assert work.result() == "result"

    asyncio.run(scenario())


def test_all_sliced_work_together_gets_one_turn_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        done: list[int] = []
        works = [asyncio.ensure_future(in_slices(counting(100, done, name))) for name in range(50)]
        await asyncio.sleep(0)  # everyone has had a first turn
        before, counts = len(done), []
        while not all(work.done() for work in works):
            await asyncio.sleep(0)
            counts.append(len(done) - before)
            before = len(done)
        assert max(counts) <= 10
        assert set(done[500:1000]) == set(range(50))  # in turn, not one after another

    asyncio.run(scenario())


def test_errors_and_cancellation_reach_the_work() -> None:
    closed = []

    def failing() -> Slices[None]:
        for _ in range(slices.MAX_STEPS + 1):
            yield
        raise ValueError("broken")

    def endless() -> Slices[None]:
        try:
            while True:
                yield
        finally:
            closed.append(True)

    async def scenario() -> None:
        with pytest.raises(ValueError, match="broken"):
            await in_slices(failing())
        task = asyncio.ensure_future(in_slices(endless()))
        for _ in range(5):
            await asyncio.sleep(0)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert closed == [True]
        assert begin(counting(3, [])) == "result"  # the turn is free again

    asyncio.run(scenario())


def test_work_can_wait_for_an_awaitable_without_keeping_the_turn() -> None:
    async def scenario() -> None:
        event = asyncio.Event()

        def waiting() -> Slices[str]:
            yield event.wait()
            return "after the event"

        work = asyncio.ensure_future(in_slices(waiting()))
        assert await in_slices(counting(3, [])) == "result"
        await asyncio.sleep(0)
        assert not work.done()
        event.set()
        assert await work == "after the event"

    asyncio.run(scenario())
