"""Tables that iterate in the order of Java's hash tables, so that a group gets the same assignment as from Kafka.

Kafka's assignors iterate over hash tables of members, topics and partitions, and their order decides who gets which
partition. The order depends on the hashes, on the size of the table, and within a bucket on the order of insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from barnabas.config.hash_order import text_hash
from barnabas.wire import Uuid

T = TypeVar("T")

MIN_CAPACITY = 16
_FIBONACCI = -7046029254386353131 & 0xFFFFFFFFFFFFFFFF


def uuid_hash(value: Uuid) -> int:
    """Return the hash of an id in Java, as an unsigned 32-bit number."""
    words = (int.from_bytes(value[place : place + 4]) for place in (0, 4, 8, 12))
    result = 0
    for word in words:
        result ^= word
    return result


def number_hash(value: int) -> int:
    return value & 0xFFFFFFFF


class HashTable(Generic[T]):
    """A set with the order of a Java HashMap. It never shrinks."""

    __slots__ = ("_capacity", "_hash_of", "_ranks", "_turn")

    def __init__(self, hash_of: Callable[[T], int], capacity: int = MIN_CAPACITY, members: Iterable[T] = ()) -> None:
        self._hash_of = hash_of
        self._capacity = 1 << (capacity - 1).bit_length() if capacity > 1 else 1
        self._ranks: dict[T, int] = {}  # order within a bucket
        self._turn = 0
        for member in members:
            self.add(member)

    def add(self, member: T) -> None:
        """Add a member as the last one of its bucket, like `put` in Java."""
        self._turn += 1
        self._ranks.setdefault(member, self._turn)
        self._grow()

    def compute(self, member: T) -> None:
        """Add a member as the first one of its bucket, like `computeIfAbsent` in Java.

        The table grows before, not after.
        """
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
    """Return the capacity that Kafka requests for so many members."""
    return int(count / 0.75 + 1)


def copied(hash_of: Callable[[T], int], members: Iterable[T]) -> HashTable[T]:
    """Return a set of these members, with the capacity of a Java set that copies a collection."""
    given = list(members)
    return HashTable(hash_of, max(room_for(len(given)), MIN_CAPACITY), given)


def topic_order(topic_ids: Iterable[Uuid]) -> list[Uuid]:
    """Return topic ids in the order of a table to which they were added one by one."""
    return list(HashTable(uuid_hash, members=topic_ids))


def name_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of a table to which they were added one by one."""
    return list(HashTable(text_hash, members=names))


def timeline_order(names: Iterable[str], hash_of: Callable[[Any], int] = text_hash) -> list[str]:
    """Return names in the order of a TimelineHashMap, Kafka's table whose changes can be reverted.

    The order of insertion within a bucket is unknown, so names of one bucket are sorted.
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
