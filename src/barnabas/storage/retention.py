"""Decides which segments `cleanup.policy=delete` removes, without touching a file.

Its one rule: segments are removed from the oldest on, up to the first one to keep, and never above the high watermark.
Segments before the log start offset are always removed; size and age count only if the policy includes `delete`. The
last segment may be removed too, after the log has started a new one, unless it is empty.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, Protocol

from barnabas.storage.log_config import LogConfig


class RetainedSegment(Protocol):
    """The properties of a segment that decide whether it is kept."""

    @property
    def base_offset(self) -> int: ...

    @property
    def size(self) -> int: ...

    def largest_timestamp(self) -> int:
        """Return the largest timestamp of its records, or the time of the last write if they have none."""
        ...


class Expired(NamedTuple):
    """The number of oldest segments to remove, by the first limit that each exceeded."""

    by_log_start_offset: int = 0
    by_size: int = 0
    by_time: int = 0

    @property
    def segments(self) -> int:
        return sum(self)


def expired(
    segments: Sequence[RetainedSegment],
    config: LogConfig,
    *,
    log_start_offset: int,
    log_end_offset: int,
    high_watermark: int,
    now_ms: int,
    max_segments: int | None = None,
) -> Expired:
    """Return how many segments to remove, at most `max_segments`. There must be at least one segment."""
    considered = len(segments) if max_segments is None else min(max_segments, len(segments))
    next_offsets = [*(segment.base_offset for segment in segments[1:]), log_end_offset]

    def breaching(first: int, breaches: Callable[[int], bool]) -> int:
        number = first
        while number < considered:
            is_last = number + 1 == len(segments)
            if next_offsets[number] > high_watermark or (is_last and not segments[number].size):
                break
            if not breaches(number):
                break
            number += 1
        return number - first

    by_log_start_offset = breaching(
        0, lambda number: number + 1 < len(segments) and next_offsets[number] <= log_start_offset
    )
    if not config.delete:
        return Expired(by_log_start_offset)
    excess = sum(segment.size for segment in segments[by_log_start_offset:]) - config.retention_bytes

    def is_in_excess(number: int) -> bool:
        nonlocal excess
        excess -= segments[number].size
        return excess >= 0

    by_size = breaching(by_log_start_offset, is_in_excess) if config.retention_bytes >= 0 else 0
    by_time = 0
    if config.retention_ms >= 0:
        oldest_ms = now_ms - config.retention_ms
        by_time = breaching(
            by_log_start_offset + by_size, lambda number: segments[number].largest_timestamp() < oldest_ms
        )
    return Expired(by_log_start_offset, by_size, by_time)
