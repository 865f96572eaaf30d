"""A table of clients that is limited in number and bytes: what was not used for longest is forgotten."""

from __future__ import annotations

from collections import OrderedDict
from typing import Generic, TypeVar

K = TypeVar("K")
V = TypeVar("V")


class Recent(Generic[K, V]):
    """Values by key, least recently used first. The caller estimates the bytes of each entry, with its key."""

    def __init__(self, max_count: int, max_bytes: int) -> None:
        self.max_count = max_count
        self.max_bytes = max_bytes
        self.held_bytes = 0
        self.forgotten_total = 0
        self._entries: OrderedDict[K, tuple[V, int]] = OrderedDict()

    def __len__(self) -> int:
        return len(self._entries)

    def get(self, key: K) -> V | None:
        entry = self._entries.get(key)
        return None if entry is None else entry[0]

    def use(self, key: K) -> V | None:
        """Return the value, as the one that was used last."""
        entry = self._entries.get(key)
        if entry is None:
            return None
        self._entries.move_to_end(key)
        return entry[0]

    def put(self, key: K, value: V, size_bytes: int) -> None:
        """Add or replace a value, as the one that was used last. Others are forgotten if there is no room for it."""
        replaced = self._entries.pop(key, None)
        if replaced is not None:
            self.held_bytes -= replaced[1]
        self._entries[key] = value, size_bytes
        self.held_bytes += size_bytes
        while len(self._entries) > 1 and (len(self._entries) > self.max_count or self.held_bytes > self.max_bytes):
            _, (_, freed_bytes) = self._entries.popitem(last=False)
            self.held_bytes -= freed_bytes
            self.forgotten_total += 1
