"""The order in which Kafka lists names from a hash table, so that responses can be compared byte by byte.

A hash table iterates over its buckets, and within a bucket in insertion order. The bucket depends on the hash of the
name and on the size of the table, which depends on the number of names. Nothing else depends on this order.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterable, Sequence
from operator import mul
from typing import Any, TypeVar

from barnabas.steps import Slices, stepwise

T = TypeVar("T")

_BUCKETS_PER_STEP = 1000
_MIN_CAPACITY = 16
_UNITS_AT_ONCE = 64
_POWERS = [pow(31, _UNITS_AT_ONCE - 1 - index, 1 << 32) for index in range(_UNITS_AT_ONCE)]
_SHIFT = pow(31, _UNITS_AT_ONCE, 1 << 32)


def text_hash(text: str) -> int:
    """Return Java's hash code of a string, as an unsigned 32-bit integer."""
    units: Sequence[int] = text.encode()
    if not text.isascii():
        wide = text.encode("utf-16-le", "surrogatepass")
        units = struct.unpack(f"<{len(wide) // 2}H", wide)
    value = 0
    rest = len(units) % _UNITS_AT_ONCE
    for unit in units[:rest]:
        value = 31 * value + unit
    value &= 0xFFFFFFFF  # a number that grew with a long text would take a time that grows with its square
    for start in range(rest, len(units), _UNITS_AT_ONCE):
        some = sum(map(mul, units[start : start + _UNITS_AT_ONCE], _POWERS))
        value = value * _SHIFT + some & 0xFFFFFFFF
    return value


def tree_order(names: Iterable[str]) -> list[str]:
    """Return the order of a tree of signed hash codes, as Kafka's image keeps topics."""
    return sorted(names, key=lambda name: text_hash(name) ^ 0x80000000)


def hash_order(
    names: Iterable[T], *, at_once: bool = False, sized: bool = False, hash_of: Callable[[Any], int] = text_hash
) -> list[T]:
    """Return the order of a hash table into which the names were inserted one by one, or `at_once` as a copy.

    A `sized` table was created for their number. `hash_of` returns the 32-bit hash of names that are not strings.
    """
    given = list(names)
    least = 1 if sized else _MIN_CAPACITY
    mask = (_capacity_at_once(len(given)) if at_once else _capacity(len(given), least)) - 1
    return sorted(given, key=lambda name: _spread(hash_of(name)) & mask)


def hash_order_in_slices(names: Iterable[T], *, hash_of: Callable[[Any], int] = text_hash) -> Slices[list[T]]:
    """Return `hash_order` of names that a client has sent, however many, in slices: they go through the table itself."""
    given: list[T] = []
    for some in stepwise(names):
        given += some
        yield
    table: list[list[T] | None] = [None] * _capacity(len(given), _MIN_CAPACITY)
    mask = len(table) - 1
    for some in stepwise(given):
        for name in some:
            slot = _spread(hash_of(name)) & mask
            bucket = table[slot]
            if bucket is None:
                table[slot] = [name]
            else:
                bucket.append(name)
        yield
    ordered: list[T] = []
    for buckets in stepwise(table, _BUCKETS_PER_STEP):
        for bucket in buckets:
            ordered += bucket or ()
        yield
    return ordered


def _spread(value: int) -> int:
    return value ^ value >> 16


def _capacity(count: int, least: int) -> int:
    capacity = least
    while count * 4 > capacity * 3:
        capacity *= 2
    return capacity


def _capacity_at_once(count: int) -> int:
    # Capacity for a third more than `count`, plus one.
    return 1 << (count * 4 // 3).bit_length()
