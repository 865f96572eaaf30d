"""Which segments go by size, by age and by the log start offset, and what that does to a log."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from barnabas.storage import Log, LogConfig
from barnabas.storage.retention import Expired, expired
from tests.storage.made import Clock, batch

NOW_MS = 1_000_000
FOR_EVER = LogConfig(retention_ms=-1)


@dataclass(frozen=True)
class Part:
    """A segment as retention knows it."""

    base_offset: int
    size: int = 100
    timestamp: int = NOW_MS

    def largest_timestamp(self) -> int:
        return self.timestamp


def find(
    parts: list[Part], config: LogConfig, *, end: int = 40, high_watermark: int | None = None, start: int = 0
) -> Expired:
    return expired(
        parts,
        config,
        log_start_offset=start,
        log_end_offset=end,
        high_watermark=end if high_watermark is None else high_watermark,
        now_ms=NOW_MS,
    )


FOUR = [Part(0), Part(10), Part(20), Part(30)]


def test_segments_are_kept_while_the_log_is_not_too_large_without_them() -> None:
    found = [find(FOUR, replace(FOR_EVER, retention_bytes=size)).by_size for size in (400, 399, 300, 299, 201, 200, 0)]
    assert found == [0, 0, 1, 1, 1, 2, 4]


def test_a_negative_size_is_no_bound() -> None:
    assert find(FOUR, replace(FOR_EVER, retention_bytes=-1)) == Expired()


def test_segments_are_kept_until_their_last_record_is_older_than_the_bound() -> None:
    aged = [Part(0, timestamp=NOW_MS - 51), Part(10, timestamp=NOW_MS - 50), Part(20, timestamp=NOW_MS - 99)]
    assert find(aged, LogConfig(retention_ms=50)) == Expired(by_time=1)
    assert find(aged, LogConfig(retention_ms=49)) == Expired(by_time=3)
    assert find(aged, LogConfig(retention_ms=99)) == Expired()


def test_a_segment_from_the_future_stays_and_keeps_those_behind_it() -> None:
    assert find([Part(0, timestamp=NOW_MS + 1), Part(10, timestamp=0)], LogConfig(retention_ms=0)) == Expired()


def test_segments_before_the_log_start_offset_go_whatever_the_policy_is() -> None:
    for delete, compact in ((True, False), (False, True), (True, True), (False, False)):
        config = replace(FOR_EVER, delete=delete, compact=compact)
        assert find(FOUR, config, start=20) == Expired(by_log_start_offset=2)
        assert find(FOUR, config, start=19) == Expired(by_log_start_offset=1)
        assert find(FOUR, config, start=40) == Expired(by_log_start_offset=3)


def test_without_delete_in_the_policy_size_and_age_do_not_count() -> None:
    strict = LogConfig(retention_ms=0, retention_bytes=0, delete=False, compact=True)
    assert find([Part(0, timestamp=0), Part(10, timestamp=0)], strict) == Expired()
    assert find([Part(0, timestamp=0), Part(10, timestamp=0)], replace(strict, compact=False)) == Expired()
    assert find([Part(0, timestamp=0), Part(10, timestamp=0)], replace(strict, delete=True)).segments == 2


def test_nothing_goes_beyond_the_high_watermark() -> None:
    strict = LogConfig(retention_bytes=0)
    assert [find(FOUR, strict, high_watermark=mark).segments for mark in (0, 9, 10, 29, 30, 39, 40)] == [
        0,
        0,
        1,
        2,
        3,
        3,
        4,
    ]
    assert find(FOUR, FOR_EVER, start=20, high_watermark=15) == Expired(by_log_start_offset=1)


def test_an_empty_last_segment_stays() -> None:
    assert find([Part(0), Part(10, size=0, timestamp=0)], LogConfig(retention_ms=0, retention_bytes=0)).segments == 1
    assert find([Part(0, size=0, timestamp=0)], LogConfig(retention_ms=0, retention_bytes=0)) == Expired()


def test_each_rule_begins_where_the_one_before_it_ended() -> None:
    aged = [replace(part, timestamp=0) for part in FOUR[:3]] + FOUR[3:]
    found = find(aged, LogConfig(retention_ms=10, retention_bytes=200), start=10)
    assert found == Expired(by_log_start_offset=1, by_size=1, by_time=1)


# The log


def make_log(directory: Path, config: LogConfig, timestamps: tuple[int, ...] = (1, 2, 3)) -> tuple[Log, Clock]:
    """A log with a segment for each batch, and the last of them written to."""
    clock = Clock(NOW_MS)
    log = Log.open(directory, config, clock=clock)
    for number, timestamp in enumerate(timestamps):
        if number:
            log.roll()
        log.append_as_leader(batch(b"one", b"two", timestamps=(timestamp, timestamp)), leader_epoch=number)
    return log, clock


def test_a_log_of_which_everything_is_too_old_goes_on_with_a_new_segment(tmp_path: Path) -> None:
    log, _ = make_log(tmp_path / "log", LogConfig(retention_ms=1000))
    assert log.delete_by_retention(NOW_MS, log.log_end_offset) == Expired(by_time=3)
    assert (log.log_start_offset, log.log_end_offset) == (6, 6)
    assert [segment.base_offset for segment in log.segments] == [6]
    assert log.append_as_leader(batch(b"more"), leader_epoch=3).base_offset == 6
    assert log.delete_by_retention(NOW_MS, 6) == Expired()
    log.close()
    log = Log.open(tmp_path / "log", clock=Clock(NOW_MS), clean_shutdown=True)
    assert (log.log_start_offset, log.log_end_offset) == (6, 7)
    log.close()


def test_what_is_kept_begins_with_a_segment_and_so_do_its_epochs(tmp_path: Path) -> None:
    log, _ = make_log(tmp_path / "log", LogConfig(retention_ms=1000), (1, 2, NOW_MS))
    assert log.delete_by_retention(NOW_MS, log.log_end_offset) == Expired(by_time=2)
    assert log.log_start_offset == 4
    assert log.epochs.entries == ((2, 4),)
    assert len(log.read(4, 1000)) > 0
    log.close()


def test_retention_removes_as_many_segments_at_a_time_as_it_is_allowed_to(tmp_path: Path) -> None:
    log, _ = make_log(tmp_path / "log", LogConfig(retention_ms=1000))
    removed = []
    while gone := log.delete_by_retention(NOW_MS, 4, max_segments=1).segments:
        removed.append((gone, log.log_start_offset))
    assert removed == [(1, 2), (1, 4)]
    assert len(log.take_deleted()) == 2 and not log.take_deleted()
    log.close()


def test_files_are_renamed_at_once_and_deleted_after_their_delay(tmp_path: Path) -> None:
    log, clock = make_log(tmp_path / "log", LogConfig(retention_ms=1000, file_delete_delay_ms=60_000))
    log.delete_by_retention(NOW_MS, 4)
    names = sorted(path.name for path in (tmp_path / "log").iterdir())
    assert "00000000000000000000.log.deleted" in names
    assert "00000000000000000000.log" not in names
    clock.now_ms += 59_999
    assert log.delete_files(log.config.file_delete_delay_ms) == 0
    clock.now_ms += 1
    assert log.delete_files(log.config.file_delete_delay_ms) == 2
    assert not list((tmp_path / "log").glob("*.deleted"))
    log.close()


def test_records_without_timestamps_are_as_old_as_their_file(tmp_path: Path) -> None:
    log, _ = make_log(tmp_path / "log", LogConfig(retention_ms=1000), (-1, -1))
    for name, age_ms in (("00000000000000000000.log", 1001), ("00000000000000000002.log", 1000)):
        modified_s = (NOW_MS - age_ms) / 1000
        os.utime(tmp_path / "log" / name, (modified_s, modified_s))
    assert log.delete_by_retention(NOW_MS, log.log_end_offset) == Expired(by_time=1)
    log.close()


@pytest.mark.parametrize("high_watermark", [0, 2, 4, 6])
def test_the_log_start_offset_does_not_pass_the_high_watermark(tmp_path: Path, high_watermark: int) -> None:
    log, _ = make_log(tmp_path / "log", LogConfig(retention_ms=0, retention_bytes=0))
    log.delete_by_retention(NOW_MS, high_watermark)
    assert log.log_start_offset == high_watermark
    log.close()
