"""The partition of a coordinator's topic that a group or transactional id belongs to."""

from __future__ import annotations

from functools import lru_cache

from barnabas.config.hash_order import text_hash

_MIN_INT32 = 0x80000000  # Integer.MIN_VALUE in Java: its absolute value does not fit, so Kafka uses zero


@lru_cache(maxsize=10_000)  # called for every heartbeat
def partition_for(key: str, partitions: int) -> int:
    """Return the partition of a key in a topic with that many partitions, as Kafka computes it."""
    value = text_hash(key)
    if value >= _MIN_INT32:
        value = 0 if value == _MIN_INT32 else 0x1_0000_0000 - value
    return value % partitions
