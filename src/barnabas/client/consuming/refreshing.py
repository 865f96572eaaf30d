"""Refreshes the metadata of the topics that are read, in the background, when leaders are not where they were."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable, Iterable

from barnabas.client.cluster import Cluster
from barnabas.client.shared import begin, end
from barnabas.wire import KafkaError

_EVERY_S = 0.1


class Refreshing:
    """One refresh at a time, then a pause, then `then` is called."""

    def __init__(self, cluster: Cluster, topics: Callable[[], Iterable[str]], then: Callable[[], None]) -> None:
        self._cluster = cluster
        self._topics = topics
        self._then = then
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False

    def soon(self) -> None:
        if self._task is None and not self._is_closed:
            self._task = begin(self._refresh())

    async def close(self) -> None:
        self._is_closed = True
        await end([self._task])

    async def _refresh(self) -> None:
        try:
            with contextlib.suppress(KafkaError, OSError):
                await self._cluster.refresh(set(self._topics()))
            await asyncio.sleep(_EVERY_S)
        finally:
            self._task = None
        self._then()
