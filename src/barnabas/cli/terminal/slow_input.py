"""Reading of slow input, such as a pipe or a terminal, without blocking the event loop.

Its one rule: items are passed on as soon as they arrive, and at most 10,000 are buffered.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import stat
import sys
import threading
from collections.abc import AsyncIterator, Iterator
from typing import TypeVar

T = TypeVar("T")

_HELD = 10_000


def may_be_slow() -> bool:
    """Return whether reading standard input may block: whether it is not a regular file."""
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # standard input has no file descriptor
        return False


async def beside(items: Iterator[T], *, is_slow: bool) -> AsyncIterator[T]:
    """Yield the items as they arrive. Slow input is read in a daemon thread, which may outlive this generator."""
    if not is_slow:
        for item in items:
            yield item
        return
    loop, queue, room = (
        asyncio.get_running_loop(),
        asyncio.Queue[tuple[list[T], BaseException | None]](),
        threading.Semaphore(_HELD),
    )

    def tell(some: list[T], end: BaseException | None) -> None:
        with contextlib.suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(queue.put_nowait, (some, end))

    def read() -> None:
        try:
            for item in items:
                room.acquire()
                tell([item], None)
        except Exception as error:
            tell([], error)
        else:
            tell([], EOFError())

    threading.Thread(target=read, name="input", daemon=True).start()
    while True:
        some, end = await queue.get()
        if isinstance(end, EOFError):
            return
        if end is not None:
            raise end
        room.release()
        yield some[0]
