"""Tasks that several callers wait for."""

from __future__ import annotations

import asyncio

import pytest

from barnabas.client import shared


async def _slow_to_end(is_ending: asyncio.Event, may_end: asyncio.Event) -> None:
    try:
        await asyncio.Event().wait()
    finally:
        is_ending.set()
        await may_end.wait()


def test_a_caller_that_is_cancelled_while_it_ends_tasks_is_cancelled() -> None:
    async def main() -> None:
        is_ending, may_end = asyncio.Event(), asyncio.Event()
        task = shared.begin(_slow_to_end(is_ending, may_end))
        await asyncio.sleep(0)
        caller = asyncio.create_task(shared.end([task, None]))
        await is_ending.wait()
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled()
        may_end.set()
        await asyncio.wait([task])

    asyncio.run(main())


def test_errors_of_ended_tasks_are_ignored(caplog: pytest.LogCaptureFixture) -> None:
    async def main() -> None:
        async def fail() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                raise OSError("broken")

        task = asyncio.create_task(fail())
        await asyncio.sleep(0)
        await shared.end([task])
        assert task.done()
        del task
        assert not caplog.records

    asyncio.run(main())


def test_ending_nothing_returns_at_once() -> None:
    async def main() -> None:
        await shared.end([None])

    asyncio.run(main())


def test_who_is_cancelled_while_a_task_is_stopped_is_cancelled() -> None:
    async def main() -> None:
        is_ending, may_end = asyncio.Event(), asyncio.Event()
        task = asyncio.create_task(_slow_to_end(is_ending, may_end))
        await asyncio.sleep(0)
        caller = asyncio.create_task(shared.stop(task))
        await is_ending.wait()
        caller.cancel()
        await asyncio.wait([caller])
        assert caller.cancelled() and not task.done()
        may_end.set()
        await asyncio.wait([task])

    asyncio.run(main())


def test_a_stopped_task_is_over_and_an_error_that_ended_it_before_is_raised() -> None:
    async def broken() -> None:
        raise OSError("broken")

    async def main() -> None:
        waiting, failed = asyncio.create_task(asyncio.Event().wait()), asyncio.create_task(broken())
        await asyncio.sleep(0)
        await shared.stop(waiting)
        assert waiting.cancelled()
        with pytest.raises(OSError, match="broken"):
            await shared.stop(failed)

    asyncio.run(main())
