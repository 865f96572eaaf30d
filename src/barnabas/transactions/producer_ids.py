"""The producer ids that this broker may give out: the controller grants them in blocks, and no id is ever given twice.

A new block is asked for before the last one is used up, so that nobody waits but the first. A block that was granted and not
used up when the broker stops is lost: there are enough.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.wire import ErrorCode, KafkaError

log = logging.getLogger(__name__)

PREFETCH_PERCENT: Final = 90
RETRY_BACKOFF_MS: Final = 50

Allocate = Callable[[], Awaitable[tuple[int, int]]]
"""Asks the active controller; the first id of a block and its size."""


class ProducerIds:
    """`claim` gives an id; after `wait_available` there is one, unless others were faster."""

    def __init__(self, allocate: Allocate, now_ms: Callable[[], int]) -> None:
        self._allocate = allocate
        self._now_ms = now_ms
        self._current = range(0)
        self._next = range(0)
        self._prefetch_at = -1
        self._request: asyncio.Task[None] | None = None
        self._retry_at_ms = 0

    async def wait_available(self) -> None:
        """Raises COORDINATOR_LOAD_IN_PROGRESS when the controller grants none now."""
        if self._current or self._next:
            return
        self._request_block()
        if self._request is not None:
            await asyncio.shield(self._request)
        if not (self._current or self._next):
            raise _none_left()

    def claim(self) -> int:
        """The next id. Raises COORDINATOR_LOAD_IN_PROGRESS when there is none, and asks for more."""
        if not self._current:
            self._current, self._next = self._next, range(0)
            self._prefetch_at = self._current.start + len(self._current) * PREFETCH_PERCENT // 100
        if not self._current:
            self._request_block()
            raise _none_left()
        producer_id = self._current.start
        self._current = self._current[1:]
        if producer_id >= self._prefetch_at:
            self._request_block()
        return producer_id

    def stop(self) -> None:
        if self._request is not None:
            self._request.cancel()

    def _request_block(self) -> None:
        if self._next or self._request is not None or self._now_ms() < self._retry_at_ms:
            return
        self._request = asyncio.get_running_loop().create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            first, size = await self._allocate()
            if first < self._current.stop or size <= 0:
                raise ValueError(f"the controller granted {size} producer ids from {first} on, which cannot be")
            self._next = range(first, first + size)
        except (KafkaError, OSError, TimeoutError, ValueError) as error:
            log.warning("no producer ids from the controller yet: %s", error)
            self._retry_at_ms = self._now_ms() + RETRY_BACKOFF_MS
        finally:
            self._request = None


def _none_left() -> KafkaError:
    # As Kafka does: old clients take REQUEST_TIMED_OUT here for the end of everything.
    return KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "Producer ID block is full. Waiting for next block")
