"""Which partition a record goes to, as Kafka's clients say it. Pure: chance is passed in.

The same key goes to the same partition from every client: murmur2 of its bytes. What has no key stays with one partition until
a batch's worth of bytes went there, and then goes on to another one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=1 << 14)
def murmur2(data: bytes) -> int:
    """The hash by which Kafka's clients spread keys, as an unsigned number.

    >>> [murmur2(key) - (1 << 32 if murmur2(key) >> 31 else 0) for key in (b"21", b"foobar", b"a-little-bit-long-string")]
    [-973932308, -790332482, -985981536]
    """
    length = len(data)
    hashed = _SEED ^ length
    for word in struct.unpack_from(f"<{length >> 2}I", data):
        k = word * _M & _MASK
        k = (k ^ k >> 24) * _M & _MASK
        hashed = hashed * _M & _MASK ^ k
    rest = length & 3
    if rest:
        hashed = (hashed ^ int.from_bytes(data[-rest:], "little")) * _M & _MASK
    hashed = (hashed ^ hashed >> 13) * _M & _MASK
    return hashed ^ hashed >> 15


def partition_of(key: bytes, partitions: int) -> int:
    """
    >>> partition_of(b"key", 12)
    1
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Where records without a key go in one topic. `random` gives numbers between 0 and 1."""

    def __init__(self, sticky_bytes: int, random: Callable[[], float]) -> None:
        self._sticky_bytes = sticky_bytes
        self._random = random
        self._partition = -1
        self._available: Sequence[int] = ()
        self._bytes = sticky_bytes

    def partition(self, size: int, available: Sequence[int]) -> int:
        """The partition for the next record of this size, of those that can be written to now."""
        if available is not self._available:
            self._available = available
            if self._partition not in available:
                self._bytes = self._sticky_bytes
        if self._bytes >= self._sticky_bytes:
            others = [each for each in available if each != self._partition] or available
            self._partition = others[int(self._random() * len(others)) % len(others)]
            self._bytes = 0
        self._bytes += size
        return self._partition
