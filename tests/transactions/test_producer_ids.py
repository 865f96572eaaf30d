"""Producer ids in blocks from the controller."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from barnabas.transactions.producer_ids import ProducerIds
from barnabas.wire import ErrorCode, KafkaError
from tests.replicated.manual_clock import ManualClock

Grant = tuple[int, int] | Exception


class Controller:
    """Grants what it is told to, when it is told to."""

    def __init__(self, *grants: Grant) -> None:
        self.grants = list(grants)
        self.asked = 0
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def allocate(self) -> tuple[int, int]:
        self.asked += 1
        await self.may_answer.wait()
        grant = self.grants.pop(0)
        if isinstance(grant, Exception):
            raise grant
        return grant


def run(scenario: Callable[[ProducerIds, Controller, ManualClock], Awaitable[None]], *grants: Grant) -> None:
    async def main() -> None:
        controller, clock = Controller(*grants), ManualClock()
        ids = ProducerIds(controller.allocate, clock.now_ms)
        await scenario(ids, controller, clock)
        ids.stop()

    asyncio.run(main())


async def claimed(ids: ProducerIds, count: int) -> list[int]:
    found = []
    for _ in range(count):
        await ids.wait_available()
        found.append(ids.claim())
    return found


def test_ids_go_on_over_the_ends_of_blocks() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        assert await claimed(ids, 25) == [*range(10, 20), *range(50, 60), *range(60, 65)]

    run(scenario, (10, 10), (50, 10), (60, 10))


def test_the_next_block_is_asked_for_before_the_last_is_used_up() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        await claimed(ids, 9)
        assert controller.asked == 1
        ids.claim()
        await asyncio.sleep(0)
        assert controller.asked == 2
        assert ids.claim() == 100

    run(scenario, (0, 10), (100, 10))


def test_many_who_wait_ask_once() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        found = await asyncio.gather(*(claimed(ids, 1) for _ in range(5)))
        assert sorted(each for (each,) in found) == [0, 1, 2, 3, 4]
        assert controller.asked == 1

    run(scenario, (0, 1000))


@pytest.mark.parametrize("failure", [KafkaError(ErrorCode.STALE_BROKER_EPOCH), OSError(), TimeoutError(), (0, 0)])
def test_without_a_block_producers_are_told_to_try_again_and_the_controller_is_left_in_peace(failure: Grant) -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        for _ in range(3):
            with pytest.raises(KafkaError) as failed:
                await ids.wait_available()
            assert failed.value.code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        assert controller.asked == 1
        clock.advance(50)
        assert await claimed(ids, 1) == [7]

    run(scenario, failure, (7, 10))


def test_a_block_that_was_granted_before_is_not_taken() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        assert await claimed(ids, 10) == list(range(10))
        await asyncio.sleep(0)
        with pytest.raises(KafkaError):
            ids.claim()
        clock.advance(50)
        assert await claimed(ids, 1) == [20]

    run(scenario, (0, 10), (5, 10), (20, 10))


def test_who_asks_without_waiting_is_told_to_try_again() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        with pytest.raises(KafkaError):
            ids.claim()
        for _ in range(3):
            await asyncio.sleep(0)
        assert ids.claim() == 0

    run(scenario, (0, 10))


def test_one_who_stops_waiting_takes_nothing_from_the_others() -> None:
    async def scenario(ids: ProducerIds, controller: Controller, clock: ManualClock) -> None:
        controller.may_answer.clear()
        first, second = asyncio.ensure_future(claimed(ids, 1)), asyncio.ensure_future(claimed(ids, 1))
        await asyncio.sleep(0)
        first.cancel()
        await asyncio.sleep(0)
        controller.may_answer.set()
        assert await second == [0]

    run(scenario, (0, 10))
