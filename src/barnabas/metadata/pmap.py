"""The persistent map of the image: a change shares all but a few nodes with the map before it.

The one rule: nothing else in the project knows which library it is. Its order is that of the hashes, which differ
between processes for text and bytes: whoever needs an order sorts.
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
    """A map being changed in place, once; `touched` are the keys that were set or removed."""

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
        """The value that was there, if any."""
        self.touched.add(key)
        return self._map.pop(key, None)

    def finish(self) -> PMap[K, V]:
        return self._map.finish()


def differences(
    before: PMap[K, V], after: PMap[K, V], keys: Collection[K] | None = None
) -> Iterator[tuple[K, V | None, V | None]]:
    """What differs, as (key, before, after), in no order.

    With `keys` only these are looked at, and the cost is theirs. Without, every key is, but a value that both maps
    share costs one comparison of identity.
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
