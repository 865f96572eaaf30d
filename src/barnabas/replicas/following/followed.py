"""A partition that this broker follows: its leader, the position to fetch from, and when to fetch again. Pure."""

from __future__ import annotations

from barnabas.config.hash_order import text_hash
from barnabas.replicas.partition import Partition
from barnabas.storage import Log
from barnabas.wire import Uuid

NO_EPOCH = -1
FIRST_BACKOFF_S = 0.01


class Followed:
    """A partition in one leader epoch. Its position is None until its log is open."""

    __slots__ = ("after_s", "failures", "is_failed", "lag", "last_epoch", "leader_epoch", "offset", "partition")

    def __init__(self, partition: Partition) -> None:
        self.partition = partition
        self.leader_epoch = partition.leader_epoch
        self.offset: int | None = None
        self.last_epoch = NO_EPOCH
        self.lag: int | None = None  # records behind the leader's high watermark, None if unknown
        self.after_s = 0.0  # not fetched before
        self.failures = 0  # in a row
        self.is_failed = False  # not fetched until the leader or its epoch changes

    @property
    def key(self) -> tuple[Uuid, int]:
        return self.partition.topic_id, self.partition.partition_id

    @property
    def is_current(self) -> bool:
        """Whether this broker still follows this leader epoch."""
        partition = self.partition
        return not (partition.is_leader or partition.is_offline) and partition.leader_epoch == self.leader_epoch

    def delay(self, now_s: float, max_backoff_s: float) -> None:
        """Wait before the next fetch, longer after each failure.

        The first waits are short, because a new leader needs a moment to learn that it is one.
        """
        self.after_s = now_s + min(max_backoff_s, FIRST_BACKOFF_S * 2.0 ** min(self.failures, 20))
        self.failures += 1

    def place(self, log: Log) -> None:
        """Continue at the end of the log."""
        self.offset = log.log_end_offset
        latest = log.epochs.latest_epoch
        self.last_epoch = NO_EPOCH if latest is None else latest


def fetcher_number(topic: str, partition_id: int, fetchers: int) -> int:
    """Return which of the fetchers of a leader has a partition, as in Kafka.

    >>> [fetcher_number("orders", each, 4) for each in range(5)]
    [1, 0, 3, 2, 1]
    """
    value = (31 * text_hash(topic) + partition_id) & 0xFFFFFFFF
    return (0x1_0000_0000 - value if value > 0x80000000 else value & 0x7FFFFFFF) % fetchers
