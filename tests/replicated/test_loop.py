"""The loop of a replicated machine: a sum, written by decisions, over a log that is told when to commit."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence

import pytest

from barnabas import slices
from barnabas.replicated.decision import Result
from barnabas.replicated.loop import Batch, Loop
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.records.metadata import FeatureLevelRecord


def add(amount: int) -> Callable[[int], Result[int]]:
    """Writes the amount; the answer is the sum that the decision saw."""
    return lambda head: Result([(FeatureLevelRecord(feature_level=amount), 0)], head + amount)


def apply(image: int, batch: Batch) -> int:
    return image + sum(record.feature_level for record in batch.records if isinstance(record, FeatureLevelRecord))


class Log:
    def __init__(self) -> None:
        self.sizes: list[int] = []
        self.refuses = False

    def append(self, epoch: int, records: Sequence[tuple[Message, int]]) -> int:
        if self.refuses:
            raise KafkaError(ErrorCode.NOT_CONTROLLER)
        self.sizes.append(len(records))
        return sum(self.sizes) - 1


def run(scenario: Callable[[Loop[int], Log], Awaitable[None]]) -> None:
    async def main() -> None:
        log = Log()
        loop: Loop[int] = Loop(0, apply, log, lambda: 0)
        loop.gained(1, 0)
        await scenario(loop, log)

    asyncio.run(main())


def test_an_answer_waits_for_the_commit_and_readers_see_only_what_is_committed() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        first, second = asyncio.create_task(loop.write(add(1))), asyncio.create_task(loop.write(add(2)))
        await asyncio.sleep(0)
        assert (loop.head, loop.image) == (3, 0)
        assert not first.done()
        loop.committed(0)
        assert await first == 1
        assert (loop.image, second.done()) == (1, False)
        loop.committed(1)
        assert await second == 3
        assert loop.image == 3

    run(scenario)


def test_a_decision_that_writes_nothing_waits_for_what_it_saw() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        write = asyncio.create_task(loop.write(add(1)))
        await asyncio.sleep(0)
        look = asyncio.create_task(loop.write(lambda head: Result([], head)))
        await asyncio.sleep(0)
        assert not look.done()
        loop.committed(0)
        assert (await write, await look) == (1, 1)

    run(scenario)


def test_the_head_is_committed_when_everything_that_was_appended_is() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        await loop.wait_head_committed()  # nothing was appended
        loop.write_nowait(add(1))
        loop.write_nowait(add(2))
        waiting = asyncio.create_task(loop.wait_head_committed())
        await asyncio.sleep(0)
        loop.committed(0)
        await asyncio.sleep(0)
        assert not waiting.done()
        loop.committed(1)
        await waiting
        loop.lost()
        with pytest.raises(KafkaError) as caught:
            await loop.wait_head_committed()
        assert caught.value.code is ErrorCode.NOT_CONTROLLER

    run(scenario)


def test_losing_leadership_forgets_what_was_not_committed_and_tells_who_waits() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        write = asyncio.create_task(loop.write(add(1)))
        await asyncio.sleep(0)
        loop.lost()
        with pytest.raises(KafkaError) as caught:
            await write
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert (loop.image, loop.head) == (0, None)
        with pytest.raises(KafkaError):
            await loop.write(add(1))
        loop.advance(5, 3)
        loop.gained(2, 4)
        assert loop.head == 5

    run(scenario)


def test_a_decision_that_fails_or_a_log_that_refuses_changes_nothing() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        def fail(head: int) -> Result[int]:
            raise KafkaError(ErrorCode.INVALID_REQUEST)

        with pytest.raises(KafkaError):
            await loop.write(fail)
        log.refuses = True
        with pytest.raises(KafkaError):
            await loop.write(add(1))
        assert (loop.head, loop.image) == (0, 0)

    run(scenario)


def test_soft_state_changes_once_the_records_are_appended_and_not_when_they_are_not() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        applied: list[int] = []
        write = asyncio.create_task(loop.write(add(1), applied.append))
        await asyncio.sleep(0)
        assert (applied, write.done()) == ([1], False)
        loop.committed(0)
        await write

        def fail(head: int) -> Result[int]:
            raise KafkaError(ErrorCode.INVALID_REQUEST)

        with pytest.raises(KafkaError):
            await loop.write(fail, applied.append)
        log.refuses = True
        with pytest.raises(KafkaError):
            await loop.write(add(1), applied.append)
        assert applied == [1]

    run(scenario)


def test_what_a_controller_writes_by_itself_is_cut_into_batches() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        many = [(FeatureLevelRecord(feature_level=1), 0)] * 25_000
        write = asyncio.create_task(loop.write(lambda head: Result(many, head)))
        await asyncio.sleep(0)
        assert log.sizes == [10_000, 10_000, 5_000]
        loop.committed(24_999)
        await write
        assert loop.image == 25_000

    run(scenario)


def test_subscribers_see_each_commit_with_its_records() -> None:
    async def scenario(loop: Loop[int], log: Log) -> None:
        seen: list[tuple[int, int, int]] = []
        loop.subscribe(lambda old, new, records: seen.append((old, new, len(records))))
        write = asyncio.create_task(loop.write(add(4)))
        await asyncio.sleep(0)
        assert seen == []
        loop.committed(0)
        await write
        assert seen == [(0, 4, 1)]

    run(scenario)


def slowly(amount: int, done: list[int]) -> Callable[[int], Slices[Result[int]]]:
    """A decision of 1,000 steps."""

    def decide(head: int) -> Slices[Result[int]]:
        for _ in range(1000):
            done.append(head)
            yield
        return add(amount)(head)

    return decide


def test_a_long_decision_is_made_in_slices_and_the_next_one_sees_its_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario(loop: Loop[int], log: Log) -> None:
        done: list[int] = []
        first, second = asyncio.create_task(loop.write(slowly(1, done))), asyncio.create_task(loop.write(add(2)))
        counts, before = [], 0
        while len(log.sizes) < 2:
            await asyncio.sleep(0)
            counts.append(len(done) - before)
            before = len(done)
        assert max(counts) <= 20 and len(done) == 1000
        loop.committed(1)
        assert (await first, await second, loop.image) == (1, 3, 3)

    run(scenario)


def test_a_writer_that_cannot_wait_finishes_the_change_that_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario(loop: Loop[int], log: Log) -> None:
        done: list[int] = []
        first = asyncio.create_task(loop.write(slowly(1, done)))
        await asyncio.sleep(0)
        assert log.sizes == []
        assert loop.write_nowait(add(2)) == 3
        assert (len(done), loop.head) == (1000, 3)
        loop.committed(1)
        assert await first == 1

    run(scenario)


def test_a_long_decision_changes_nothing_if_leadership_is_lost_and_gained_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario(loop: Loop[int], log: Log) -> None:
        write = asyncio.create_task(loop.write(slowly(1, [])))
        await asyncio.sleep(0)
        loop.lost()
        loop.advance(7, 0)
        loop.gained(2, 1)
        with pytest.raises(KafkaError) as caught:
            await write
        assert caught.value.code is ErrorCode.NOT_CONTROLLER
        assert (log.sizes, loop.head, loop.image) == ([], 7, 7)

    run(scenario)


def test_a_writer_is_answered_after_a_subscriber_has_followed_in_slices(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario(loop: Loop[int], log: Log) -> None:
        followed: list[int] = []

        def follow(old: int, new: int, records: Sequence[object]) -> Slices[None]:
            for _ in range(1000):
                followed.append(new)
                yield

        loop.subscribe(follow)
        write = asyncio.create_task(loop.write(add(4)))
        await asyncio.sleep(0)
        loop.committed(0)
        assert len(followed) <= 10
        await write
        assert followed == [4] * 1000

    run(scenario)


def test_a_subscriber_that_fails_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(slices, "MAX_STEPS", 10)

    async def scenario() -> None:
        failures: list[Exception] = []
        loop: Loop[int] = Loop(0, apply, Log(), lambda: 0, on_failure=failures.append)
        loop.gained(1, 0)

        def fail(old: int, new: int, records: Sequence[object]) -> Slices[None]:
            for _ in range(100):
                yield
            raise ValueError("cannot follow")

        loop.subscribe(fail)
        loop.write_nowait(add(1))
        loop.committed(0)
        while not failures:
            await asyncio.sleep(0)
        assert str(failures[0]) == "cannot follow"

    asyncio.run(scenario())
