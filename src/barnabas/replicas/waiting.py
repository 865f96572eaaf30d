"""A waiting fetch: it ends when enough bytes arrive, when something changes, or when it times out."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition


class Waiting(Protocol):
    """Whoever waits until more of a partition can be read."""

    @property
    def is_follower(self) -> bool: ...

    def advanced(self, appended_bytes: int) -> None: ...

    def disturbed(self) -> None: ...


class WaitingFetch:
    """A single wait, registered with its partitions while it lasts."""

    __slots__ = ("_future", "_wanted_bytes", "is_follower")

    def __init__(self, wanted_bytes: int, *, is_follower: bool = False) -> None:
        self.is_follower = is_follower
        self._wanted_bytes = wanted_bytes
        self._future: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    def advanced(self, appended_bytes: int) -> None:
        """Count bytes that became readable. Zero means that the number is unknown, and ends the wait."""
        self._wanted_bytes -= appended_bytes
        if (self._wanted_bytes <= 0 or not appended_bytes) and not self._future.done():
            self._future.set_result(None)

    def disturbed(self) -> None:
        """End the wait early, because the awaited data may never arrive."""
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, partitions: Iterable[Partition], timeout_ms: int) -> None:
        """Wait until these partitions have enough bytes, or until the timeout."""
        found = list(partitions)
        for partition in found:
            partition.wait(self)
        handle = asyncio.get_running_loop().call_later(timeout_ms / 1000, self.disturbed)
        try:
            await self._future
        finally:
            handle.cancel()
            for partition in found:
                partition.stop_waiting(self)
