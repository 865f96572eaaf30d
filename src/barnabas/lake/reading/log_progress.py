"""The progress of a stream over logs: whether a log is still the one that was read, and how much to read next. No Spark.

Its one rule: progress has, for each partition, the cluster, the topic id, the next offset and the leader epoch of the record
before it. A log that does not match was re-created or truncated: `resume` returns what was lost, and where to continue.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from barnabas.lake.reading.log_planning import LogPartition


class DataLossError(RuntimeError):
    """Records that a stream has read, or was about to read, are no longer in the logs."""


class Progress(NamedTuple):
    """The progress in one partition."""

    cluster_id: str | None
    topic_id: str | None
    offset: int
    leader_epoch: int | None
    """The epoch of the record before the offset, if it is known."""


class Ahead(NamedTuple):
    """A partition, and the range of offsets that is not read yet."""

    key: str
    partition: LogPartition
    start: int
    end: int


# Offsets of the stream


def key_of(partition: LogPartition) -> str:
    place = partition.place
    return f"{place.cluster_id or ''}/{place.topic}-{place.partition}"


def progress_at(partition: LogPartition, offset: int) -> Progress:
    epoch = partition.epoch_before(offset)
    return Progress(partition.place.cluster_id, partition.place.topic_id, offset, epoch)


def to_json(progress: dict[str, Progress]) -> dict[str, Any]:
    return {
        key: {name: value for name, value in each._asdict().items() if value is not None}
        for key, each in progress.items()
    }


def from_json(offsets: dict[str, Any]) -> dict[str, Progress]:
    return {
        key: Progress(each.get("cluster_id"), each.get("topic_id"), each["offset"], each.get("leader_epoch"))
        for key, each in offsets.items()
    }


def resume(before: Progress, partition: LogPartition, first: int) -> tuple[int, str | None]:
    """Return the offset to continue from, and what was lost, or None. `first` is the first offset that can be read."""
    if is_other(before, partition):
        reason = f"its topic was re-created: its id was {before.topic_id} and is {partition.place.topic_id}"
        return first, f"{reason}; it was read up to offset {before.offset}"
    if before.offset > partition.end_offset:
        start = partition.end_offset
        if before.leader_epoch is not None:
            start = min(start, partition.end_of_epoch(before.leader_epoch))
        return max(start, first), f"it was read up to offset {before.offset}, and now ends at {partition.end_offset}"
    if before.offset < first:
        return first, f"offsets {before.offset} to {first - 1} were deleted before they were read"
    epoch = partition.epoch_before(before.offset)
    if None not in (epoch, before.leader_epoch) and epoch != before.leader_epoch:
        start = min(before.offset, partition.end_of_epoch(before.leader_epoch or 0))
        reason = f"the record before offset {before.offset} has leader epoch {epoch}, not {before.leader_epoch}"
        return max(start, first), f"{reason}: the log was truncated and rewritten from offset {start}"
    return before.offset, None


def is_other(before: Progress, partition: LogPartition) -> bool:
    return None not in (before.topic_id, partition.place.topic_id) and before.topic_id != partition.place.topic_id


# Limits of one batch


def size_of(position: int, end_position: int, base_offset: int, end_offset: int) -> int:
    return end_position - position


def rows_of(position: int, end_position: int, base_offset: int, end_offset: int) -> int:
    return end_offset - base_offset


def admit(ahead: list[Ahead], most: int, weigh: Callable[[int, int, int, int], int]) -> dict[str, int]:
    """Return the offset up to which each partition is read: together at most `most` by weight, but at least one batch.

    Each partition gets a share in proportion to what it has, in whole batches.
    """
    weights = {each.key: _weight(each, weigh) for each in ahead}
    total = sum(weights.values())
    if total <= most:
        return {each.key: each.end for each in ahead}
    ends = {each.key: advance(each, most * weights[each.key] // total, weigh) for each in ahead}
    if all(ends[each.key] == each.start for each in ahead):
        largest = max(ahead, key=lambda each: weights[each.key])
        ends[largest.key] = advance(largest, most, weigh, at_least_one=True)
    return ends


def _weight(ahead: Ahead, weigh: Callable[[int, int, int, int], int]) -> int:
    from barnabas.lake.reading.log_planning import split

    pieces = split(ahead.partition, ahead.start, ahead.end, 1 << 62)
    return sum(weigh(piece.position, piece.end_position, piece.start_offset, piece.end_offset) for piece in pieces)


def advance(ahead: Ahead, most: int, weigh: Callable[[int, int, int, int], int], *, at_least_one: bool = False) -> int:
    """Return the end of the last batch of a partition up to which its weight is at most `most`."""
    from barnabas.lake.reading.log_files import OpenSegment
    from barnabas.lake.reading.log_planning import split
    from barnabas.storage import CorruptLogError

    reached, weight = ahead.start, 0
    for piece in split(ahead.partition, ahead.start, ahead.end, 1 << 62):
        try:
            with OpenSegment.open(ahead.partition.directory / piece.segment.name) as file:
                for position, header in file.headers(piece.position, piece.end_position):
                    if header.last_offset < ahead.start:
                        continue
                    start = max(header.base_offset, ahead.start)
                    weight += weigh(position, position + header.size_in_bytes, start, header.next_offset)
                    if weight > most and not (at_least_one and reached == ahead.start):
                        return reached
                    reached = min(header.next_offset, ahead.end)
        except (FileNotFoundError, CorruptLogError):
            reached = piece.end_offset  # the reader reports what cannot be read
    return ahead.end
