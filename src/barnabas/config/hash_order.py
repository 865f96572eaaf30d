"""The order in which Kafka lists names that it keeps in a hash table, so that answers can be compared byte by byte.

A table goes through its buckets, and through each bucket in the order in which names came. Buckets follow from the
hash of a name and the size of the table, which follows from the number of names. Nothing else depends on this order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable
from typing import Any, TypeVar

T = TypeVar("T")

_LEAST_CAPACITY = 16


def text_hash(text: str) -> int:
    """The hash of a text in Java, as an unsigned number of 32 bits."""
    units: Iterable[int] = text.encode()
    if not text.isascii():
        wide = text.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(wide) // 2}H", wide)
    value = 0
    for unit in units:
        value = 31 * value + unit
    return value & 0xFFFFFFFF


def tree_order(names: Iterable[str]) -> list[str]:
    """The order of a tree of hashes, which count as signed numbers: Kafka's image keeps topics like that."""
    return sorted(names, key=lambda name: text_hash(name) ^ 0x80000000)


def hash_order(
    names: Iterable[T], *, at_once: bool = False, sized: bool = False, hash_of: Callable[[Any], int] = text_hash
) -> list[T]:
    """The order of a hash table into which the names came one by one, or `at_once` as a copy of another table.

    A table that is `sized` was made for their number. What is no text has a hash of its own, of 32 bits.
    """
    given = list(names)
    least = 1 if sized else _LEAST_CAPACITY
    mask = (_capacity_at_once(len(given)) if at_once else _capacity(len(given), least)) - 1
    return sorted(given, key=lambda name: _spread(hash_of(name)) & mask)


def _spread(value: int) -> int:
    return value ^ value >> 16


def _capacity(count: int, least: int) -> int:
    capacity = least
    while count * 4 > capacity * 3:
        capacity *= 2
    return capacity


def _capacity_at_once(count: int) -> int:
    # Room for a third more, and one more than that.
    return 1 << (count * 4 // 3).bit_length()
