"""The persistent map of the image: a changed copy shares all but a few nodes with the original.

The one rule: only this module knows which library implements it. Its iteration order is that of hashes, which differ
between processes for text and bytes, so code that needs an order must sort.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING, Generic, TypeVar

from immutables import Map as PMap

if TYPE_CHECKING:
    from immutables import MapMutation

__all__ = ["MapDraft", "PMap", "differences"]

K = TypeVar("K")
V = TypeVar("V")


class MapDraft(Generic[K, V]):
    """A map being changed in place, until `finish`. `touched` are the keys that were set or removed."""

    __slots__ = ("_map", "touched")

    def __init__(self, base: PMap[K, V]) -> None:
        self._map: MapMutation[K, V] = base.mutate()
        self.touched: set[K] = set()

    def get(self, key: K) -> V | None:
        return self._map.get(key)

    def set(self, key: K, value: V) -> None:
        self._map[key] = value
        self.touched.add(key)

    def remove(self, key: K) -> V | None:
        """Remove the key and return its value, or None."""
        self.touched.add(key)
        return self._map.pop(key, None)

    def finish(self) -> PMap[K, V]:
        return self._map.finish()


def differences(
    before: PMap[K, V], after: PMap[K, V], keys: Collection[K] | None = None
) -> Iterator[tuple[K, V | None, V | None]]:
    """Yield the differences as (key, before, after), in no particular order.

    With `keys` only these are compared. Otherwise every key is, but a value shared by both maps costs only one identity
    comparison.
    """
    if before is after:
        return
    if keys is None:
        for key, value in after.items():
            old = before.get(key)
            if old is not value and old != value:
                yield key, old, value
        keys = [key for key in before if key not in after]
    for key in keys:
        old, new = before.get(key), after.get(key)
        if old is not new and old != new:
            yield key, old, new
