"""The one definition of consumer lag, in records and in time. Pure.

Its one rule: an unknown lag is None, never a guess.

**Lag in records** of a group in a partition is Kafka's number: the end of the partition minus the committed offset. It counts
offsets, so it includes control records, compacted holes and deleted records. It is 0 for an offset past the end. Of a share
group, the coordinator knows it: offsets from the start offset to the end, without those that are done already.

**Lag in time** is the age of the oldest unread record: the moment of asking minus the timestamp of the first record at or
after the committed offset. It is 0 if nothing is unread. The lag in time of a group that stopped grows with the clock.

- The end is the high watermark, as for consumers with `isolation.level=read_uncommitted` and as in `kafka-consumer-groups`.
  A broker does not know the isolation level of a group. Records of open and aborted transactions count as unread.
- If the committed offset is below the log start, its record was deleted. The oldest unread record is the first that exists.
- Consumers never see control records and compacted holes. If only these are left before the end, nothing is unread.
- The timestamp is the one stored with the record: create time or log append time, depending on the topic. The age of a
  record without a timestamp (-1) is unknown. The age of a record from the future is 0.
- In an empty partition, and at or past the end of a partition, nothing is unread.
- If the record cannot be read (unknown codec, old batch format, no right to read the topic), its age is not known.

Where only intervals of offsets and times are known, as in the lake, `interpolated_time` estimates the timestamp.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

from barnabas.batches.errors import BatchError
from barnabas.batches.format import Record
from barnabas.batches.reader import decode_records, iterate_batches

if TYPE_CHECKING:
    from barnabas.client.admin.groups import CommittedOffset, GroupDescription, GroupMember
    from barnabas.client.records import TopicPartition
    from barnabas.wire.errors import KafkaError


def offsets_between(committed_offset: int | None, end_offset: int | None) -> int | None:
    """Return the end minus the committed offset. Negative if the offset is past the end, None if one is not known."""
    return None if committed_offset is None or end_offset is None else end_offset - committed_offset


def lag_in_records(committed_offset: int | None, end_offset: int | None) -> int | None:
    """Return the lag in records, never negative. None if one of the offsets is not known.

    >>> lag_in_records(7, 10), lag_in_records(12, 10), lag_in_records(None, 10)
    (3, 0, None)
    """
    between = offsets_between(committed_offset, end_offset)
    return None if between is None else max(between, 0)


def lag_in_time(now: int, oldest_unread: int) -> int | None:
    """Return the age of the oldest unread record, in the unit of both arguments. None if the record has no timestamp.

    >>> lag_in_time(5_000, 2_000), lag_in_time(5_000, 9_000), lag_in_time(5_000, -1)
    (3000, 0, None)
    """
    return None if oldest_unread < 0 else max(now - oldest_unread, 0)


# --- positions of a group


@dataclass(frozen=True, slots=True)
class PartitionPosition:
    """The position of a group in one partition. None means absent or not known; the two errors say why."""

    topic: str
    partition: int
    committed: CommittedOffset | None
    log_end_offset: int | None
    member: GroupMember | None
    lag_ms: int | None = None
    committed_error: KafkaError | None = None
    log_end_error: KafkaError | None = None
    is_shared: bool = False
    """Whether it is that of a share group: `committed` is the start offset, and `shared_lag` what its coordinator says."""
    shared_lag: int | None = None

    @property
    def lag(self) -> int | None:
        if self.is_shared:
            return self.shared_lag
        return lag_in_records(None if self.committed is None else self.committed.offset, self.log_end_offset)


def partition_owners(group: GroupDescription | None) -> dict[TopicPartition, GroupMember]:
    """Return the member that each assigned partition belongs to. Empty for a group that was not described."""
    return {} if group is None else {each: member for member in group.members for each in member.assignment}


def partitions_of_group(
    group: GroupDescription | None, offsets: Mapping[TopicPartition, object]
) -> list[TopicPartition]:
    """Return every partition that the group has an offset in or that a member is assigned, by topic and number."""
    return sorted({*offsets, *partition_owners(group)})


# --- the oldest unread record, in fetched batches


class Scan(NamedTuple):
    """The first record at or after an offset in fetched batches, if they hold one, and the offset that follows the batches."""

    record: Record | None
    next_offset: int


def scan_batches(data: bytes, offset: int) -> Scan | None:
    """Find the first record at or after `offset` that a consumer can read. None if no whole batch of `data` can be read."""
    next_offset: int | None = None
    try:
        for position, header in iterate_batches(data, tolerate_truncated=True):
            if header.last_offset >= offset and not header.is_control:
                # Compaction may have left only records before the offset, or none at all.
                for record in decode_records(data, position, header):
                    if record.offset >= offset:
                        return Scan(record, header.last_offset + 1)
            next_offset = header.last_offset + 1
    except BatchError:
        return None
    return None if next_offset is None else Scan(None, next_offset)


# --- the oldest unread record, from intervals


class Interval(NamedTuple):
    """Records of a partition that were counted together. Times count from the epoch, in any one unit; None without records."""

    first_offset: int
    last_offset: int
    records: int
    first_time: int | None
    last_time: int | None


class InterpolatedTime(NamedTuple):
    """The time of a record, None if it is not known, and whether it is an estimate: False if only one time is possible."""

    time: int | None
    is_interpolated: bool


def interpolated_time(offset: int, intervals: Iterable[Interval]) -> InterpolatedTime | None:
    """Return the time of the first record at or after `offset`, as far as the intervals tell. None if there is no such record.

    Within an interval, time passes evenly from its first offset to its last. An offset below all intervals, or between two of
    them, stands for the first offset after it. If intervals overlap, the earliest time counts. Intervals without records
    (control records only) are skipped. If an interval that holds the offset has no timestamps, the time is not known.

    >>> hours = [Interval(0, 99, 100, 1_000, 1_990), Interval(200, 200, 1, 5_000, 5_000)]
    >>> interpolated_time(50, hours), interpolated_time(150, hours), interpolated_time(201, hours)
    (InterpolatedTime(time=1500, is_interpolated=True), InterpolatedTime(time=5000, is_interpolated=False), None)
    """
    unread = [each for each in intervals if each.records > 0 and each.last_offset >= offset]
    if not unread:
        return None
    first = min(max(each.first_offset, offset) for each in unread)
    holding = [each for each in unread if each.first_offset <= first]
    times = [_time_at(first, each) for each in holding]
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return InterpolatedTime(None, is_interpolated=False)
    is_dense = all(each.records > each.last_offset - each.first_offset for each in holding)
    ends = {time for each in holding for time in (each.first_time, each.last_time)}
    return InterpolatedTime(min(known), is_interpolated=not is_dense or len(ends) > 1)


def _time_at(offset: int, within: Interval) -> int | None:
    if within.first_time is None or within.last_time is None or within.first_time < 0:
        return None
    if within.first_offset == within.last_offset:
        return within.first_time
    share = (offset - within.first_offset) / (within.last_offset - within.first_offset)
    return within.first_time + int(share * (within.last_time - within.first_time))
