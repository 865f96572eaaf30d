"""The read side of Fetch: find the batches of each partition in turn that the reader may see, until there are enough.

Its one rule: batches are first located in their files and only read when they are sent, so a fetch that waits has read
nothing. The first partition with data returns at least one batch, however large, so that every reader makes progress;
after that the limits apply. An error affects one partition only, but ends the wait of the whole fetch.

Batches are returned whole. Kafka cuts the last one at the limit, and clients discard that part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from barnabas.replicas.fetch_sessions import PAUSE_EVERY, Wanted
from barnabas.replicas.throttle import is_throttled
from barnabas.slices import Slices
from barnabas.storage import FileRange, StorageError
from barnabas.storage.aborted import AbortedTxn
from barnabas.storage.epochs import UNDEFINED_EPOCH, UNDEFINED_OFFSET, EpochEndOffset
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.replicas.partition import Partition
    from barnabas.replicas.replicas import Replicas

CHUNK_BYTES = 1 << 20  # bytes read from disk at a time while sending
CONSUMER = -1  # replica id of a consumer
NO_EPOCH = -1


class Isolation(Enum):
    """The offset at which the log ends for a reader."""

    LOG_END = "log end"
    HIGH_WATERMARK = "high watermark"
    LAST_STABLE = "last stable offset"


class Limits(NamedTuple):
    """The kind of reader and its limits, in Kafka's terms."""

    isolation: Isolation
    max_bytes: int
    min_bytes: int
    replica_id: int = CONSUMER
    only_leader: bool = False
    replica_epoch: int = NO_EPOCH  # of the follower's broker
    near: Callable[[Partition, int], int | None] | None = None  # finds a follower near the consumer, by its offset

    @property
    def is_follower(self) -> bool:
        return self.replica_id >= 0


class Found(NamedTuple):
    """The result for one partition.

    `batches` is None if there is no data; `end` is where the log ends for this reader.
    """

    wanted: Wanted
    error_code: ErrorCode = ErrorCode.NONE
    partition: Partition | None = None
    high_watermark: int = -1
    log_start_offset: int = -1
    log_end_offset: int = -1
    end: int = -1
    batches: FileRange | None = None
    diverging: EpochEndOffset | None = None
    preferred_read_replica: int = -1


class StoredRecords:
    """Batches that are read in chunks while they are sent, so that what a client has not received stays on disk.

    In a response they take the place of bytes. If a chunk cannot be read, the response cannot be completed.
    """

    __slots__ = ("_batches", "partition")

    def __init__(self, partition: Partition, batches: FileRange) -> None:
        self.partition = partition
        self._batches = batches

    def __len__(self) -> int:
        return self._batches.size

    def __bytes__(self) -> bytes:
        return self._batches.read()

    def part(self, start: int, max_bytes: int) -> FileRange:
        """Return where the bytes from `start` on are, at most `max_bytes` of them."""
        batches = self._batches
        return batches._replace(position=batches.position + start, size=min(max_bytes, batches.size - start))

    def read_cached(self) -> bytes | bytearray | None:
        """Return all bytes if they are in memory, or None."""
        return self._batches.read_cached()

    def failed(self, error: StorageError) -> None:
        self.partition.read_failed(error)


def isolation_of(replica_id: int, isolation_level: int) -> Isolation:
    if replica_id != CONSUMER:
        return Isolation.LOG_END
    return Isolation.LAST_STABLE if isolation_level == 1 else Isolation.HIGH_WATERMARK


def check_leadership(partition: Partition, current_leader_epoch: int, *, only_leader: bool) -> None:
    """Raise Kafka's error if the reader has another leader epoch, or needs the leader and this replica is not it."""
    epoch = partition.leader_epoch
    if current_leader_epoch not in (NO_EPOCH, epoch):
        is_old = current_leader_epoch < epoch
        raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH if is_old else ErrorCode.UNKNOWN_LEADER_EPOCH)
    if only_leader and not partition.is_leader:
        raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)


def replica_of(replicas: Replicas, wanted: Wanted) -> Partition | None:
    """Return the partition on this broker. It is cached in `wanted` until it goes offline or is deleted."""
    found = wanted.replica
    if found is None or found.is_offline:
        found = wanted.replica = replicas.get(wanted.topic or "", wanted.partition)
    return found


def find(replicas: Replicas, wanted: Iterable[Wanted], limits: Limits, *, is_first: bool = True) -> Slices[list[Found]]:
    """Return what can be read now, in the order of `wanted`. Logs that are not open yet are opened.

    Only the first call of a fetch records a follower's position.
    """
    left = max(limits.max_bytes, 0)
    is_empty = True
    found: list[Found] = []
    for each in wanted:
        if len(found) % PAUSE_EVERY == PAUSE_EVERY - 1:
            yield
        try:
            partition = replica_of(replicas, each)
            if partition is None or partition.is_offline:
                partition = replicas.partition(each.topic or "", each.partition)  # raises the matching error
            if partition.opened_log is None:
                yield partition.opening()
                partition = replicas.partition(each.topic or "", each.partition)  # it may be deleted meanwhile
            one = _find(partition, each, limits, left, is_empty)
            if one.batches is not None and limits.replica_id >= 0 and is_paused(replicas, partition, limits.replica_id):
                one = one._replace(batches=None)
            if is_first and limits.replica_id >= 0 and one.diverging is None:
                partition.fetched(limits.replica_id, each.fetch_offset, each.log_start_offset, limits.replica_epoch)
        except StorageError as error:
            assert partition is not None
            one = Found(each, partition.read_failed(error))
        except KafkaError as error:
            one = Found(each, error.code)
        found.append(one)
        if one.batches is not None:
            is_empty = False
            left = max(0, left - one.batches.size)
    return found


def is_enough(found: Sequence[Found], min_bytes: int) -> bool:
    """Whether to respond at once: there are enough bytes, or an error, or more data than the limits allow."""
    size = 0
    for each in found:
        if each.error_code or each.diverging is not None or each.preferred_read_replica >= 0:
            return True
        if each.batches is not None:
            size += each.batches.size
    return size >= min_bytes or (size > 0 and any(map(_is_cut, found)))


def has_moved(found: Iterable[Found]) -> bool:
    """Whether anything was appended, committed or deleted since these results."""
    return any(
        each.partition is not None
        and (
            each.partition.is_offline
            or each.partition.high_watermark != each.high_watermark
            or each.partition.log_end_offset != each.log_end_offset
        )
        for each in found
    )


def size_of(found: Iterable[Found]) -> int:
    return sum(each.batches.size for each in found if each.batches is not None)


def aborted_transactions(found: Found) -> list[AbortedTxn]:
    """Return the aborted transactions that have records among the batches."""
    if found.batches is None or found.partition is None:
        return []
    log = found.partition.log
    return log.aborted_transactions(found.wanted.fetch_offset, log.upper_bound_offset(found.batches))


def _find(partition: Partition, wanted: Wanted, limits: Limits, left: int, is_empty: bool) -> Found:
    """Find the batches of one partition. Raises KafkaError. The common case, no new data, is the fast one."""
    if wanted.topic_id != partition.topic_id and wanted.topic_id != ZERO_UUID:  # noqa: PLR1714
        raise KafkaError(ErrorCode.INCONSISTENT_TOPIC_ID)
    epoch = wanted.current_leader_epoch
    if (epoch >= 0 and epoch != partition.leader_epoch) or limits.only_leader:
        check_leadership(partition, max(epoch, NO_EPOCH), only_leader=limits.only_leader)
        if limits.replica_id >= 0:
            _check_follower(partition, limits.replica_id, epoch)
    log = partition.log
    high_watermark = end = partition.high_watermark
    if limits.isolation is not Isolation.HIGH_WATERMARK:
        end = partition.last_stable_offset if limits.isolation is Isolation.LAST_STABLE else log.log_end_offset
    offset = wanted.fetch_offset
    diverging = batches = None
    preferred = -1
    if limits.near is not None and (nearest := limits.near(partition, offset)) is not None:
        preferred = nearest
    elif wanted.last_fetched_epoch >= 0:
        diverging = _divergence(partition, offset, wanted.last_fetched_epoch)
    if offset != end and diverging is None and preferred < 0:
        max_bytes = max(0, min(wanted.max_bytes, left))
        batches = log.find_range(offset, max_bytes, end, min_one_batch=is_empty)
    return Found(
        wanted,
        ErrorCode.NONE,
        partition,
        high_watermark,
        log.log_start_offset,
        log.log_end_offset,
        end,
        batches,
        diverging,
        preferred,
    )


def is_throttled_leader(replicas: Replicas, partition: Partition) -> bool:
    """Whether this broker limits what it sends to followers of the partition that are not in sync."""
    named = partition.settings.leader_throttled_replicas
    return bool(named) and is_throttled(named, partition.partition_id, replicas.node_id)


def count_throttled(replicas: Replicas, partition: Partition, size: int) -> None:
    """Count bytes that a follower is sent, if they are limited."""
    if is_throttled_leader(replicas, partition):
        replicas.leader_throttle.record(size)


def is_paused(replicas: Replicas, partition: Partition, replica_id: int) -> bool:
    """Whether a follower gets nothing now, because it is not in sync, and more than the limit was sent."""
    return (
        is_throttled_leader(replicas, partition)
        and replica_id not in partition.isr
        and replicas.leader_throttle.is_exceeded
    )


def _check_follower(partition: Partition, replica_id: int, current_leader_epoch: int) -> None:
    if replica_id not in partition.state.replicas:
        is_told = current_leader_epoch >= 0
        raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH if is_told else ErrorCode.NOT_LEADER_OR_FOLLOWER)


def _divergence(partition: Partition, offset: int, last_fetched_epoch: int) -> EpochEndOffset | None:
    """Return where the reader's log diverges from this one, or None if it does not."""
    log = partition.log
    found = log.end_offset_for_epoch(last_fetched_epoch)
    if found.end_offset == UNDEFINED_OFFSET or found.leader_epoch == UNDEFINED_EPOCH or offset < log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    return found if found.leader_epoch < last_fetched_epoch or found.end_offset < offset else None


def _is_cut(found: Found) -> bool:
    """Whether more can be read than the limits allowed, or more is in the next segment."""
    wanted, batches = found.wanted, found.batches
    if found.partition is None or wanted.fetch_offset >= found.end:
        return False
    log = found.partition.log
    active = log.segments[-1]
    if batches is None or batches.file is not active.log:
        return True
    if found.end == log.log_end_offset:
        return batches.position + batches.size < active.size
    whole = log.find_range(wanted.fetch_offset, active.size, found.end)
    return whole is not None and whole.size > batches.size
