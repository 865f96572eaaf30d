"""Which log is compacted next, and how far."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from barnabas.storage import LogConfig, StorageError, TopicPartition, read_offset_checkpoint
from barnabas.storage.checkpoints import CLEANER_OFFSET_CHECKPOINT
from barnabas.storage.cleanable import CleanerOffsets, DirtyLog, choose_filthiest, find_dirty, group_segments
from barnabas.storage.segment import Segment, Written

NOW_MS = 1_000_000
COMPACT = LogConfig(compact=True, delete=False)


@dataclass(frozen=True)
class Part:
    """A segment as far as it has to be known."""

    base_offset: int
    size: int = 100
    timestamp: int = 1
    first: int = 1

    def largest_timestamp(self) -> int:
        return self.timestamp

    def first_timestamp(self) -> int:
        return self.first


FOUR = [Part(0), Part(10), Part(20), Part(30)]


def find(
    checkpoint: int | None = None,
    config: LogConfig = COMPACT,
    parts: list[Part] = FOUR,
    *,
    start: int = 0,
    stable: int = 40,
) -> DirtyLog:
    return find_dirty(
        parts, config, checkpoint, log_start_offset=start, log_end_offset=40, last_stable_offset=stable, now_ms=NOW_MS
    )


def test_a_log_that_was_never_cleaned_is_dirty_up_to_the_active_segment() -> None:
    assert find() == DirtyLog(0, 30, 0, 300, True)


def test_what_was_cleaned_counts_as_clean() -> None:
    assert find(10) == DirtyLog(10, 30, 100, 200, True)
    assert find(20) == DirtyLog(20, 30, 200, 100, False)
    assert find(30) == DirtyLog(30, 30, 300, 0, False)


def test_a_segment_that_was_cleaned_in_part_counts_on_both_sides() -> None:
    assert find(15) == DirtyLog(15, 30, 200, 200, False)


def test_the_ratio_has_to_be_larger_than_the_setting() -> None:
    assert find(20).cleanable_ratio == pytest.approx(1 / 3)
    assert not find(20, replace(COMPACT, min_cleanable_dirty_ratio=1 / 3)).is_due
    assert find(20, replace(COMPACT, min_cleanable_dirty_ratio=0.33)).is_due
    assert not find(30, replace(COMPACT, min_cleanable_dirty_ratio=0.0)).is_due


def test_nothing_from_the_last_stable_offset_on_is_cleaned() -> None:
    assert [find(stable=stable).first_uncleanable_offset for stable in (0, 9, 10, 19, 29, 30, 40)] == [
        0,
        0,
        10,
        10,
        20,
        30,
        30,
    ]
    assert find(stable=25).cleanable_bytes == 200
    assert find(20, stable=5) == DirtyLog(20, 20, 200, 0)


def test_a_checkpoint_outside_of_the_log_begins_anew_and_is_to_be_replaced() -> None:
    assert find(5, start=10) == DirtyLog(10, 30, 100, 200, True, checkpoint_is_wrong=True)
    assert find(41) == DirtyLog(0, 30, 0, 300, True, checkpoint_is_wrong=True)
    assert not find(40).checkpoint_is_wrong


def test_segments_younger_than_the_smallest_lag_are_not_cleaned_nor_those_behind_them() -> None:
    lag = replace(COMPACT, min_compaction_lag_ms=100)
    parts = [Part(0), Part(10, timestamp=NOW_MS - 99), Part(20), Part(30)]
    assert find(config=lag, parts=parts).first_uncleanable_offset == 10
    parts[1] = Part(10, timestamp=NOW_MS - 100)
    assert find(config=lag, parts=parts).first_uncleanable_offset == 30
    # What is clean already is not asked again.
    parts[0] = Part(0, timestamp=NOW_MS)
    assert find(10, lag, parts).first_uncleanable_offset == 30


def test_a_log_that_waited_longer_than_the_largest_lag_is_due_at_any_ratio() -> None:
    lag = replace(COMPACT, min_cleanable_dirty_ratio=1.0, max_compaction_lag_ms=100)
    waited = [Part(0, first=NOW_MS), Part(10, first=NOW_MS - 101), Part(20, first=NOW_MS), Part(30, first=1)]
    assert find(config=lag, parts=waited).is_due
    assert find(10, lag, waited).is_due
    assert not find(20, lag, waited).is_due
    waited[1] = Part(10, first=NOW_MS - 100)
    assert not find(config=lag, parts=waited).is_due
    waited[1] = Part(10, first=-1)
    assert not find(config=lag, parts=waited).is_due


def test_the_dirtiest_of_the_logs_that_are_due_is_cleaned_first() -> None:
    logs = {
        "not due": DirtyLog(0, 10, 0, 100, False),
        "cleaner": DirtyLog(0, 10, 60, 40, True),
        "dirtier": DirtyLog(0, 10, 40, 60, True),
        "empty": DirtyLog(0, 0, 0, 0, False),
    }
    assert choose_filthiest(logs) == "dirtier"
    assert choose_filthiest({"not due": logs["not due"], "empty": logs["empty"]}) is None
    assert choose_filthiest({}) is None


# Groups


def make_segments(directory: Path, *shapes: tuple[int, int], config: LogConfig) -> list[Segment]:
    """Segments by base offset and size in bytes."""
    segments = []
    for base_offset, size in shapes:
        segment = Segment.create(directory, base_offset, config, NOW_MS)
        segment.append([bytes(size)], [Written(base_offset, base_offset, 1, size)])
        segments.append(segment)
    return segments


def grouped(segments: list[Segment], config: LogConfig, end: int = 100) -> list[list[int]]:
    return [[segment.base_offset for segment in group] for group in group_segments(segments, config, end)]


def test_segments_are_joined_up_to_the_size_of_one(tmp_path: Path) -> None:
    config = LogConfig(segment_bytes=100)
    segments = make_segments(tmp_path, (0, 60), (10, 40), (20, 1), (30, 200), (40, 100), (50, 50), config=config)
    assert grouped(segments, config) == [[0, 10], [20], [30], [40], [50]]
    assert grouped(segments, LogConfig(segment_bytes=101)) == [[0, 10, 20], [30], [40], [50]]
    assert grouped([], config) == []


def test_segments_are_joined_up_to_the_size_of_an_index(tmp_path: Path) -> None:
    config = LogConfig(index_interval_bytes=0)
    segments = make_segments(tmp_path, (0, 10), (10, 10), (20, 10), config=config)
    for segment in segments:
        for number in range(3):
            segment.append([bytes(10)], [Written(0, segment.base_offset + 1 + number, 2 + number, 10)])
    assert [segment.offset_index.entries for segment in segments] == [3, 3, 3]
    assert grouped(segments, replace(config, segment_index_bytes=3 * 12 * 2)) == [[0, 10], [20]]
    assert grouped(segments, replace(config, segment_index_bytes=3 * 12 * 2 - 1)) == [[0], [10], [20]]
    assert grouped(segments, replace(config, segment_index_bytes=3 * 12 * 3)) == [[0, 10, 20]]


def test_segments_whose_offsets_are_too_far_apart_are_not_joined(tmp_path: Path) -> None:
    config = LogConfig()
    far = 2**31
    segments = make_segments(tmp_path, (0, 10), (10, 10), (far, 10), config=config)
    assert grouped(segments, config, far + 5) == [[0, 10], [far]]
    assert grouped(segments[:2], config, far) == [[0, 10]]
    assert grouped(segments[:2], config, far + 1) == [[0], [10]]


def test_an_empty_segment_is_joined_however_far_it_is(tmp_path: Path) -> None:
    config = LogConfig()
    segments = make_segments(tmp_path, (0, 10), config=config)
    segments.append(Segment.create(tmp_path, 2**33, config, NOW_MS))
    assert grouped(segments, config, 2**33) == [[0, 2**33]]


# The checkpoint

ONE, OTHER = TopicPartition("one", 0), TopicPartition("other", 1)


def test_first_dirty_offsets_are_in_their_checkpoint(tmp_path: Path) -> None:
    offsets = CleanerOffsets(tmp_path)
    assert offsets.get(ONE) is None
    offsets.update(ONE, 5)
    offsets.update(OTHER, 7)
    assert read_offset_checkpoint(tmp_path / CLEANER_OFFSET_CHECKPOINT) == {ONE: 5, OTHER: 7}
    assert CleanerOffsets(tmp_path).get(OTHER) == 7


def test_a_truncation_takes_a_first_dirty_offset_back_and_never_forward(tmp_path: Path) -> None:
    offsets = CleanerOffsets(tmp_path)
    offsets.update(ONE, 5)
    offsets.truncate(ONE, 6)
    offsets.truncate(OTHER, 6)
    assert (offsets.get(ONE), offsets.get(OTHER)) == (5, None)
    offsets.truncate(ONE, 4)
    assert CleanerOffsets(tmp_path).get(ONE) == 4


def test_logs_that_are_gone_are_forgotten(tmp_path: Path) -> None:
    offsets = CleanerOffsets(tmp_path)
    offsets.update(ONE, 5)
    offsets.update(OTHER, 7)
    offsets.keep_only({OTHER})
    assert read_offset_checkpoint(tmp_path / CLEANER_OFFSET_CHECKPOINT) == {OTHER: 7}
    offsets.remove(OTHER)
    assert read_offset_checkpoint(tmp_path / CLEANER_OFFSET_CHECKPOINT) == {}


def test_what_could_not_be_written_is_not_remembered(tmp_path: Path) -> None:
    offsets = CleanerOffsets(tmp_path)
    (tmp_path / CLEANER_OFFSET_CHECKPOINT).mkdir()
    with pytest.raises(StorageError):
        offsets.update(ONE, 5)
    assert offsets.get(ONE) is None
