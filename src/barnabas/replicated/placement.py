"""Which partition of a coordinator's topic, and so which machine, a group or a transactional id belongs to."""

from __future__ import annotations

from functools import lru_cache

from barnabas.config.hash_order import text_hash

_LEAST = 0x80000000  # as a signed number it has no opposite, and counts as zero


@lru_cache(maxsize=10_000)  # asked with every heartbeat
def partition_for(key: str, partitions: int) -> int:
    """The partition of a key in a topic with so many of them; it never changes while their number stays."""
    value = text_hash(key)
    if value >= _LEAST:
        value = 0 if value == _LEAST else 0x1_0000_0000 - value
    return value % partitions
