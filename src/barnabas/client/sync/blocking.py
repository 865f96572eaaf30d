"""The common part of blocking clients: an asynchronous client in the event loop of its own thread.

Its one rule: a call either runs in the loop while its caller waits, or raises at once. It cannot run after `close`, in a forked
process, where the thread does not exist, or in the thread of the loop itself.
"""

from __future__ import annotations

import asyncio
import inspect
import os
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from types import TracebackType
from typing import Any, Generic, ParamSpec, Protocol, Self, TypeVar

from barnabas.client.errors import ClosedError
from barnabas.client.loop_thread import LoopThread


class Client(Protocol):
    """An asynchronous client."""

    async def start(self) -> Self:
        """Connect."""

    async def close(self) -> None:
        """Disconnect."""


C = TypeVar("C", bound=Client)
P = ParamSpec("P")
T = TypeVar("T")


class Blocking(Generic[C]):
    """Runs the methods of `_client` in its loop. `make` is called in the loop."""

    def __init__(self, make: Callable[[], C]) -> None:
        self._is_closed = False
        self._pid = os.getpid()
        self._thread = LoopThread("barnabas-client")
        try:
            self._client = self._call(make)
            self._wait(self._client.start())
        except BaseException:
            self._thread.close()
            raise

    def close(self) -> None:
        """Close the client, and end its thread. Does nothing in a forked process."""
        self._close(self._client.close())

    def _close(self, work: Coroutine[Any, Any, None]) -> None:
        if self._is_closed or self._pid != os.getpid():
            work.close()
            return
        try:
            self._wait(work)
        finally:
            if not self._thread.is_current:
                self._is_closed = True
                self._thread.close()

    def __enter__(self) -> Self:
        self._check_usable()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _wait(self, work: Coroutine[Any, Any, T]) -> T:
        """Run a coroutine in the loop, and return its result. Ctrl-C cancels it."""
        try:
            self._check_usable()
        except BaseException:
            work.close()
            raise
        return self._thread.call(work)

    def _call(self, function: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Call a function in the loop, and return its result."""

        async def call() -> T:
            return function(*args, **kwargs)

        return self._wait(call())

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        end = object()

        async def following() -> Any:
            return await anext(items, end)

        while (item := self._wait(following())) is not end:
            yield item

    def _check_usable(self) -> None:
        if self._is_closed:
            raise ClosedError("the client is closed")
        if self._pid != os.getpid():
            raise ClosedError(f"the client belongs to process {self._pid}: create another one after the fork")
        if self._thread.is_current:
            raise RuntimeError(
                "a callback that runs in the thread of the client cannot wait for the client: call it from another thread"
            )


class OffLoop:
    """A rebalance listener whose plain methods run in a worker thread, where they can use the blocking consumer."""

    def __init__(self, listener: Any) -> None:
        self._listener = listener

    def __getattr__(self, name: str) -> Any:
        method = getattr(self._listener, name)  # without it, the consumer does not call it

        async def call(*args: Any) -> None:
            result = await asyncio.to_thread(method, *args)
            if inspect.isawaitable(result):
                await result

        return call


def off_loop(listener: Any) -> Any:
    """Return the listener to pass to the asynchronous consumer."""
    return None if listener is None else OffLoop(listener)


def call_off_loop(callback: Callable[..., Any] | None) -> Callable[..., Any] | None:
    """Return the callback to pass to the asynchronous consumer: it runs in a worker thread, and can use the blocking one."""
    if callback is None:
        return None

    async def call(*args: Any) -> None:
        result = await asyncio.to_thread(callback, *args)
        if inspect.isawaitable(result):
            await result

    return call
