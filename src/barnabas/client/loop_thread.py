"""An event loop in its own thread, for callers without one.

The thread is a daemon, so that forgetting to close it does not keep the process from ending.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any, TypeVar

T = TypeVar("T")


class LoopThread:
    """Runs an event loop until `close`, which cancels the remaining tasks."""

    def __init__(self, name: str) -> None:
        self._started: Future[tuple[asyncio.AbstractEventLoop, asyncio.Event]] = Future()
        self._thread = Thread(target=self._run, name=name, daemon=True)
        self._thread.start()
        self._loop, self._closing = self._started.result()

    @property
    def is_current(self) -> bool:
        """Whether the caller runs in this thread. It must not wait here: the loop would stop."""
        return threading.get_ident() == self._thread.ident

    def call(self, work: Coroutine[Any, Any, T], timeout_s: float | None = None) -> T:
        """Run a coroutine in the loop and return its result.

        On a timeout it is cancelled and TimeoutError is raised.
        """
        future = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result(timeout_s)
        except BaseException:
            future.cancel()  # has no effect if it has already failed
            raise

    def run(self, function: Callable[[], object]) -> None:
        """Have a function called in the loop, and wait for it. Raises what it raises."""
        if self.is_current:
            function()
            return

        async def work() -> None:
            function()

        self.call(work())

    def call_soon(self, function: Callable[[], object]) -> None:
        """Have a function called in the loop. Does not wait for it."""
        self._loop.call_soon_threadsafe(function)

    def close(self, timeout_s: float | None = None) -> None:
        self._loop.call_soon_threadsafe(self._closing.set)
        self._thread.join(timeout_s)

    def _run(self) -> None:
        try:
            with asyncio.Runner(loop_factory=_loop_factory()) as runner:
                runner.run(self._stay())
        except BaseException as error:
            if self._started.done():
                raise
            self._started.set_exception(error)

    async def _stay(self) -> None:
        closing = asyncio.Event()
        self._started.set_result((asyncio.get_running_loop(), closing))
        await closing.wait()


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415  (takes long to import)
    except ImportError:  # not available on every platform
        return None
    return uvloop.new_event_loop
