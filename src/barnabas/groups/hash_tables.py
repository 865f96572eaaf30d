"""Tables that are gone through in the order of Kafka's, so that the same group gets the same assignment.

Kafka's assignors go through hash tables of members, topics and partitions: who gets which partition depends on their order.
It follows from the hashes, from the size of the table, and within a bucket from who came first. Nothing else depends on it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from barnabas.config.hash_order import text_hash
from barnabas.wire import Uuid

T = TypeVar("T")

LEAST_CAPACITY = 16
_FIBONACCI = -7046029254386353131 & 0xFFFFFFFFFFFFFFFF


def uuid_hash(value: Uuid) -> int:
    """The hash of an id in Java, as an unsigned number of 32 bits."""
    words = (int.from_bytes(value[place : place + 4]) for place in (0, 4, 8, 12))
    result = 0
    for word in words:
        result ^= word
    return result


def number_hash(value: int) -> int:
    return value & 0xFFFFFFFF


class HashTable(Generic[T]):
    """A set with the order of a Java table. It never shrinks."""

    __slots__ = ("_capacity", "_hash_of", "_ranks", "_turn")

    def __init__(self, hash_of: Callable[[T], int], capacity: int = LEAST_CAPACITY, members: Iterable[T] = ()) -> None:
        self._hash_of = hash_of
        self._capacity = 1 << (capacity - 1).bit_length() if capacity > 1 else 1
        self._ranks: dict[T, int] = {}  # within a bucket
        self._turn = 0
        for member in members:
            self.add(member)

    def add(self, member: T) -> None:
        """It comes last in its bucket."""
        self._turn += 1
        self._ranks.setdefault(member, self._turn)
        self._grow()

    def compute(self, member: T) -> None:
        """As Java computes what is absent: it comes first in its bucket, and the table grows before, not after."""
        self._grow()
        self._turn += 1
        self._ranks.setdefault(member, -self._turn)

    def remove(self, member: T) -> None:
        self._ranks.pop(member, None)

    def _grow(self) -> None:
        while len(self._ranks) * 4 > self._capacity * 3:
            self._capacity *= 2

    def __len__(self) -> int:
        return len(self._ranks)

    def __contains__(self, member: object) -> bool:
        return member in self._ranks

    def __iter__(self) -> Iterator[T]:
        mask, hash_of, ranks = self._capacity - 1, self._hash_of, self._ranks

        def place(member: T) -> tuple[int, int]:
            value = hash_of(member)
            return (value ^ value >> 16) & mask, ranks[member]

        return iter(sorted(ranks, key=place))


def room_for(count: int) -> int:
    """The capacity that Kafka asks for to hold so many."""
    return int(count / 0.75 + 1)


def copied(hash_of: Callable[[T], int], members: Iterable[T]) -> HashTable[T]:
    """A set made of a collection."""
    given = list(members)
    return HashTable(hash_of, max(room_for(len(given)), LEAST_CAPACITY), given)


def topic_order(topic_ids: Iterable[Uuid]) -> list[Uuid]:
    """The order of a table into which topic ids came one by one."""
    return list(HashTable(uuid_hash, members=topic_ids))


def name_order(names: Iterable[str]) -> list[str]:
    """The order of a table into which texts came one by one."""
    return list(HashTable(text_hash, members=names))


def timeline_order(names: Iterable[str], hash_of: Callable[[Any], int] = text_hash) -> list[str]:
    """The order of the tables in which Kafka's coordinator keeps what it may have to take back.

    Among those of one place, who came first is not known any more: they stand by name.
    """
    given = sorted(names)
    capacity = 2
    while len(given) * 3 > capacity * 4:
        capacity *= 2
    shift = 65 - capacity.bit_length()

    def slot(name: str) -> int:
        value = hash_of(name)
        signed = value - (1 << 32) if value & 0x80000000 else value
        return (signed * _FIBONACCI & 0xFFFFFFFFFFFFFFFF) >> shift

    return sorted(given, key=slot)
