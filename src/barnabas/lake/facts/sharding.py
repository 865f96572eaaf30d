"""The sharding rule of folds: the shard that a key belongs to, computed in Python and as a Spark column.

Its one rule: both functions return the same shard for the same key. Spark routes records, and Python routes open facts; a
fact has to meet its records. tests/lake/facts/test_sharding.py compares them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING
from zlib import crc32

if TYPE_CHECKING:
    from pyspark.sql import Column


def shard_of(key: str, shards: int) -> int:
    """
    >>> [shard_of(key, 4) for key in ("", "orders", "brokers")]
    [0, 2, 3]
    """
    return crc32(key.encode()) % shards


def shard_column(key: Column, shards: int) -> Column:
    """`shard_of` as a Spark column; 0 where the key is null."""
    from pyspark.sql import functions as f

    return f.coalesce(f.crc32(f.encode(key, "UTF-8")) % shards, f.lit(0)).cast("int")


def log_key(cluster_id: str | None, log: str) -> str:
    """Return the key of a log that one shard folds alone."""
    return f"{cluster_id or ''}/{log}"


def log_key_column(cluster_id: Column, log: Column) -> Column:
    """`log_key` as a Spark column."""
    from pyspark.sql import functions as f

    return f.concat_ws("/", f.coalesce(cluster_id, f.lit("")), log)
