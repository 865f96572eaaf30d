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
