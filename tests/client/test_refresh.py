"""One question shared by all who wait for its answer."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client.errors import ClosedError
from barnabas.client.refresh import SharedRefresh
from barnabas.client.state import Asked


class Questions:
    def __init__(self) -> None:
        self.asked: list[Asked] = []
        self.answer = asyncio.Event()
        self.error: Exception | None = None

    async def ask(self, topics: Asked) -> None:
        self.asked.append(topics)
        await self.answer.wait()
        if self.error is not None:
            raise self.error


A, B, BOTH = frozenset("a"), frozenset("b"), frozenset("ab")


def test_many_who_ask_at_once_share_one_question() -> None:
    async def main() -> None:
        questions = Questions()
        refresh = SharedRefresh(questions.ask)
        waiting = [asyncio.create_task(refresh.wait(A if at % 2 else B)) for at in range(100)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        waiting += [asyncio.create_task(refresh.wait(A)) for at in range(100)]
        questions.answer.set()
        await asyncio.gather(*waiting)
        assert questions.asked == [BOTH]

    asyncio.run(main())


def test_what_is_not_covered_and_what_must_be_fresh_waits_for_the_next() -> None:
    async def main() -> None:
        questions = Questions()
        refresh = SharedRefresh(questions.ask)
        first = asyncio.create_task(refresh.wait(A))
        await asyncio.sleep(0.01)
        later = [asyncio.create_task(refresh.wait(B)), asyncio.create_task(refresh.wait(A, fresh=True))]
        await asyncio.sleep(0.01)
        assert questions.asked == [A]
        questions.answer.set()
        await asyncio.gather(first, *later)
        assert questions.asked == [A, BOTH]
        await refresh.wait(None)
        assert questions.asked[-1] is None

    asyncio.run(main())


def test_who_gives_up_does_not_end_it_for_others() -> None:
    async def main() -> None:
        questions = Questions()
        refresh = SharedRefresh(questions.ask)
        first, second = (asyncio.create_task(refresh.wait(A)) for _ in range(2))
        await asyncio.sleep(0.01)
        first.cancel()
        await asyncio.sleep(0.01)
        assert first.cancelled()
        questions.answer.set()
        await second
        assert questions.asked == [A]

    asyncio.run(main())


def test_a_failure_reaches_everyone_and_the_next_question_is_asked() -> None:
    async def main() -> None:
        questions = Questions()
        questions.error = ConnectionError("gone")
        questions.answer.set()
        refresh = SharedRefresh(questions.ask)
        done = await asyncio.gather(refresh.wait(A), refresh.wait(A), return_exceptions=True)
        assert [str(each) for each in done] == ["gone", "gone"]
        questions.error = None
        await refresh.wait(A)
        assert questions.asked == [A, A]

    asyncio.run(main())


def test_closing_is_told_to_who_waits() -> None:
    async def main() -> None:
        refresh = SharedRefresh(Questions().ask)
        waiting = [asyncio.create_task(refresh.wait(A))]
        await asyncio.sleep(0.01)
        waiting.append(asyncio.create_task(refresh.wait(B)))
        await asyncio.sleep(0.01)
        await refresh.close()
        for task in waiting:
            with pytest.raises(ClosedError):
                await task
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main())
