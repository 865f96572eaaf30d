"""The producer ids of this broker: the controller allocates them in blocks, and no id is used twice.

The next block is requested before the current one is exhausted, so that only the first producer waits. The rest of a
block is lost when the broker stops, which does not matter: there are 2^63 ids.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable
from typing import Final

from barnabas.transactions.state import no_producer_id
from barnabas.wire import KafkaError

_log = logging.getLogger(__name__)

PREFETCH_PERCENT: Final = 90
RETRY_BACKOFF_MS: Final = 50

Allocate = Callable[[], Awaitable[tuple[int, int]]]
"""Asks the active controller for a block, and returns its first id and its size."""


class ProducerIds:
    """The available ids. After `wait_available` there is one, unless another producer has claimed it meanwhile."""

    def __init__(self, allocate: Allocate, monotonic_ms: Callable[[], int]) -> None:
        self._allocate = allocate
        self._monotonic_ms = monotonic_ms
        self._current = range(0)
        self._next = range(0)
        self._prefetch_at = -1
        self._request: asyncio.Task[None] | None = None
        self._retry_at_ms = 0

    @property
    def next_id(self) -> int | None:
        """The id that `claim` returns next, or None if none is available."""
        block = self._current or self._next
        return block.start if block else None

    def refill(self) -> None:
        """Request a block from the controller if no id is available, without waiting for it."""
        if self.next_id is None:
            self._request_block()

    async def wait_available(self) -> None:
        """Wait for an id. Raises COORDINATOR_LOAD_IN_PROGRESS if the controller does not provide one."""
        if self.next_id is not None:
            return
        self._request_block()
        if self._request is not None:
            await asyncio.shield(self._request)
        if self.next_id is None:
            raise no_producer_id()

    def claim(self) -> int:
        """Return the next id and use it up.

        Raises COORDINATOR_LOAD_IN_PROGRESS if there is none, and requests a block.
        """
        if not self._current:
            self._current, self._next = self._next, range(0)
            self._prefetch_at = self._current.start + len(self._current) * PREFETCH_PERCENT // 100
        if not self._current:
            self._request_block()
            raise no_producer_id()
        producer_id = self._current.start
        self._current = self._current[1:]
        if producer_id >= self._prefetch_at:
            self._request_block()
        return producer_id

    def stop(self) -> None:
        if self._request is not None:
            self._request.cancel()

    def _request_block(self) -> None:
        if self._next or self._request is not None or self._monotonic_ms() < self._retry_at_ms:
            return
        self._request = asyncio.get_running_loop().create_task(self._fetch())

    async def _fetch(self) -> None:
        try:
            first, size = await self._allocate()
            if first < self._current.stop or size <= 0:
                raise ValueError(f"the controller allocated an invalid block of {size} producer ids from {first} on")
            self._next = range(first, first + size)
        except (KafkaError, OSError, TimeoutError, ValueError) as error:
            _log.warning("could not get producer ids from the controller: %s", error)
            self._retry_at_ms = self._monotonic_ms() + RETRY_BACKOFF_MS
        finally:
            self._request = None
