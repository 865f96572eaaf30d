"""Clients of the console: one for each cluster and principal, opened when it is first needed.

Its one rule: a client belongs to one principal. A cluster that cannot be reached is an error of that question; the next
question tries again. Requests are counted, so that a page can show what it costs. Clients run in a thread of their own: pages
are made while the answer of a large cluster is decoded.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections import OrderedDict, deque
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import nullcontext, suppress
from typing import Any, NamedTuple, TypeVar

from barnabas.client.cluster import Cluster
from barnabas.console.security.sessions import Login
from barnabas.console.settings import ClusterEntry
from barnabas.metadata.as_of import AsOf
from barnabas.metadata.image import MetadataImage
from barnabas.operations.metadata_following import MetadataFollower

T = TypeVar("T")
NOBODY = ""
"""The principal of clusters without a login."""
MAX_LINKS = 200
MAX_AT_ONCE = 4
"""Questions to one cluster at the same time, for one principal."""
MAX_IDLE_S = 600.0
"""A client that nobody has used for so long is closed, and forgets what it knows of the metadata."""
_WINDOW_S = 60.0
_MAX_COUNTED = 10_000


class LinkKey(NamedTuple):
    """A cluster and a principal."""

    cluster: str
    principal: str


class Past(NamedTuple):
    """The metadata of a cluster at a moment, and when it was read, in seconds of the monotonic clock."""

    moment: AsOf
    image: MetadataImage
    read_s: float


class ClientThread:
    """A thread with an event loop, in which clients run. It starts with the first work."""

    def __init__(self) -> None:
        self._loop: asyncio.AbstractEventLoop | None = None
        self._thread: threading.Thread | None = None
        self._ended: asyncio.Event | None = None

    def _start(self) -> asyncio.AbstractEventLoop:
        started = threading.Event()

        async def serve() -> None:
            self._loop, self._ended = asyncio.get_running_loop(), asyncio.Event()
            started.set()
            await self._ended.wait()

        self._thread = threading.Thread(target=lambda: asyncio.run(serve()), name="clients", daemon=True)
        self._thread.start()
        started.wait()
        assert self._loop is not None
        return self._loop

    async def run(self, work: Coroutine[Any, Any, T]) -> T:
        """Run work in the thread, and return its result. Who stops waiting cancels the work."""
        loop = self._loop or self._start()
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work, loop))

    async def close(self) -> None:
        """End the thread, and what still runs in it."""
        if self._loop is not None and self._ended is not None and self._thread is not None:
            self._loop.call_soon_threadsafe(self._ended.set)
            await asyncio.to_thread(self._thread.join)


class Link:
    """A client that is connected when it is first used. All questions go through `ask` and `stream`."""

    def __init__(self, entry: ClusterEntry, login: Login | None, thread: ClientThread) -> None:
        self.entry = entry
        self.key = LinkKey(entry.name, NOBODY if login is None else login.principal)
        self._login = login
        self._thread = thread
        self._cluster: Cluster | None = None
        self._starting = asyncio.Lock()
        self._at_once = asyncio.Semaphore(MAX_AT_ONCE)
        self._requests: deque[float] = deque(maxlen=_MAX_COUNTED)
        self.requests = 0
        self.used_s = time.monotonic()
        self.follower: MetadataFollower | None = None
        """Follows the metadata log for this principal, once a page needs it."""
        self.past: Past | None = None
        """The last moment of the metadata that was looked at."""

    async def ask(self, question: Callable[[Cluster], Awaitable[T]], *, is_waiting: bool = True) -> T:
        """Return the answer to a question. It waits while too many others are asked, unless it is a small one."""

        async def answer() -> T:
            async with self._at_once if is_waiting else nullcontext():
                return await question(await self._connected())

        self.used_s = time.monotonic()
        return await self._thread.run(answer())

    async def stream(self, question: Callable[[Cluster], AsyncIterator[T]]) -> AsyncIterator[T]:
        """Yield the parts of a long answer, one after another: the next one is made when it is asked for."""
        parts: AsyncIterator[T] | None = None
        nothing = object()

        async def following() -> Any:
            nonlocal parts
            if parts is None:
                parts = question(await self._connected())
            return await anext(parts, nothing)

        async def end() -> None:
            if parts is not None:
                await parts.aclose()  # type: ignore[attr-defined]  # all questions are generators

        try:
            while (part := await self._thread.run(following())) is not nothing:
                self.used_s = time.monotonic()
                yield part
        finally:
            await asyncio.shield(self._thread.run(end()))

    async def connect(self) -> None:
        """Connect the client. Raises the errors of a start."""
        await self._thread.run(self._connected())

    async def _connected(self) -> Cluster:
        async with self._starting:
            if self._cluster is None:
                login = self._login
                user, password = (None, None) if login is None else (login.user, login.password)
                cluster = Cluster(self.entry.client_settings(user, password))
                cluster.on_response = self._count
                try:
                    await cluster.start(cluster.settings.get_int("bootstrap.timeout.ms"))
                except BaseException:
                    await cluster.close()
                    raise
                self._cluster = cluster
            return self._cluster

    def _count(self, request: object, response: object) -> None:
        self.requests += 1
        self._requests.append(time.monotonic())

    @property
    def requests_per_minute(self) -> int:
        """Requests of the last minute."""
        since_s = time.monotonic() - _WINDOW_S
        while self._requests and self._requests[0] < since_s:
            self._requests.popleft()
        return len(self._requests)

    async def close(self) -> None:
        cluster, self._cluster = self._cluster, None
        if cluster is not None:
            with suppress(Exception):
                await self._thread.run(cluster.close())


class Links:
    """All clients, the least recently used first."""

    def __init__(self) -> None:
        self.thread = ClientThread()
        self._links: OrderedDict[LinkKey, Link] = OrderedDict()
        self._closing: set[asyncio.Task[None]] = set()

    def link(self, entry: ClusterEntry, login: Login | None) -> Link:
        key = LinkKey(entry.name, NOBODY if login is None else login.principal)
        found = self._links.get(key)
        if found is None:
            found = self._links[key] = Link(entry, login, self.thread)
        self._links.move_to_end(key)
        while len(self._links) > MAX_LINKS:
            self._drop(next(iter(self._links)))
        return found

    def keep_only(self, principals: set[tuple[str, str]]) -> list[LinkKey]:
        """Close the clients of principals that no session has any more, and idle ones, and return their keys."""
        now_s = time.monotonic()
        gone = [
            key
            for key, link in self._links.items()
            if (key.principal != NOBODY and tuple(key) not in principals) or now_s - link.used_s > MAX_IDLE_S
        ]
        for key in gone:
            self._drop(key)
        return gone

    def _drop(self, key: LinkKey) -> None:
        task = asyncio.ensure_future(self._links.pop(key).close())
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def close(self) -> None:
        for key in list(self._links):
            self._drop(key)
        await asyncio.gather(*self._closing)
        await self.thread.close()
