"""Decides which log to compact next and how far, from the sizes and timestamps of segments, without reading records.

Its one rule: a log is clean up to its first dirty offset, which is checkpointed, and may be cleaned up to its first
uncleanable offset. That excludes the active segment, everything beyond the last stable offset, and segments younger
than min.compaction.lag.ms. Among the logs that are dirty enough, or have been dirty for too long, the one with the
largest dirty ratio is first.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from threading import Lock
from typing import NamedTuple, Protocol, TypeVar

from barnabas.storage.checkpoints import (
    CLEANER_OFFSET_CHECKPOINT,
    TopicPartition,
    read_offset_checkpoint,
    write_offset_checkpoint,
)
from barnabas.storage.index import MAX_RELATIVE_OFFSET
from barnabas.storage.log_config import LogConfig
from barnabas.storage.retention import RetainedSegment
from barnabas.storage.segment import Segment

Name = TypeVar("Name")
AnySegment = TypeVar("AnySegment", bound=RetainedSegment)


class CleanableSegment(RetainedSegment, Protocol):
    """The properties of a segment that decide whether it can be cleaned."""

    def first_timestamp(self) -> int:
        """Return the largest timestamp of the first batch, or -1."""
        ...


class DirtyLog(NamedTuple):
    """How much of a log can be cleaned.

    `is_due` means that its dirty ratio is high enough, or that it has waited too long.
    """

    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    is_due: bool = False
    # The checkpoint is outside the log and must be replaced by the first dirty offset.
    checkpoint_is_wrong: bool = False

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0


def find_dirty(
    segments: Sequence[CleanableSegment],
    config: LogConfig,
    checkpoint: int | None,
    *,
    log_start_offset: int,
    log_end_offset: int,
    last_stable_offset: int,
    now_ms: int,
) -> DirtyLog:
    """Return how dirty a log is. `checkpoint` is the offset up to which it was cleaned, or None if it never was."""
    first_dirty = log_start_offset if checkpoint is None else checkpoint
    is_wrong = not log_start_offset <= first_dirty <= log_end_offset
    if is_wrong:
        first_dirty = log_start_offset
    active = segments[-1].base_offset
    dirty = segments_between(segments, first_dirty, active)
    uncleanable = min(last_stable_offset, active)
    if config.min_compaction_lag_ms > 0:
        youngest_ms = now_ms - config.min_compaction_lag_ms
        too_young = (segment.base_offset for segment in dirty if segment.largest_timestamp() > youngest_ms)
        uncleanable = min(uncleanable, next(too_young, uncleanable))
    # A segment is cleaned as a whole or not at all.
    uncleanable_segments = segments_between(segments, max(first_dirty, uncleanable), active)
    first_uncleanable = uncleanable_segments[0].base_offset if uncleanable_segments else active
    clean_bytes = sum(segment.size for segment in segments if segment.base_offset < first_dirty)
    cleanable = segments_between(segments, min(first_dirty, first_uncleanable), first_uncleanable)
    found = DirtyLog(
        first_dirty, first_uncleanable, clean_bytes, sum(segment.size for segment in cleanable), False, is_wrong
    )
    is_due = found.cleanable_ratio > config.min_cleanable_dirty_ratio or (
        found.cleanable_bytes > 0 and _has_waited_too_long(dirty, now_ms - config.max_compaction_lag_ms)
    )
    return found._replace(is_due=is_due)


def choose_filthiest(logs: Mapping[Name, DirtyLog]) -> Name | None:
    """Return the log to clean next, or None."""
    due = [name for name, log in logs.items() if log.is_due]
    return max(due, key=lambda name: logs[name].cleanable_ratio, default=None)


def segments_between(segments: Sequence[AnySegment], first_offset: int, end_offset: int) -> Sequence[AnySegment]:
    """Return the segments from the one that contains `first_offset` to the last one that starts before `end_offset`."""
    if first_offset >= end_offset:
        return ()
    first = max(0, bisect_right(segments, first_offset, key=_base_offset) - 1)
    return [segment for segment in segments[first:] if segment.base_offset < end_offset]


def group_segments(
    segments: Sequence[Segment], config: LogConfig, first_uncleanable_offset: int
) -> list[list[Segment]]:
    """Group adjacent segments that are merged into one. A group is at most as large as a segment may be."""
    groups: list[list[Segment]] = []
    size = index_size = time_index_size = 0
    for number, segment in enumerate(segments):
        size += segment.size
        index_size += segment.offset_index.size_in_bytes
        time_index_size += segment.time_index.size_in_bytes
        following = segments[number + 1].base_offset if number + 1 < len(segments) else first_uncleanable_offset
        fits = (
            bool(groups)
            and size <= config.segment_bytes
            and index_size <= config.segment_index_bytes
            and time_index_size <= config.segment_index_bytes
            and (not segment.size or following - 1 - groups[-1][0].base_offset <= MAX_RELATIVE_OFFSET)
        )
        if fits:
            groups[-1].append(segment)
        else:
            groups.append([segment])
            size, index_size, time_index_size = (
                segment.size,
                segment.offset_index.size_in_bytes,
                segment.time_index.size_in_bytes,
            )
    return groups


class CleanerOffsets:
    """The first dirty offsets of the logs in one log dir, in memory and in their checkpoint file.

    With `is_lost` the file is not read, because it is damaged. The next change replaces it. Changes write the file durably
    and may be made in any thread.
    """

    def __init__(self, log_dir: Path, *, is_lost: bool = False) -> None:
        self._path = log_dir / CLEANER_OFFSET_CHECKPOINT
        self._offsets = {} if is_lost else read_offset_checkpoint(self._path)
        self._lock = Lock()

    def get(self, partition: TopicPartition) -> int | None:
        return self._offsets.get(partition)

    def update(self, partition: TopicPartition, first_dirty_offset: int) -> None:
        """Set the offset after a cleaning, or to correct an invalid one."""
        with self._lock:
            self._replace({**self._offsets, partition: first_dirty_offset})

    def truncate(self, partition: TopicPartition, offset: int) -> None:
        """Lower the offset after a truncation, because what is appended next is dirty."""
        if self._offsets.get(partition, 0) > offset:
            self.update(partition, offset)

    def remove(self, partition: TopicPartition) -> None:
        with self._lock:
            self._replace({name: offset for name, offset in self._offsets.items() if name != partition})

    def keep_only(self, partitions: Collection[TopicPartition]) -> None:
        """Remove the entries of logs that no longer exist."""
        with self._lock:
            self._replace({name: offset for name, offset in self._offsets.items() if name in partitions})

    def _replace(self, offsets: dict[TopicPartition, int]) -> None:
        if offsets != self._offsets:
            write_offset_checkpoint(self._path, offsets)
            self._offsets = offsets


def _has_waited_too_long(dirty: Sequence[CleanableSegment], oldest_ms: int) -> bool:
    if oldest_ms <= 0:
        return False  # without reading the segments
    return any(0 < segment.first_timestamp() < oldest_ms for segment in dirty)


def _base_offset(segment: RetainedSegment) -> int:
    return segment.base_offset
