"""The partition of each record, chosen as Kafka's clients do. Pure: randomness is passed in.

Every client sends the same key to the same partition: by murmur2 of its bytes. Records without a key go to one
partition until it got a batch's worth of bytes, and then to another one.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Sequence
from functools import lru_cache

from barnabas.client.state import NO_LEADER, Topic

_M = 0x5BD1E995
_SEED = 0x9747B28C
_MASK = 0xFFFFFFFF


@lru_cache(maxsize=1 << 14)
def murmur2(data: bytes) -> int:
    """Return the hash that Kafka's clients use for keys, as an unsigned number.

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
    """Return the partition of a key.

    >>> partition_of(b"key", 12)
    1
    """
    return (murmur2(key) & 0x7FFFFFFF) % partitions


class StickyPartitioner:
    """Chooses the partitions of records without a key in one topic. `random` returns numbers from 0 to 1."""

    def __init__(self, sticky_bytes: int, random: Callable[[], float]) -> None:
        self._sticky_bytes = sticky_bytes
        self._random = random
        self._partition = -1
        self._available: Sequence[int] = ()
        self._bytes = sticky_bytes

    def partition(self, size: int, available: Sequence[int]) -> int:
        """Return the partition of the next record, which has this size, from those that can be written to now."""
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


class Partitioner:
    """Chooses the partition of each record: by its key or, without one, by the sticky partitioner of its topic."""

    def __init__(self, batch_size: int, ignore_keys: bool, random: Callable[[], float]) -> None:
        self._sticky_bytes = max(batch_size, 1)
        self._ignore_keys = ignore_keys
        self._random = random
        self._topics: dict[str, _WritablePartitions] = {}

    def partition(self, topic: Topic, key: bytes | None, size: int) -> int:
        """Return the partition of a record of this size."""
        if key is not None and not self._ignore_keys:
            return partition_of(key, len(topic.partitions))
        writable = self._topics.get(topic.name)
        if writable is None:
            sticky = StickyPartitioner(self._sticky_bytes, self._random)
            writable = self._topics[topic.name] = _WritablePartitions(topic, sticky)
        elif writable.topic is not topic:
            writable.follow(topic)
        return writable.sticky.partition(size, writable.available)


class _WritablePartitions:
    """The partitions of a topic that have a leader, or all of them if none has one.

    Found anew when the topic changes.
    """

    __slots__ = ("available", "sticky", "topic")

    def __init__(self, topic: Topic, sticky: StickyPartitioner) -> None:
        self.sticky = sticky
        self.follow(topic)

    def follow(self, topic: Topic) -> None:
        self.topic = topic
        led = tuple(index for index, each in topic.partitions.items() if each.leader_id != NO_LEADER)
        self.available = led or tuple(topic.partitions)
