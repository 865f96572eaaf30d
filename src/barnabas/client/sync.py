"""The client for code without an event loop: scripts, notebooks, the interactive prompt.

>>> from barnabas.testing import Broker
>>> with Broker({"orders": 3}) as broker, Admin({"bootstrap.servers": broker.bootstrap_servers}) as admin:
...     admin.describe_cluster().cluster_id == broker.cluster_id
True

`Admin`, `Producer` and `Consumer` have the methods of the asynchronous classes, with the same arguments and results. Each
call blocks until it is done; asynchronous iterators become iterators. Its one rule: nothing is decided here. The event loop
runs in a separate thread, so that this also works inside another event loop, as in a notebook. Use an object from one thread
at a time.
"""

from __future__ import annotations

import asyncio
import functools
import inspect
import threading
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from importlib import import_module
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar, Self, TypeVar

if TYPE_CHECKING:
    from concurrent.futures import Future

T = TypeVar("T")


class _LoopThread:
    """A thread with an event loop that runs until it is stopped."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="barnabas-client", daemon=True)
        self._thread.start()

    def run(self, work: Coroutine[Any, Any, T]) -> T:
        future: Future[T] = asyncio.run_coroutine_threadsafe(work, self._loop)
        try:
            return future.result()
        except BaseException:  # on Ctrl-C too, cancel the work
            future.cancel()
            raise

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


class _Blocking:
    """Wraps an object of class `_target` that lives in the loop. Methods are looked up by name."""

    _target: ClassVar[str]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        module, _, name = self._target.partition(":")
        self._thread = _LoopThread()
        try:
            self._object = self._thread.run(_make(getattr(import_module(module), name), *args, **kwargs))
            self._thread.run(self._object.start())
        except BaseException:
            self._thread.stop()
            raise
        self._is_closed = False

    def close(self) -> None:
        """Close the client, and end the thread."""
        if not self._is_closed:
            self._is_closed = True
            try:
                self._thread.run(self._object.close())
            finally:
                self._thread.stop()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def __iter__(self) -> Iterator[Any]:
        return self._iterate(aiter(self._object))

    def __dir__(self) -> list[str]:
        return sorted({*super().__dir__(), *(name for name in dir(self._object) if not name.startswith("_"))})

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(self._object, name)
        return self._waiting(found) if callable(found) else found

    def _waiting(self, method: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(method)
        def call(*args: Any, **kwargs: Any) -> Any:
            result = self._thread.run(_make(method, *args, **kwargs))
            if isinstance(result, AsyncIterator):
                return self._iterate(result)
            return result

        return call

    def _iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        end = object()

        async def following() -> Any:
            return await anext(items, end)

        while (item := self._thread.run(following())) is not end:
            yield item


async def _make(function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """Call a function in the loop, and await its result if it is awaitable."""
    result = function(*args, **kwargs)
    while inspect.isawaitable(result):
        result = await result
    return result


class Admin(_Blocking):
    """A blocking `barnabas.client.admin.Admin`."""

    _target = "barnabas.client.admin.admin:Admin"


class Producer(_Blocking):
    """A blocking `barnabas.client.producer.Producer`. `send` returns when the record is acknowledged."""

    _target = "barnabas.client.producer:Producer"


class Consumer(_Blocking):
    """A blocking `barnabas.client.consumer.Consumer`. Iterating over it yields records."""

    _target = "barnabas.client.consumer:Consumer"
