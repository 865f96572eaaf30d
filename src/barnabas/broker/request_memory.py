"""The memory of all requests that a node receives or works on: who holds how much, and who may read on. No I/O.

A connection may read as long as the node holds less than the limit. Above it, every connection that holds more than
`FREE_BYTES` waits, except for one at a time, so that its request can be completed and its memory is released. So a node
holds no more than the limit, one request, and `FREE_BYTES` for each connection; small requests are always read.

Its one rule: memory is counted when it is taken, or when a connection may read and will take it; not when it is announced.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Generic, TypeVar

H = TypeVar("H")

UNLIMITED = 2**63 - 1
FREE_BYTES = 1 << 15  # a connection that holds no more never waits
MAX_READ_BYTES = 1 << 14  # read at once from one connection while memory is short


class RequestMemory(Generic[H]):
    """The bytes of each holder, which is a connection. `limit_bytes` may be changed at any time."""

    def __init__(self, limit_bytes: int = UNLIMITED) -> None:
        self.limit_bytes = limit_bytes
        self.held_bytes = 0
        self.most_held_bytes = 0
        self.exhausted_total = 0  # how often reading was limited
        self.ahead: H | None = None  # the one that may read although memory is short
        self._held: dict[H, int] = {}
        self._waiting: dict[H, int] = {}  # with the bytes that each would take next, in the order of arrival

    @property
    def is_short(self) -> bool:
        return bool(self._waiting) or self.held_bytes >= self.limit_bytes

    @property
    def holders(self) -> Iterable[H]:
        return self._held.keys()

    @property
    def waiting(self) -> Iterable[H]:
        return self._waiting.keys()

    @property
    def waiting_count(self) -> int:
        return len(self._waiting)

    def bytes_of(self, holder: H) -> int:
        return self._held.get(holder, 0)

    def hold(self, holder: H, held_bytes: int, growth_bytes: int = 0) -> bool:
        """Note what the holder has now and would take next. Return whether it must wait before it reads more."""
        self._count(holder, held_bytes)
        if held_bytes <= FREE_BYTES:
            self._stop_waiting(holder)
            return False
        if holder is self.ahead:
            return False
        # Nobody overtakes those that wait: the largest request would never fit.
        must_wait = bool(self._waiting) or self.held_bytes + growth_bytes > self.limit_bytes
        if must_wait:
            if not self._waiting:
                self.exhausted_total += 1
            self._waiting[holder] = growth_bytes
        elif growth_bytes:  # the others must not count on the same memory
            self._count(holder, held_bytes + growth_bytes)
        return must_wait

    def forget(self, holder: H) -> None:
        """Release everything that the holder has."""
        self.hold(holder, 0)

    def released(self) -> list[H]:
        """Return those that may read again because there is room for them, the longest waiting first."""
        free_bytes = self.limit_bytes - self.held_bytes
        found: list[H] = []
        for holder, growth_bytes in self._waiting.items():
            free_bytes -= max(growth_bytes, MAX_READ_BYTES)
            if free_bytes < 0:
                break
            found.append(holder)
        for holder in found:
            self._count(holder, self._held[holder] + self._waiting.pop(holder))
        if not self._waiting:
            self.ahead = None
        return found

    def let_ahead(self, holder: H) -> None:
        """Let one of those that wait read until it holds little again: its request was answered or it is gone."""
        del self._waiting[holder]
        self.ahead = holder

    def _count(self, holder: H, held_bytes: int) -> None:
        self.held_bytes += held_bytes - self._held.get(holder, 0)
        if held_bytes:
            self._held[holder] = held_bytes
        else:
            self._held.pop(holder, None)
        self.most_held_bytes = max(self.most_held_bytes, self.held_bytes)

    def _stop_waiting(self, holder: H) -> None:
        self._waiting.pop(holder, None)
        if holder is self.ahead:
            self.ahead = None
