"""Input that may come slowly, as from a pipe or a terminal, beside an event loop that must not wait for it.

Its one rule: what has come is handed on at once, and no more than a few thousand items are held.
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
    """Whether the standard input is one that can keep a reader waiting."""
    try:
        return not stat.S_ISREG(os.fstat(sys.stdin.fileno()).st_mode)
    except (OSError, ValueError):  # no file at all
        return False


async def beside(items: Iterator[T], *, is_slow: bool) -> AsyncIterator[T]:
    """The items as they come; those of a slow input are waited for in a thread, which is left behind at the end."""
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
        with contextlib.suppress(RuntimeError):  # nobody is there any more
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
