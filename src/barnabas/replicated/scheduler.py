"""Clock and timers for coordinators, as a protocol, so that tests can advance time by hand."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, Protocol


class Handle(Protocol):
    """A scheduled call that can be cancelled."""

    def cancel(self) -> None: ...


class Scheduler(Protocol):
    def now_ms(self) -> int:
        """Return the wall clock time in milliseconds, as stored in records."""
        ...

    def call_later(self, delay_ms: int, callback: Callable[[], None]) -> Handle: ...


async def pause(scheduler: Scheduler, delay_ms: int, sooner: asyncio.Future[Any] | None = None) -> None:
    """Wait `delay_ms`, or until `sooner` is done."""
    over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def end(done: object = None) -> None:
        if not over.done():
            over.set_result(None)

    handle = scheduler.call_later(delay_ms, end)
    if sooner is not None:
        sooner.add_done_callback(end)
    try:
        await over
    finally:
        handle.cancel()
        if sooner is not None:
            sooner.remove_done_callback(end)
