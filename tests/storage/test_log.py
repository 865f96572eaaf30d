"""A log, by what it promises."""

from __future__ import annotations

import os
import threading
from pathlib import Path

import pytest

from barnabas.batches import BatchHeader, CorruptBatchError, Record, decode_header, reader
from barnabas.batches.format import CRC_POSITION
from barnabas.storage import AppendInfo, Log, LogConfig, OffsetOutOfRangeError, StorageError, UnexpectedOffsetError
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.made import SMALL, Clock, batch, offsets, open_log, whole_log


def names(directory: Path, pattern: str = "*") -> list[str]:
    return sorted(path.name for path in directory.glob(pattern))


def test_a_leader_gives_offsets_and_its_epoch(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = batch(b"a", b"b", timestamps=(7, 5)) + batch(b"c")
    untouched = bytes(data)
    info = log.append_as_leader(data, leader_epoch=4)
    assert info == AppendInfo(0, 2, 1000, len(data))
    assert data == untouched
    assert log.append_as_leader(bytearray(batch(b"d")), leader_epoch=4).base_offset == 3
    stored = log.read(0, 1000)
    assert offsets(stored) == [(0, 1), (2, 2), (3, 3)]
    assert decode_header(stored).partition_leader_epoch == 4
    first = len(batch(b"a", b"b"))
    assert stored[16:first] == data[16:first]
    assert stored[first + 16 : len(data)] == data[first + 16 :]
    assert log.epochs.latest_epoch == 4


def test_a_follower_keeps_offsets_and_epochs(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    first = batch(b"a", b"b", base_offset=10, epoch=1) + batch(b"c", base_offset=20, epoch=2)
    assert log.append_as_follower(first) == AppendInfo(10, 20, 1001, len(first))
    assert log.read(0, 1000) == first
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 10), (2, 20)]
    cut_off = batch(b"d", base_offset=21, epoch=2) + batch(b"e", base_offset=22, epoch=2)[:-1]
    assert log.append_as_follower(cut_off) is not None
    assert log.log_end_offset == 22
    assert log.append_as_follower(batch(b"e", base_offset=22)[:-1]) is None


def test_a_follower_refuses_what_does_not_follow_before_it_writes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a", b"b"), 0)
    size = log.size_in_bytes
    with pytest.raises(UnexpectedOffsetError) as caught:
        log.append_as_follower(batch(b"c", base_offset=2) + batch(b"d", b"e", base_offset=1))
    assert (caught.value.first_offset, caught.value.last_offset) == (1, 2)
    damaged = bytearray(batch(b"c", base_offset=2))
    damaged[CRC_POSITION] ^= 1
    with pytest.raises(CorruptBatchError):
        log.append_as_follower(damaged)
    assert (log.log_end_offset, log.size_in_bytes) == (2, size)
    assert log.append_as_follower(batch(b"c", base_offset=2)) is not None


def test_a_follower_stops_before_an_epoch_it_does_not_know(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = batch(b"a", base_offset=0, epoch=1) + batch(b"b", base_offset=1, epoch=3)
    info = log.append_as_follower(data, max_leader_epoch=2)
    assert info is not None
    assert info.last_offset == 0
    assert log.epochs.latest_epoch == 1


def test_a_metadata_log_has_no_gaps(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(metadata=True))
    with pytest.raises(UnexpectedOffsetError):
        log.append_as_follower(batch(b"a", base_offset=1))


def test_nothing_and_too_much_are_refused(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(ValueError, match="nothing to append"):
        log.append_as_leader(b"", 0)
    with pytest.raises(KafkaError) as caught:
        log.append_as_leader(batch(b"x" * 2000), 0)
    assert caught.value.code is ErrorCode.RECORD_LIST_TOO_LARGE
    assert log.log_end_offset == 0


def test_a_follower_takes_what_its_segments_are_too_small_for(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    data = b"".join(batch(b"x" * 300, base_offset=number) for number in range(7)) + batch(b"y" * 3000, base_offset=7)
    info = log.append_as_follower(data)
    assert info is not None
    assert (info.base_offset, info.last_offset, info.rolled) == (0, 7, 7)
    assert b"".join(whole_log(log)) == data
    assert max(segment.size for segment in log.segments[:-1]) <= 1000


def test_reads_give_whole_batches_from_the_one_that_has_the_offset(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(3):
        log.append_as_leader(batch(*[b"%d" % number] * 3), 0)
    stored = whole_log(log)
    size = len(stored[0])
    assert log.read(4, 10_000) == stored[1] + stored[2]
    assert log.read(0, 2 * size) == stored[0] + stored[1]
    assert log.read(0, 2 * size - 1) == log.read(0, size) == log.read(0, 1) == stored[0]
    assert log.read(0, size - 1, min_one_batch=False) == b""
    assert log.read(9, 1000) == b""


def test_reads_end_before_the_largest_offset_that_may_be_seen(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch(*[b"%d" % number] * 3), 0)
    assert len(log.segments) > 2
    for max_offset in range(95):
        for start in range(0, 91, 7):
            seen = offsets(log.read(start, 100_000, max_offset))
            assert all(last < max_offset for _, last in seen)
            if start // 3 * 3 + 3 <= min(max_offset, 90):
                assert seen[0][0] == start // 3 * 3
            else:
                assert not seen


def test_an_offset_outside_of_the_log_is_out_of_range(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a", b"b", b"c"), 0)
    log.advance_log_start_offset(2)
    for offset in (-1, 1, 4):
        with pytest.raises(OffsetOutOfRangeError):
            log.read(offset, 1000)
    assert offsets(log.read(2, 1000)) == [(0, 2)]


def test_segments_roll_by_size(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    size = len(batch(b"x" * 100))
    rolled = [log.append_as_leader(batch(b"x" * 100), 0).rolled for _ in range(20)]
    each = 1000 // size
    assert [base for base in rolled if base is not None] == list(range(each, 20, each))
    assert [segment.base_offset for segment in log.segments] == list(range(0, 20, each))


def test_a_segment_is_filled_to_its_last_byte(tmp_path: Path) -> None:
    size = len(batch(b"a"))
    for more, rolled in ((0, 3), (-1, 2)):
        log = open_log(tmp_path / str(more), LogConfig(segment_bytes=3 * size + more))
        assert [log.append_as_leader(batch(b"a"), 0).rolled for _ in range(4)].index(rolled) == rolled


def test_segments_roll_by_the_time_of_their_records(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_ms=1000))
    assert log.append_as_leader(batch(b"a", timestamps=(5000,)), 0).rolled is None
    assert log.append_as_leader(batch(b"a", timestamps=(6000,)), 0).rolled is None
    assert log.append_as_leader(batch(b"a", timestamps=(6001,)), 0).rolled == 2
    log.close()
    log = open_log(tmp_path, LogConfig(segment_ms=1000), clean_shutdown=True)
    assert log.append_as_leader(batch(b"a", timestamps=(7001,)), 0).rolled is None
    assert log.append_as_leader(batch(b"a", timestamps=(7002,)), 0).rolled == 4


def test_segments_without_timestamps_roll_by_the_clock(tmp_path: Path) -> None:
    clock = Clock()
    log = Log.open(tmp_path, LogConfig(segment_ms=1000), clock=clock)
    log.append_as_leader(batch(b"a", timestamps=(-1,)), 0)
    clock.now_ms += 1000
    assert log.append_as_leader(batch(b"a", timestamps=(-1,)), 0).rolled is None
    clock.now_ms += 1
    assert log.append_as_leader(batch(b"a", timestamps=(-1,)), 0).rolled == 2


def test_segments_roll_when_an_index_is_full(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for number in range(20):
        log.append_as_leader(batch(b"a", timestamps=(number,)), 0)
    assert all(segment.time_index.entries <= 4 for segment in log.segments)
    assert len(log.segments) > 3
    stuck = open_log(tmp_path / "stuck", LogConfig(index_interval_bytes=0, segment_index_bytes=48))
    for _ in range(20):  # the same time again and again is one entry, so the offset index is the one that fills up
        stuck.append_as_leader(batch(b"a"), 0)
    assert [segment.offset_index.entries for segment in stuck.segments][:-1] == [6, 6]


def test_segments_roll_before_an_offset_that_is_too_far(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(b"a", base_offset=0))
    log.append_as_follower(batch(b"a", base_offset=2**31 - 1))
    assert len(log.segments) == 1
    log.append_as_follower(batch(b"a", base_offset=2**31))
    assert [segment.base_offset for segment in log.segments] == [0, 2**31]
    log.append_as_follower(batch(b"a", base_offset=2**40))
    assert log.segments[-1].base_offset == 2**40
    assert offsets(log.read(2**31 + 5, 1)) == [(2**40, 2**40)]


def test_settings_that_change_hold_for_the_next_append(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0))
    for number in range(5):
        log.append_as_leader(batch(b"a", timestamps=(number,)), 0)
    assert len(log.segments) == 1
    log.configure(LogConfig(index_interval_bytes=0, segment_index_bytes=32))
    assert log.append_as_leader(batch(b"a"), 0).rolled == 5
    log.configure(LogConfig(segment_bytes=100))
    assert log.append_as_leader(batch(b"a"), 0).rolled == 6


def test_a_read_that_a_truncation_overtakes_gives_what_is_left(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        log.append_as_leader(batch(b"a"), 0)
    found = log.find_range(0, 10_000)
    assert found is not None
    log.truncate_to(2)
    assert offsets(found.read()) == [(0, 0), (1, 1)]


def test_an_empty_segment_does_not_roll(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    assert log.roll() == 0
    assert len(log.segments) == 1
    log.append_as_leader(batch(b"a"), 0)
    assert log.roll() == 1
    assert log.roll() == 1
    assert names(tmp_path, "*.log") == ["00000000000000000000.log", "00000000000000000001.log"]


@pytest.mark.parametrize("metadata", [True, False])
def test_a_log_without_producers_says_so_where_a_segment_begins_and_at_its_end(tmp_path: Path, metadata: bool) -> None:
    log = open_log(tmp_path, LogConfig(metadata=metadata))
    log.append_as_leader(batch(b"a"), 0)
    log.roll()
    log.append_as_leader(batch(b"a"), 0)
    log.close()
    assert names(tmp_path, "*.snapshot") == ["00000000000000000001.snapshot", "00000000000000000002.snapshot"]
    assert (tmp_path / "00000000000000000001.snapshot").read_bytes().hex() == "000148674bc700000000"


def test_truncation_takes_whole_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        log.append_as_leader(batch(b"a", b"b", b"c"), leader_epoch=log.log_end_offset // 15)
    assert log.truncate_to(60) == 60
    assert log.truncate_to(100) == 60
    assert log.truncate_to(31) == 30
    assert log.log_end_offset == 30
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 15)]
    assert log.append_as_leader(batch(b"d"), 7).base_offset == 30
    log.close()
    log = open_log(tmp_path)
    assert offsets(log.read(27, 10_000)) == [(27, 29), (30, 30)]
    assert log.epochs.latest_epoch == 7


def test_truncation_below_the_start_begins_anew(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_follower(batch(b"a", base_offset=100))
    log.truncate_fully_and_start_at(100)
    assert (log.log_start_offset, log.log_end_offset, names(tmp_path, "*.log")) == (
        100,
        100,
        ["00000000000000000100.log"],
    )
    log.append_as_follower(batch(b"a", b"b", base_offset=100, epoch=1))
    assert log.truncate_to(50) == 50
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (50, 50, 0)
    assert log.epochs.entries == ()
    assert log.append_as_leader(batch(b"c"), 2).base_offset == 50


def test_a_truncated_log_forgets_the_times_of_what_is_gone(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(index_interval_bytes=0))
    for number in range(10):
        log.append_as_leader(batch(b"a", timestamps=(number * 10,)), 0)
    assert log.offset_for_timestamp(85) == (90, 9, 0)
    log.truncate_to(5)
    assert log.offset_for_timestamp(85) is None
    assert log.offset_for_max_timestamp() == (40, 4, 0)
    log.append_as_leader(batch(b"a", timestamps=(41,)), 0)
    assert log.offset_for_timestamp(41) == (41, 5, 0)


def test_a_search_by_timestamp_decodes_a_few_records_at_a_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A batch may have millions. A list of them would take gigabytes, and freeing it would stop all threads."""
    real, counts = reader._decode_records, []

    def counted(payload: bytes, position: int, first: int, count: int, header: BatchHeader) -> tuple[list[Record], int]:
        counts.append(count)
        return real(payload, position, first, count, header)

    monkeypatch.setattr(reader, "_decode_records", counted)
    log = open_log(tmp_path, LogConfig())
    log.append_as_leader(batch(*[b"x"] * 10_000), 0)
    assert log.offset_for_timestamp(1000 + 9_999) == (10_999, 9_999, 0)
    assert log.offset_for_max_timestamp() == (10_999, 9_999, 0)
    assert max(counts) == reader.CHUNK_RECORDS and sum(counts) == 20_000
    counts.clear()
    assert log.offset_for_timestamp(0) == (1000, 0, 0)
    assert sum(counts) == reader.CHUNK_RECORDS


def test_the_start_offset_moves_and_segments_before_it_go(tmp_path: Path) -> None:
    clock = Clock()
    log = Log.open(tmp_path, SMALL, clock=clock)
    for _ in range(20):
        log.append_as_leader(batch(b"x" * 100), leader_epoch=log.log_end_offset // 8)
    bases = [segment.base_offset for segment in log.segments]
    assert log.advance_log_start_offset(bases[2] + 1)
    assert not log.advance_log_start_offset(bases[2])
    with pytest.raises(OffsetOutOfRangeError):
        log.advance_log_start_offset(21)
    assert log.delete_old_segments() == 2
    assert log.delete_old_segments() == 0
    assert [segment.base_offset for segment in log.segments] == bases[2:]
    assert names(tmp_path, "*.log.deleted") == [f"{base:020d}.log.deleted" for base in bases[:2]]
    assert log.epochs.entries[0] == (log.epochs.epoch_for_offset(bases[2] + 1), bases[2] + 1)
    assert log.delete_files(delay_ms=1) == 0
    clock.now_ms += 1
    assert log.delete_files(delay_ms=1) == 2
    assert not names(tmp_path, "*.deleted")
    log.advance_log_start_offset(20)
    assert log.delete_old_segments() == len(bases) - 3
    assert log.statistics() == (1, log.segments[0].size, 20, 20, 0, 20, len(bases) - 3)


def test_moving_the_start_offset_writes_no_file_until_the_next_flush(tmp_path: Path) -> None:
    log = Log.open(tmp_path, SMALL, clock=Clock())
    for _ in range(4):
        log.append_as_leader(batch(b"x"), leader_epoch=log.log_end_offset)
    log.flush()
    before = log.epochs.path.read_bytes()
    log.advance_log_start_offset(3)
    entries = log.epochs.entries
    assert entries[0].start_offset == 3 and log.epochs.path.read_bytes() == before
    log.abandon()  # a kill: the epochs are cut again when the log is opened
    log = Log.open(tmp_path, SMALL, clock=Clock(), log_start_offset=3)
    assert log.epochs.entries == entries
    log.advance_log_start_offset(4)
    log.flush()
    assert log.epochs.path.read_bytes() != before
    log.close()


def test_a_segment_that_ends_at_the_start_offset_goes(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        log.append_as_leader(batch(b"x" * 100), 0)
    bases = [segment.base_offset for segment in log.segments]
    log.advance_log_start_offset(bases[1] - 1)
    assert log.delete_old_segments() == 0
    log.advance_log_start_offset(bases[1])
    assert log.delete_old_segments() == 1


def test_a_reader_may_finish_with_a_segment_that_is_deleted(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for _ in range(20):
        log.append_as_leader(batch(b"x" * 100), 0)
    found = log.find_range(0, 1000)
    assert found is not None
    content = found.read()
    log.advance_log_start_offset(10)
    log.delete_old_segments()
    assert found.read() == content


def test_times_are_found_over_all_segments(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(30):
        log.append_as_leader(batch(*[b"x" * 40] * 2, timestamps=(number * 10, number * 10 + 5)), leader_epoch=3)
    assert len(log.segments) > 3
    for timestamp in range(-1, 296):
        found = log.offset_for_timestamp(timestamp)
        first = max(0, -(-timestamp // 5))
        assert found == (first * 5, first, 3)
    assert log.offset_for_timestamp(296) is None
    log.advance_log_start_offset(41)
    assert log.offset_for_timestamp(0) == (205, 41, 3)
    assert log.offset_for_max_timestamp() == (295, 59, 3)


def test_the_end_of_an_epoch_is_where_the_next_begins(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for epoch in (1, 1, 4):
        log.append_as_leader(batch(b"a", b"b"), epoch)
    assert [tuple(log.end_offset_for_epoch(epoch)) for epoch in (-1, 0, 1, 3, 4, 5)] == [
        (-1, -1),
        (0, 0),
        (1, 4),
        (1, 4),
        (4, 6),
        (-1, -1),
    ]


def test_a_flush_reaches_the_log_and_the_indexes_of_closed_segments(tmp_path: Path, flushed: list[str]) -> None:
    directory = tmp_path / "log"
    log = open_log(directory)
    log.append_as_leader(batch(b"x" * 100), 0)
    log.flush()
    del flushed[:]
    log.append_as_leader(batch(b"x" * 100), 0)
    log.flush()
    assert flushed == ["00000000000000000000.log"]
    assert log.recovery_point == 2
    log.flush()
    assert len(flushed) == 1
    for _ in range(6):
        log.append_as_leader(batch(b"x" * 100), 0)
    del flushed[:]
    log.flush(up_to_offset=log.segments[1].base_offset)
    rolled_at = log.segments[1].base_offset
    closed = [f"00000000000000000000.{suffix}" for suffix in ("log", "index", "timeindex")]
    assert flushed == [*closed, f"{rolled_at:020d}.snapshot", "log"]
    assert log.recovery_point == rolled_at
    del flushed[:]
    log.close()
    snapshot = f"{log.log_end_offset:020d}.snapshot"
    assert flushed == [
        f"{rolled_at:020d}.log",
        snapshot,
        "log",
        *(f"{rolled_at:020d}.{i}" for i in ("index", "timeindex")),
    ]


def test_the_names_that_a_killed_process_created_are_flushed(tmp_path: Path, flushed: list[str]) -> None:
    directory = tmp_path / "log"
    open_log(directory).abandon()
    log = open_log(directory)
    log.append_as_leader(batch(b"x"), 0)
    log.flush()
    assert {"log", tmp_path.name} <= set(flushed)
    log.close()
    del flushed[:]
    log = open_log(directory, clean_shutdown=True)
    log.append_as_leader(batch(b"x"), 0)
    log.flush()
    assert flushed == ["00000000000000000000.log"]


def test_the_indexes_of_a_segment_closed_after_its_last_flush_are_flushed(tmp_path: Path, flushed: list[str]) -> None:
    log = open_log(tmp_path)
    for _ in range(5):
        log.append_as_leader(batch(b"x" * 100), 0)
    log.flush()
    del flushed[:]
    log.roll()
    log.append_as_leader(batch(b"x" * 100), 0)
    log.flush()
    assert "00000000000000000000.index" in flushed
    assert "00000000000000000000.log" not in flushed


def test_a_flush_that_a_truncation_overtakes_promises_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    for _ in range(4):
        log.append_as_leader(batch(b"a"), 0)
    overtaken: list[int] = []

    def truncate_and_append(descriptor: int) -> None:
        if not overtaken:
            overtaken.append(log.truncate_to(2))
            log.append_as_leader(batch(b"b", b"c"), 0)

    monkeypatch.setattr("os.fsync", truncate_and_append)
    log.flush()
    assert overtaken == [2]
    assert log.recovery_point <= 2
    log.flush()
    assert log.recovery_point == 4


def test_after_an_error_of_the_disk_nothing_is_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a"), 0)
    with monkeypatch.context() as broken:

        def fail(descriptor: int) -> None:
            raise OSError(5, "Input/output error")

        broken.setattr("os.fsync", fail)
        with pytest.raises(StorageError, match=r"0\.log failed: Input/output error"):
            log.flush()
    for write in (log.flush, log.roll, lambda: log.append_as_leader(batch(b"b"), 0), lambda: log.truncate_to(0)):
        with pytest.raises(StorageError, match=r"cannot be written to: flushing .* failed"):
            write()
    assert log.recovery_point == 0
    assert offsets(log.read(0, 100)) == [(0, 0)]
    log.close()
    assert whole_log(open_log(tmp_path)) == [log.read(0, 100)]


def test_a_write_that_fails_in_its_middle_leaves_no_trace(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a"), 0)
    size = log.size_in_bytes
    real = os.pwritev

    def short(descriptor: int, buffers: list[bytes], position: int) -> int:
        return real(descriptor, [bytes(buffers[0])[:10]], position)

    def full(descriptor: int, data: bytes, position: int) -> int:
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as broken:
        broken.setattr("os.pwritev", short)
        broken.setattr("os.pwrite", full)
        with pytest.raises(StorageError, match="No space left"):
            log.append_as_leader(batch(b"b"), 0)
    assert log.log_end_offset == 1
    assert (tmp_path / "00000000000000000000.log").stat().st_size == size


def test_a_write_that_comes_in_pieces_is_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real_vector, real = os.pwritev, os.pwrite
    monkeypatch.setattr("os.pwritev", lambda fd, buffers, at: real_vector(fd, [b"".join(map(bytes, buffers))[:7]], at))
    monkeypatch.setattr("os.pwrite", lambda fd, data, at: real(fd, bytes(data)[:11], at))
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a" * 100, b"b"), 0)
    stored = batch(b"a" * 100, b"b", epoch=0)
    assert log.read(0, 1000) == stored


def test_a_closed_log_is_not_written_to(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a"), 0)
    log.close()
    log.close()
    with pytest.raises(StorageError, match="it was closed"):
        log.append_as_leader(batch(b"b"), 0)


def test_a_log_can_be_renamed_while_it_is_read(tmp_path: Path) -> None:
    log = open_log(tmp_path / "topic-0")
    for _ in range(10):
        log.append_as_leader(batch(b"x" * 100), 0)
    stored = whole_log(log)
    log.rename(tmp_path / "topic-0.abc-delete")
    assert whole_log(log) == stored
    log.append_as_leader(batch(b"y"), 1)
    log.close()
    assert names(tmp_path) == ["topic-0.abc-delete"]
    log = open_log(tmp_path / "topic-0.abc-delete")
    assert log.log_end_offset == 11
    assert log.epochs.latest_epoch == 1
    log.delete()
    assert not names(tmp_path)


def test_readers_in_threads_see_only_whole_batches(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=20_000, index_interval_bytes=500))
    done = threading.Event()
    failures: list[BaseException] = []

    def read() -> None:
        try:
            while not done.is_set():
                offset = 0
                for header, _ in log.batches():
                    assert header.base_offset == offset
                    offset = header.next_offset
        except BaseException as error:
            failures.append(error)

    threads = [threading.Thread(target=read) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(1500):
        log.append_as_leader(batch(*[b"x" * (number % 90)] * (number % 3 + 1)), 0)
        if number % 50 == 0:
            log.flush()
            for segment in log.segments:
                segment.let_go()
    done.set()
    for thread in threads:
        thread.join()
    assert failures == []
