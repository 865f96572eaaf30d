"""The definition of lag: in records, in time, in fetched batches, in intervals."""

from __future__ import annotations

import pytest

from barnabas.batches.builder import build_batch
from barnabas.batches.control import build_end_txn_marker
from barnabas.batches.format import ATTRIBUTES_POSITION, MAGIC_POSITION, Compression, Record, TimestampType
from barnabas.operations.groups.lag import (
    Interval,
    interpolated_time,
    lag_in_records,
    lag_in_time,
    offsets_between,
    scan_batches,
)


def batch(
    *records: tuple[int, int],
    base_offset: int | None = None,
    last_offset: int | None = None,
    compression: Compression = Compression.NONE,
    append_time_ms: int | None = None,
) -> bytes:
    """Records by their offsets and times."""
    return build_batch(
        [Record(offset, time_ms, None, b"") for offset, time_ms in records],
        base_offset=records[0][0] if base_offset is None else base_offset,
        keep_offsets=True,
        last_offset=last_offset,
        compression=compression,
        timestamp_type=TimestampType.CREATE_TIME if append_time_ms is None else TimestampType.LOG_APPEND_TIME,
        max_timestamp=append_time_ms,
    )


def marker(offset: int, *, commit: bool = True) -> bytes:
    return build_end_txn_marker(
        commit=commit, producer_id=1, producer_epoch=0, coordinator_epoch=0, timestamp=999, base_offset=offset
    )


def found(data: bytes, offset: int) -> tuple[int, int] | int | None:
    """Offset and time of the record, or the offset to read on from, or None."""
    scan = scan_batches(data, offset)
    if scan is None or scan.record is None:
        return None if scan is None else scan.next_offset
    return scan.record.offset, scan.record.timestamp


def test_lag_in_records_is_the_end_minus_the_committed_offset_and_never_negative() -> None:
    assert [lag_in_records(offset, 10) for offset in (0, 9, 10, 11)] == [10, 1, 0, 0]
    assert offsets_between(11, 10) == -1
    assert lag_in_records(None, 10) is lag_in_records(1, None) is None


def test_the_age_of_a_record_of_the_future_is_0_and_without_a_timestamp_it_is_not_known() -> None:
    assert [lag_in_time(1000, at) for at in (0, 400, 1000, 5000, -1)] == [1000, 600, 0, 0, None]


@pytest.mark.parametrize("compression", list(Compression))
def test_the_first_record_at_or_after_an_offset_is_found_within_its_batch(compression: Compression) -> None:
    data = batch((10, 1), (11, 7), (12, 3), compression=compression)
    assert [found(data, offset) for offset in (5, 10, 11, 12, 13)] == [(10, 1), (10, 1), (11, 7), (12, 3), 13]


def test_the_timestamp_is_the_stored_one_which_is_the_append_time_where_the_topic_has_that() -> None:
    assert found(batch((10, 1), (11, 2), append_time_ms=50), 11) == (11, 50)
    assert found(batch((10, -1)), 10) == (10, -1)


def test_control_records_and_compacted_holes_are_passed_over() -> None:
    assert found(marker(10), 10) == 11
    assert found(marker(10) + marker(11, commit=False) + batch((12, 5)), 10) == (12, 5)
    holes = batch((10, 1), (13, 4), last_offset=15)
    assert [found(holes, offset) for offset in (11, 14, 15)] == [(13, 4), 16, 16]
    emptied = batch(base_offset=10, last_offset=15)
    assert found(emptied, 11) == 16
    assert found(emptied + marker(16) + holes[:60], 11) == 17  # the last one was cut off


def changed(data: bytes, position: int, value: int) -> bytes:
    return data[:position] + bytes([value]) + data[position + 1 :]


UNREADABLE = [
    bytes(70),
    changed(batch((10, 1)), ATTRIBUTES_POSITION + 1, 7),  # no such codec
    changed(batch((10, 1)), MAGIC_POSITION, 1),
    changed(batch((10, 1)), MAGIC_POSITION, 3),
]


@pytest.mark.parametrize("data", UNREADABLE, ids=["zeros", "codec", "old", "new"])
def test_what_cannot_be_read_is_not_known(data: bytes) -> None:
    assert scan_batches(data, 10) is None
    assert scan_batches(marker(9) + data, 9) is None


def test_without_a_whole_batch_nothing_is_known() -> None:
    assert scan_batches(b"", 10) is scan_batches(batch((10, 1))[:50], 10) is None


def test_times_within_an_interval_are_interpolated_between_its_ends() -> None:
    hours = [Interval(0, 100, 101, 1000, 2000), Interval(101, 101, 1, 2500, 2500)]
    assert interpolated_time(0, hours) == (1000, True)
    assert interpolated_time(50, hours) == (1500, True)
    assert interpolated_time(100, hours) == (2000, True)
    assert interpolated_time(101, hours) == (2500, False)
    assert interpolated_time(102, hours) is None
    assert interpolated_time(0, []) is None


def test_below_the_first_interval_and_between_two_the_next_record_counts() -> None:
    hours = [Interval(500, 599, 100, 9000, 9900), Interval(100, 199, 100, 1000, 1000)]
    assert interpolated_time(7, hours) == (1000, False)
    assert interpolated_time(200, hours) == (9000, True)


def test_of_overlapping_intervals_the_earliest_time_counts() -> None:
    late, early = Interval(0, 100, 60, 5000, 6000), Interval(40, 140, 60, 1000, 2000)
    assert interpolated_time(50, [late, early]) == (1100, True)
    assert interpolated_time(30, [late, early]) == (5300, True)
    assert interpolated_time(120, [late, early]) == (1800, True)
    same = Interval(0, 9, 10, 700, 700)
    assert interpolated_time(5, [same, Interval(5, 5, 1, 700, 700)]) == (700, False)


def test_an_interval_with_gaps_may_not_have_the_record_so_its_time_is_an_estimate() -> None:
    assert interpolated_time(5, [Interval(0, 9, 9, 700, 700)]) == (700, True)


def test_markers_alone_are_nothing_to_read_and_without_timestamps_the_time_is_not_known() -> None:
    markers = Interval(10, 12, 0, None, None)
    assert interpolated_time(10, [markers]) is None
    assert interpolated_time(10, [markers, Interval(13, 13, 1, 50, 50)]) == (50, False)
    untimed = Interval(10, 20, 11, -1, -1)
    assert interpolated_time(12, [untimed]) == (None, False)
    assert interpolated_time(12, [untimed, Interval(0, 15, 16, 50, 60)]) == (None, False)
    assert interpolated_time(12, [Interval(10, 20, 11, None, None)]) == (None, False)
