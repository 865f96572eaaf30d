"""Tables that iterate in the order of Java's hash tables, so that a group gets the same assignment as from Kafka.

Kafka's assignors iterate over hash tables of members, topics and partitions, and their order decides who gets which
partition. The order depends on the hashes, on the size of the table, and within a bucket on the order of insertion.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any, Generic, TypeVar

from barnabas.config.hash_order import text_hash
from barnabas.steps import Slices, at_once, mapped
from barnabas.wire import Uuid

T = TypeVar("T")

MIN_CAPACITY = 16
_FIBONACCI = -7046029254386353131 & 0xFFFFFFFFFFFFFFFF


def uuid_hash(value: Uuid) -> int:
    """Return the hash of an id in Java, as an unsigned 32-bit number."""
    words = int.from_bytes(value)
    words ^= words >> 64
    return (words ^ words >> 32) & 0xFFFFFFFF


def number_hash(value: int) -> int:
    return value & 0xFFFFFFFF


class HashTable(Generic[T]):
    """A set with the order of a Java HashMap. It never shrinks."""

    __slots__ = ("_capacity", "_hash_of", "_is_appended", "_ranks", "_turn")

    def __init__(self, hash_of: Callable[[T], int], capacity: int = MIN_CAPACITY, members: Iterable[T] = ()) -> None:
        self._hash_of = hash_of
        self._capacity = 1 << (capacity - 1).bit_length() if capacity > 1 else 1
        given = list(members)
        self._ranks = dict(zip(given, range(len(given)), strict=True))  # order within a bucket
        if len(self._ranks) < len(given):
            self._ranks = {member: rank for rank, member in enumerate(dict.fromkeys(given))}
        self._is_appended = True  # all members are in the order of their ranks
        self._turn = len(given)
        self._grow()

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
        self._is_appended = False
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
        members = self._by_rank()
        if len(members) > 1:
            members.sort(key=self._bucket)
        return iter(members)

    def in_order(self) -> Slices[list[T]]:
        """Return the members in the order of the table; their hashes are computed in slices."""
        members = self._by_rank()
        buckets = yield from mapped(self._bucket, members)
        yield
        return [members[index] for index in sorted(range(len(members)), key=buckets.__getitem__)]

    def _by_rank(self) -> list[T]:
        return list(self._ranks) if self._is_appended else sorted(self._ranks, key=self._ranks.__getitem__)

    def _bucket(self, member: T) -> int:
        value = self._hash_of(member)
        return (value ^ value >> 16) & (self._capacity - 1)


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


def topic_order_in_slices(topic_ids: Iterable[Uuid]) -> Slices[list[Uuid]]:
    """Return `topic_order`."""
    return HashTable(uuid_hash, members=topic_ids).in_order()


def name_order(names: Iterable[str]) -> list[str]:
    """Return names in the order of a table to which they were added one by one."""
    return list(HashTable(text_hash, members=names))


def name_order_in_slices(names: Iterable[str]) -> Slices[list[str]]:
    """Return `name_order`."""
    return HashTable(text_hash, members=names).in_order()


def timeline_order(names: Iterable[str], hash_of: Callable[[Any], int] = text_hash) -> list[str]:
    """Return names in the order of a TimelineHashMap, Kafka's table whose changes can be reverted.

    The order of insertion within a bucket is unknown, so names of one bucket are sorted.
    """
    return at_once(timeline_order_in_slices(names, hash_of))


def timeline_order_in_slices(names: Iterable[str], hash_of: Callable[[Any], int] = text_hash) -> Slices[list[str]]:
    """Return `timeline_order`."""
    given = sorted(names)
    capacity = 2
    while len(given) * 3 > capacity * 4:
        capacity *= 2
    shift = 65 - capacity.bit_length()

    def slot(name: str) -> int:
        value = hash_of(name)
        signed = value - (1 << 32) if value & 0x80000000 else value
        return (signed * _FIBONACCI & 0xFFFFFFFFFFFFFFFF) >> shift

    slots = yield from mapped(slot, given)
    return [given[index] for index in sorted(range(len(given)), key=slots.__getitem__)]
