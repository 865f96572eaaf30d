"""Tasks that several callers wait for. Cancelling one caller does not end the task; ending the task raises `ClosedError` in
all callers."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Any, TypeVar

from barnabas.client.errors import ClosedError

T = TypeVar("T")


def begin(work: Coroutine[Any, Any, T]) -> asyncio.Task[T]:
    """Start a task whose exception is not logged if no caller is left."""
    task = asyncio.create_task(work)
    task.add_done_callback(lambda done: done.cancelled() or done.exception())
    return task


async def join(task: asyncio.Task[T]) -> T:
    """Wait for the task's result. Raises `ClosedError` if the task was cancelled."""
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        current = asyncio.current_task()
        if task.cancelled() and (current is None or not current.cancelling()):
            raise ClosedError("the client is closed") from None
        raise


async def end(tasks: Iterable[asyncio.Task[Any] | None]) -> None:
    """Cancel these tasks, and wait until all have ended. Their errors are ignored; a cancellation of the caller is not."""
    running = [task for task in tasks if task is not None]
    for task in running:
        task.cancel()
    if running:
        await asyncio.wait(running)
    for task in running:
        if not task.cancelled():
            task.exception()  # so that it is not logged


async def stop(task: asyncio.Task[Any]) -> None:
    """Cancel a task that should have gone on, and wait until it has ended. Raises the error that ended it before.

    `await task` in place of `wait` could not tell the end of the task from a cancellation of the caller.
    """
    task.cancel()
    await asyncio.wait([task])
    if not task.cancelled():
        task.result()
