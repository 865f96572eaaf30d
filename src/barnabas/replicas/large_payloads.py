"""Decompression of large batches: in threads, and a few at a time, because of their memory.

Its one rule: only so many payloads that may be large are decompressed in memory at a time; others wait for their turn.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.batches import AppendRules, BatchError, BatchHeader, decode_payload, must_open
from barnabas.batches.compression import most_decompressed_bytes
from barnabas.batches.format import HEADER_SIZE, Buffer

SMALL_BYTES = 1 << 18  # a payload that cannot be larger is decompressed where it is needed


class LargePayloads:
    """The payloads of one node that are decompressed now. `limit` returns how many there may be."""

    def __init__(self, limit: Callable[[], int] = lambda: 2) -> None:
        self.limit = limit
        self.opened = 0  # in all
        self.waiting = 0  # for room, now
        self.open = 0  # now
        self._room: asyncio.Semaphore | None = None  # from the first one on

    def ticket(self, batch: Buffer, header: BatchHeader, rules: AppendRules, now_ms: int) -> Ticket | None:
        """Return a ticket if the batch has to be decompressed for these rules and may be large."""
        try:
            if not must_open(header, rules, now_ms):
                return None
            payload = memoryview(batch)[HEADER_SIZE : header.size_in_bytes]
            if most_decompressed_bytes(header.compression, payload) <= SMALL_BYTES:
                return None
        except BatchError:
            return None  # its validation will raise the error that comes first
        return Ticket(self, batch, header, rules.max_decompressed_bytes)

    async def enter(self) -> None:
        """Wait for room to hold one more payload."""
        if self._room is None:
            self._room = asyncio.Semaphore(self.limit())
        self.waiting += 1
        try:
            await self._room.acquire()
        finally:
            self.waiting -= 1
        self.opened += 1
        self.open += 1

    def leave(self) -> None:
        assert self._room is not None
        self.open -= 1
        self._room.release()


class Ticket:
    """The right to hold one large payload. `leave` gives it back, whether `open` has finished or not."""

    def __init__(
        self, payloads: LargePayloads, batch: Buffer, header: BatchHeader, max_decompressed_bytes: int
    ) -> None:
        self._payloads = payloads
        self._batch = batch
        self._header = header
        self._max_decompressed_bytes = max_decompressed_bytes
        self._is_inside = False
        self.payload: bytes | BatchError = b""

    async def open(self) -> None:
        """Wait for room and decompress the batch in a thread. `payload` is the result."""
        await self._payloads.enter()
        self._is_inside = True
        self.payload = await asyncio.to_thread(self._decompress)

    def _decompress(self) -> bytes | BatchError:
        try:
            return decode_payload(self._batch, 0, self._header, max_decompressed_bytes=self._max_decompressed_bytes)
        except BatchError as error:
            return error

    def leave(self) -> None:
        self.payload = b""
        if self._is_inside:
            self._is_inside = False
            self._payloads.leave()
