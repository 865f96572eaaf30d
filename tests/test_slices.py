"""Sliced work: it gives way to everyone else, shares one turn at a time, and passes on results, errors and cancellation."""

from __future__ import annotations

import asyncio

import pytest

from barnabas import slices
from barnabas.slices import Breather, Queue, Slices, begin, in_slices, waited


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


def test_sliced_work_gets_the_result_and_the_error_of_what_it_waits_for() -> None:
    async def later(number: int) -> int:
        await asyncio.sleep(0)
        return 1 // number

    def work(number: int) -> Slices[int]:
        return (yield from waited(later(number)))

    async def scenario() -> None:
        assert await in_slices(work(1)) == 1
        with pytest.raises(ZeroDivisionError):
            await in_slices(work(0))

    asyncio.run(scenario())


def test_a_coroutine_with_a_long_loop_gives_way_when_its_turn_is_over(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "TURN_S", 0)

    async def scenario() -> None:
        done: list[int] = []

        async def work() -> str:
            others_first = Breather()
            for number in range(100):
                await others_first()
                done.append(number)
            return "result"

        counts = await turns_beside(asyncio.ensure_future(work()), done)
        assert max(counts) <= 1 and len(done) == 100

    asyncio.run(scenario())


def test_work_in_a_queue_begins_when_the_one_before_has_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        done: list[int] = []
        queue = Queue()
        works = [queue.add(counting(25, done, name)) for name in range(3)]
        assert (len(done), works[0].is_done) == (10, False)
        assert [await work.wait() for work in works] == ["result"] * 3
        assert done == [0] * 25 + [1] * 25 + [2] * 25
        assert queue.add(counting(3, done)).is_done

    asyncio.run(scenario())


def test_a_caller_that_cannot_wait_finishes_what_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        done: list[int] = []
        queue = Queue()
        first, second = queue.add(counting(25, done, 1)), queue.add(counting(25, done, 2))
        queue.finish_begun()
        assert (first.is_done, second.is_done, done) == (True, False, [1] * 25)
        assert await first.wait() == "result"
        queue.finish()
        assert second.result == "result" and done == [1] * 25 + [2] * 25

    asyncio.run(scenario())


def test_the_error_of_queued_work_is_for_who_waits_and_the_next_is_done(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    def failing() -> Slices[str]:
        yield from counting(25, [])
        raise ValueError("no")

    async def scenario() -> None:
        queue = Queue()
        bad, good = queue.add(failing()), queue.add(counting(25, []))
        with pytest.raises(ValueError, match="no"):
            await bad.wait()
        assert await good.wait() == "result"

    asyncio.run(scenario())


def test_queued_work_is_done_even_if_nobody_waits_for_it_any_more(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        done: list[int] = []
        queue = Queue()
        work = queue.add(counting(1000, done))
        waiting = asyncio.ensure_future(work.wait())
        await asyncio.sleep(0)
        waiting.cancel()
        while not work.is_done:
            await asyncio.sleep(0)
        assert len(done) == 1000

    asyncio.run(scenario())
