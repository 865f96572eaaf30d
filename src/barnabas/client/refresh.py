"""Metadata refreshes shared by all callers that wait for them.

A caller joins the refresh in progress if that covers its topics. Otherwise it joins the next one, which starts after it and
asks for all topics wanted meanwhile. So there is at most one refresh in progress, and one waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.client.shared import begin, end, join
from barnabas.client.state import Asked


class SharedRefresh:
    """`ask` refreshes some topics, or all (None)."""

    def __init__(self, ask: Callable[[Asked], Awaitable[None]]) -> None:
        self._ask = ask
        self._topics: Asked = frozenset()
        self._task: asyncio.Task[None] | None = None
        self._next_topics: Asked = frozenset()
        self._next: asyncio.Task[None] | None = None

    async def wait(self, topics: Asked, *, fresh: bool = False) -> None:
        """Wait until these topics are refreshed. If `fresh`, by a refresh that starts after this call."""
        if self._next is None and not fresh and self._task is not None and _covers(self._topics, topics):
            await join(self._task)
            return
        if self._next is None:
            self._next_topics = frozenset()
            self._next = begin(self._run(self._task))
        self._next_topics = _union(self._next_topics, topics)
        await join(self._next)

    async def _run(self, before: asyncio.Task[None] | None) -> None:
        if before is not None:
            await asyncio.wait([before])
        self._topics, self._task, self._next = self._next_topics, self._next, None
        try:
            await self._ask(self._topics)
        finally:
            self._task = None

    async def close(self) -> None:
        await end([self._next, self._task])


def _covers(wide: Asked, narrow: Asked) -> bool:
    return wide is None or (narrow is not None and narrow <= wide)


def _union(one: Asked, other: Asked) -> Asked:
    return None if one is None or other is None else one | other
