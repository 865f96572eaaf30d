"""What compaction leaves of a log."""

from __future__ import annotations

import os
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.batches import Compression, ControlType, TimestampType, build_control_batch, decode_records
from barnabas.batches.spans import Retained
from barnabas.storage import CorruptLogError, Log, LogConfig, StorageError
from barnabas.storage import compaction as compaction_module
from barnabas.storage.compaction import Compaction
from barnabas.storage.offline import check_indexes
from barnabas.storage.segment import segment_path
from tests.storage.compacting import (
    CONFIG,
    append,
    clean,
    clean_all,
    end_transaction,
    headers,
    keyed,
    last_values,
    open_compacted,
    seen,
    seen_committed,
)
from tests.storage.made import Clock, whole_log

LONG = b"k" * 40
LARGE = replace(CONFIG, max_message_bytes=1 << 30, segment_bytes=1 << 30)


@pytest.fixture
def clock() -> Clock:
    return Clock(1_000_000)


@pytest.fixture
def log(tmp_path: Path, clock: Clock) -> Log:
    return open_compacted(tmp_path / "log", clock)


# Keys and tombstones


def test_the_last_record_of_each_key_stays_at_its_offset(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"b", b"1"), (LONG, b"1"))
    append(log, (b"a", b"2"), (LONG + b"2", b"1"))
    append(log, (b"c", b"1"), (LONG, b"2"))
    compaction = clean_all(log, clock)
    assert seen(log) == {1: (b"b", b"1"), 3: (b"a", b"2"), 4: (LONG + b"2", b"1"), 5: (b"c", b"1"), 6: (LONG, b"2")}
    assert (compaction.is_done, compaction.end_offset, log.log_end_offset) == (True, 7, 7)
    stats = compaction.stats
    assert (stats.mapped_records, stats.map_entries, stats.records_read, stats.records_written) == (7, 5, 7, 5)


def test_the_active_segment_is_left_alone(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"))
    log.roll()
    append(log, (b"a", b"2"), (b"a", b"3"))
    assert clean(log, clock).end_offset == 1
    assert seen(log) == {0: (b"a", b"1"), 1: (b"a", b"2"), 2: (b"a", b"3")}


def test_records_without_a_key_go(log: Log, clock: Clock) -> None:
    append(log, (None, b"1"), (b"", b"2"), (None, None))
    append(log, (b"z", b"3"))
    compaction = clean_all(log, clock)
    assert seen(log) == {1: (b"", b"2"), 3: (b"z", b"3")}
    assert compaction.stats.records_without_key == 2


def test_a_batch_of_which_everything_stays_is_copied(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"b", b"1"), compression=Compression.LZ4)
    append(log, (b"c", b"1"))
    before = whole_log(log)
    clean_all(log, clock)
    assert whole_log(log) == before


def test_a_batch_of_which_a_part_stays_keeps_its_offsets_and_its_codec(log: Log, clock: Clock) -> None:
    for codec in Compression:
        append(log, (b"a", b"1"), (codec.name.encode(), b"2"), (b"a", b"3"), compression=codec)
    append(log, (b"a", b"4"))
    clean_all(log, clock)
    batches = headers(log)
    assert [header.compression for header in batches[:5]] == list(Compression)
    assert [(header.base_offset, header.last_offset, header.records_count) for header in batches[:5]] == [
        (3 * number, 3 * number + 2, 1) for number in range(5)
    ]
    # The timestamps that are left are those of the records.
    assert [header.max_timestamp for header in batches[:5]] == [1001] * 5
    assert seen(log)[13] == (b"ZSTD", b"2")


def test_append_times_stay(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"b", None), timestamp_type=TimestampType.LOG_APPEND_TIME)
    append(log, (b"a", b"2"), timestamp_type=TimestampType.LOG_APPEND_TIME)
    clean_all(log, clock)
    (first, data), _ = log.batches()
    assert (first.timestamp_type, first.max_timestamp) == (TimestampType.LOG_APPEND_TIME, 1500)
    assert first.delete_horizon_ms == clock() + 1000
    assert [record.timestamp for record in decode_records(data, 0, first)] == [1500]


def test_a_tombstone_stays_until_its_time_has_passed_since_it_was_first_cleaned(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"b", b"1"))
    append(log, (b"a", None))
    append(log, (b"z", b"1"))
    checkpoint = clean_all(log, clock).end_offset
    assert seen(log) == {1: (b"b", b"1"), 2: (b"a", None), 3: (b"z", b"1")}
    assert [header.delete_horizon_ms for header in headers(log)] == [None, clock() + 1000, None]
    clock.now_ms += 999
    append(log, (b"y", b"1"))
    checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert 2 in seen(log)
    assert headers(log)[1].delete_horizon_ms == clock() + 1  # it is set once
    clock.now_ms += 1
    append(log, (b"x", b"1"))
    clean_all(log, clock, checkpoint)
    assert seen(log) == {1: (b"b", b"1"), 3: (b"z", b"1"), 4: (b"y", b"1"), 5: (b"x", b"1")}


def test_a_tombstone_without_an_end_stays_for_ever(tmp_path: Path, clock: Clock) -> None:
    log = open_compacted(tmp_path / "log", clock, replace(CONFIG, delete_retention_ms=2**63 - 1))
    append(log, (b"a", None))
    append(log, (b"z", b"1"))
    before = whole_log(log)
    clean_all(log, clock)
    assert whole_log(log) == before


def test_a_later_value_replaces_a_tombstone(log: Log, clock: Clock) -> None:
    append(log, (b"a", None), (b"b", b"1"))
    append(log, (b"a", b"2"))
    clean_all(log, clock)
    assert seen(log) == {1: (b"b", b"1"), 2: (b"a", b"2")}
    assert headers(log)[0].delete_horizon_ms is None


def test_the_last_batch_that_is_cleaned_stays_for_its_offset(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"), (None, b"3"))
    log.roll()
    log.truncate_to(3)
    append(log, (b"a", b"4"))
    clean(log, clock)
    assert [(header.base_offset, header.last_offset, header.records_count) for header in headers(log)] == [
        (1, 2, 1),
        (3, 3, 1),
    ]
    clean_all(log, clock)
    assert [(header.base_offset, header.last_offset, header.records_count) for header in headers(log)] == [(3, 3, 1)]
    append(log, (None, b"5"))
    clean_all(log, clock)
    assert [(header.last_offset, header.records_count) for header in headers(log)] == [(3, 1), (4, 0)]
    assert log.log_end_offset == 5


# Segments


def test_segments_become_fewer_and_none_larger_than_one_may_be(log: Log, clock: Clock) -> None:
    for number in range(60):
        append(log, (b"k%d" % (number % 7), b"v" * 60), (b"other%d" % number, b"x"))
    before = len(log.segments)
    checkpoint = clean_all(log, clock).end_offset
    # What was joined fitted as it was; now that it is smaller, more of it fits.
    append(log, (b"last", b"x"))
    clean_all(log, clock, checkpoint)
    assert 2 < len(log.segments) < before
    assert all(segment.size <= 1000 for segment in log.segments)
    assert log.segments[0].base_offset == 0
    for segment in log.segments:
        assert not list(check_indexes(log.directory, segment.base_offset))
    expected = {(b"other%d" % number): b"x" for number in range(60)} | {
        b"k%d" % number: b"v" * 60 for number in range(7)
    }
    assert last_values(seen(log)) == {**expected, b"last": b"x"}


def test_reads_by_offset_and_time_find_what_is_left(log: Log, clock: Clock) -> None:
    for number in range(40):
        append(log, (b"k%d" % (number % 20), b"v" * 30), timestamp=5000 + number)
    clean_all(log, clock)
    assert min(seen(log)) == 20
    for offset in range(40):
        first = next(log.batches(offset))[0]
        assert first.base_offset == max(offset, 20)
    assert log.offset_for_timestamp(5000) == (5020, 20, 0)
    assert log.offset_for_timestamp(5033) == (5033, 33, 0)
    assert log.offset_for_max_timestamp() == (5039, 39, 0)


def test_a_largest_timestamp_whose_record_is_gone_is_not_found(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), timestamp=9000, producer=(7, 0, 0))
    append(log, (b"a", b"2"))
    clean_all(log, clock)
    assert headers(log)[0].records_count == 0
    assert log.offset_for_timestamp(9000) is None
    assert log.offset_for_max_timestamp() is None


def test_replaced_segments_are_deleted_after_their_delay_and_read_until_then(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"))
    append(log, (b"b", b"1"))
    place = log.find_range(0, 1000)
    assert place is not None
    data = place.read()
    for value in (b"2", b"3", b"4"):
        append(log, (b"a", value))
        clean_all(log, clock)
    deleted = len(list(log.directory.glob("*.log*.deleted")))
    assert deleted == log.statistics().deleted_segments
    place.file.let_go()
    assert place.read() == data  # and not those of a segment that was replaced after it
    clock.now_ms += log.config.file_delete_delay_ms
    assert log.delete_files(log.config.file_delete_delay_ms) == deleted
    assert not list(log.directory.glob("*.deleted"))
    assert last_values(seen(log)) == {b"a": b"4", b"b": b"1"}


def test_epochs_and_the_time_of_the_last_change_stay(tmp_path: Path, clock: Clock) -> None:
    log = open_compacted(tmp_path / "log", clock)
    append(log, (b"a", b"1"), timestamp=-1)
    log.assign_epoch(3, 1)
    log.append_as_leader(keyed((b"a", b"2"), timestamp=-1), leader_epoch=3)
    log.roll()
    modified_ms = 1_234_567_890_123
    for segment in log.segments:
        segment.set_modified_ms(modified_ms)
    clean(log, clock)
    assert log.epochs.entries == ((0, 0), (3, 1))
    assert log.segments[0].largest_timestamp() == modified_ms


def test_a_cleaned_log_opens_again(tmp_path: Path, log: Log, clock: Clock) -> None:
    for number in range(30):
        append(log, (b"k%d" % (number % 7), b"v" * 60))
    clean_all(log, clock)
    content = whole_log(log)
    log.close()
    for clean_shutdown in (True, False):
        log = open_compacted(tmp_path / "log", clock, clean_shutdown=clean_shutdown)
        assert whole_log(log) == content
        assert log.log_end_offset == 30
        log.abandon()


# Memory and time


def test_keys_that_do_not_fit_into_memory_are_for_the_next_time(log: Log, clock: Clock) -> None:
    for number in range(12):
        append(log, (b"k%d" % (number % 6), b"%d" % number), (b"same", b"%d" % number))
    expected = last_values(seen(log))
    log.roll()
    checkpoint = None
    ends = []
    while checkpoint != 24:
        compaction = clean(log, clock, checkpoint, dedupe_buffer_size=160 * 5)
        assert compaction.stats.map_entries <= 4
        checkpoint = compaction.end_offset
        ends.append(checkpoint)
        assert last_values(seen(log)) == expected
    assert len(ends) > 2
    assert ends == sorted(set(ends))


def test_what_lies_behind_the_keys_that_fit_stays_as_it_is(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"a", b"2"), (b"b", b"1"), (b"a", b"3"), (None, b"4"))
    log.roll()
    compaction = clean(log, clock, dedupe_buffer_size=160 * 3)
    assert (compaction.end_offset, compaction.stats.map_entries) == (3, 2)
    assert seen(log) == {1: (b"a", b"2"), 2: (b"b", b"1"), 3: (b"a", b"3"), 4: (None, b"4")}


def test_a_cleaning_is_done_in_slices(log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compaction_module, "_SLICE_RECORDS", 10)
    append(log, *((b"k%d" % number, b"") for number in range(80)))
    log.roll()
    compaction = Compaction(log, log.find_dirty(None, 80, clock()), now_ms=clock())
    gave_way = 0
    for step in compaction.steps():
        if step is None:
            gave_way += 1
        else:
            step()
    assert gave_way >= 16
    assert len(seen(log)) == 80


def test_large_payloads_and_every_fsync_are_steps_for_a_thread(
    log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(compaction_module, "_SMALL_BYTES", 100)
    for number in range(2):
        values = ((b"k%d" % each, b"%d" % number * 20) for each in range(20 + 20 * number))
        append(log, *values, compression=Compression.ZSTD)
    log.roll()
    on_loop: list[str] = []
    is_in_step = False

    def noting(name: str, real):  # type: ignore[no-untyped-def]
        def noted(*arguments: object, **named: object) -> object:
            if not is_in_step:
                on_loop.append(name)
            return real(*arguments, **named)

        return noted

    monkeypatch.setattr(os, "fsync", noting("fsync", os.fsync))
    for place, name in ((compaction_module, "decode_payload"), (Retained, "encode")):
        monkeypatch.setattr(place, name, noting(name, getattr(place, name)))
    compaction = Compaction(log, log.find_dirty(None, log.log_end_offset, clock()), now_ms=clock())
    for step in compaction.steps():
        is_in_step = True
        if step is not None:
            step()
        is_in_step = False
    assert compaction.is_done and not on_loop
    assert dict(seen(log).values()) == {b"k%d" % each: b"1" * 20 for each in range(40)}


@pytest.mark.parametrize("has_tombstones", [False, True])
def test_a_batch_of_very_many_records_is_cleaned_as_if_its_records_were_in_small_ones(
    tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch, has_tombstones: bool
) -> None:
    found = []
    for max_spans in (100_000, 1):
        monkeypatch.setattr(compaction_module, "_MAX_SPANS", max_spans)
        log = open_compacted(tmp_path / str(max_spans), clock, LARGE)
        append(
            log, *((b"k%d" % (each % 2000), None if has_tombstones and each == 5999 else b"v") for each in range(6000))
        )
        compaction = clean_all(log, clock)
        assert (compaction.stats.records_read, compaction.stats.records_written) == (6000, 2000)
        found.append(whole_log(log))
    assert found[0] == found[1]


def test_the_memory_of_a_cleaning_follows_the_bytes_of_a_batch_and_not_the_number_of_its_records(
    tmp_path: Path, clock: Clock
) -> None:
    count = 40_000
    log = open_compacted(tmp_path / "log", clock, LARGE)
    append(log, (b"first", b"1"), (b"first", b"2"), *((b"%06d" % each, b"") for each in range(count)))
    log.roll()
    size = log.segments[0].size
    dirty = log.find_dirty(None, log.log_end_offset, clock())
    compaction = Compaction(log, dirty, now_ms=clock(), dedupe_buffer_size=160 * 1000)
    tracemalloc.start()
    try:
        for step in compaction.steps():
            if step is not None:
                step()
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert compaction.is_done and len(seen(log)) == count + 1
    assert peak < 8 * size, "a span of some 200 bytes for each record would be more than ten times its bytes"


def test_a_cleaning_that_is_closed_leaves_the_log_as_it_was(log: Log, clock: Clock) -> None:
    for number in range(30):
        append(log, (b"k%d" % (number % 7), b"v" * 60))
    log.roll()
    files = {path.name: path.read_bytes() for path in log.directory.iterdir()}
    content = whole_log(log)
    for stop in range(50):
        compaction = Compaction(log, log.find_dirty(None, 30, clock()), now_ms=clock())
        steps = compaction.steps()
        for _, step in zip(range(stop), steps, strict=False):
            if step is not None:
                step()
            if any(path.name.endswith(".deleted") for path in log.directory.iterdir()):
                return
        steps.close()
        assert not compaction.is_done
        assert whole_log(log) == content
        assert {path.name: path.read_bytes() for path in log.directory.iterdir()} == files
    pytest.fail("nothing was ever replaced")


def _truncate(log: Log) -> None:
    log.truncate_to(15)


def _delete(log: Log) -> None:
    log.advance_log_start_offset(20)
    log.delete_old_segments()


def _move(log: Log) -> None:
    log.rename(log.directory.with_name("moved"))


def _close(log: Log) -> None:
    log.close()


@pytest.mark.parametrize("disturb", [_truncate, _delete, _move, _close])
@pytest.mark.parametrize("after_steps", [1, 3, 5, 6, 8])
def test_a_cleaning_whose_log_changes_under_it_ends(log: Log, clock: Clock, disturb, after_steps: int) -> None:  # type: ignore[no-untyped-def]
    for number in range(30):
        append(log, (b"k%d" % (number % 7), b"v" * 60))
    log.roll()
    compaction = Compaction(log, log.find_dirty(None, 30, clock()), now_ms=clock())
    before = last_values(seen(log))
    steps = compaction.steps()
    for _, step in zip(range(after_steps), steps, strict=False):
        if step is not None:
            step()
    disturb(log)
    for step in steps:
        if step is not None:
            step()
    assert not compaction.is_done
    assert compaction.end_offset == 0
    log.abandon()
    directory = log.directory
    log = open_compacted(directory, clock, log_start_offset=log.log_start_offset)
    assert not list(directory.glob("*.cleaned"))
    if disturb in (_move, _close):
        assert last_values(seen(log)) == before
    assert log.log_end_offset == (15 if disturb is _truncate else 30)
    log.abandon()


# Damage


@pytest.mark.parametrize("offset", [0, 5])
def test_damage_is_reported_and_nothing_is_replaced(log: Log, clock: Clock, offset: int) -> None:
    for _ in range(6):
        append(log, (b"a", b"value"))
    log.roll()
    place = log.segments[0].find(offset)
    assert place is not None
    path = segment_path(log.directory, 0, ".log")
    content = bytearray(path.read_bytes())
    content[place.position + place.size - 3] ^= 1
    path.write_bytes(content)
    with pytest.raises(CorruptLogError, match=str(path)):
        clean(log, clock)
    assert path.read_bytes() == content
    assert not list(log.directory.glob("*.cleaned"))
    append(log, (b"more", b"1"))  # one may still write


def test_a_disk_that_is_full_leaves_the_log_as_it_was(log: Log, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"))
    log.roll()

    def refuse(*_: object) -> None:
        raise StorageError("the disk is full")

    with monkeypatch.context() as patch:
        patch.setattr("barnabas.storage.segment.Segment.append", refuse)
        with pytest.raises(StorageError, match="full"):
            clean(log, clock)
    assert len(seen(log)) == 2
    assert not list(log.directory.glob("*.cleaned"))
    assert clean(log, clock).is_done


# Producers and transactions


def test_the_last_batch_of_a_producer_stays_for_its_sequence(tmp_path: Path, log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), (b"b", b"1"), producer=(7, 0, 0))
    append(log, (b"a", b"2"), (b"b", b"2"), producer=(7, 0, 2))
    append(log, (b"a", b"3"), (b"b", b"3"), producer=(8, 0, 0))
    append(log, (b"z", b"1"))
    clean_all(log, clock)
    assert [(header.producer_id, header.base_offset, header.records_count) for header in headers(log)] == [
        (7, 2, 0),
        (8, 4, 2),
        (-1, 6, 1),
    ]
    log.close()
    for path in log.directory.glob("*.snapshot"):
        path.unlink()
    log = open_compacted(tmp_path / "log", clock)
    assert append(log, (b"c", b"1"), producer=(7, 0, 4)) == 7
    # When it has written more, what it wrote before may go, and when it is forgotten, all of it.
    clean_all(log, clock)
    assert [header.base_offset for header in headers(log)] == [4, 6, 7]
    clock.now_ms += log.config.producer_id_expiration_ms
    log.remove_expired_producers(clock())
    append(log, (b"a", b"4"), (b"b", b"4"))
    clean_all(log, clock)
    assert [header.base_offset for header in headers(log)] == [6, 7, 8]


def test_aborted_records_go_whatever_their_keys_are(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"committed"))
    append(log, (b"a", b"aborted"), (b"b", b"aborted"), producer=(7, 0, 0), is_transactional=True)
    append(log, (b"c", b"other"))
    end_transaction(log, clock, 7, commit=False)
    append(log, (b"z", b"1"), producer=(7, 0, 2), is_transactional=True)
    end_transaction(log, clock, 7, commit=True)
    expected = {0: (b"a", b"committed"), 3: (b"c", b"other"), 5: (b"z", b"1")}
    assert seen_committed(log) == expected
    clean_all(log, clock)
    assert seen(log) == seen_committed(log) == expected


def test_the_marker_of_an_aborted_transaction_goes_when_its_records_are_gone_and_time_has_passed(
    log: Log, clock: Clock
) -> None:
    append(log, (b"a", b"aborted"), producer=(7, 0, 0), is_transactional=True)
    end_transaction(log, clock, 7, commit=False)
    append(log, (b"b", b"1"), producer=(7, 0, 1), is_transactional=True)
    end_transaction(log, clock, 7, commit=True)
    append(log, (b"z", b"1"))

    def markers() -> list[tuple[int, int | None]]:
        return [(header.base_offset, header.delete_horizon_ms) for header in headers(log) if header.is_control]

    checkpoint = clean_all(log, clock).end_offset
    # The records went only now: readers who have seen them need the marker and its entry.
    assert markers() == [(1, None), (3, None)]
    assert [transaction.last_offset for transaction in log.aborted_transactions(0, 5)] == [1]
    append(log, (b"y", b"1"))
    checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert markers() == [(1, clock() + 1000), (3, None)]
    assert log.aborted_transactions(0, 5) == []
    clock.now_ms += 999
    append(log, (b"x", b"1"))
    checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert markers() == [(1, clock() + 1), (3, None)]
    clock.now_ms += 1
    append(log, (b"w", b"1"))
    clean_all(log, clock, checkpoint)
    assert markers() == [(3, None)]


def test_the_marker_of_a_committed_transaction_stays_with_its_records(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), producer=(7, 0, 0), is_transactional=True)
    end_transaction(log, clock, 7, commit=True)
    append(log, (b"z", b"1"))
    checkpoint = clean_all(log, clock).end_offset
    clock.now_ms += 2000
    append(log, (b"y", b"1"))
    checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert [header.delete_horizon_ms for header in headers(log) if header.is_control] == [None]
    # Of another producer: the last batch of this one would stay.
    log.producers.remove_expired(clock() + log.config.producer_id_expiration_ms, log.config.producer_id_expiration_ms)
    append(log, (b"a", b"2"))
    for passed_ms in (0, 0, 1000):
        clock.now_ms += passed_ms
        append(log, (b"x", b"1"))
        checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert not any(header.is_control for header in headers(log))


def test_the_last_marker_stays_for_the_epoch_of_its_producer(tmp_path: Path, log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"), producer=(7, 0, 0), is_transactional=True)
    log.append_marker(
        producer_id=7,
        producer_epoch=1,
        commit=True,
        coordinator_epoch=0,
        leader_epoch=0,
        now_ms=clock(),
        transaction_version=2,
    )
    append(log, (b"a", b"2"))
    checkpoint = None
    for _ in range(4):
        clock.now_ms += 1000
        append(log, (b"z", b"1"))
        checkpoint = clean_all(log, clock, checkpoint).end_offset
    assert (headers(log)[0].is_control, headers(log)[0].records_count) == (True, 0)
    log.close()
    for path in log.directory.glob("*.snapshot"):
        path.unlink()
    log = open_compacted(tmp_path / "log", clock)
    assert seen(log).keys() == {2, 6}
    log.abandon()


def test_an_open_transaction_is_not_cleaned_nor_what_comes_after_it(log: Log, clock: Clock) -> None:
    append(log, (b"a", b"1"))
    append(log, (b"a", b"2"))
    log.roll()
    append(log, (b"a", b"open"), producer=(7, 0, 0), is_transactional=True)
    append(log, (b"b", b"1"))
    log.roll()
    append(log, (b"b", b"2"))
    assert clean_all(log, clock).end_offset == 2
    assert seen(log) == {1: (b"a", b"2"), 2: (b"a", b"open"), 3: (b"b", b"1"), 4: (b"b", b"2")}
    end_transaction(log, clock, 7, commit=False)
    clean_all(log, clock)
    assert seen(log) == {1: (b"a", b"2"), 4: (b"b", b"2")}


def test_a_transaction_over_several_segments_is_aborted_in_all_of_them(log: Log, clock: Clock) -> None:
    for number in range(12):
        append(log, (b"k%d" % number, b"aborted" * 20), producer=(7, 0, number), is_transactional=True)
        append(log, (b"k%d" % number, b"committed" * 10))
        if number % 3 == 2:
            log.roll()
    end_transaction(log, clock, 7, commit=False)
    assert len(log.segments) > 4
    expected = {2 * number + 1: (b"k%d" % number, b"committed" * 10) for number in range(12)}
    for _ in range(3):
        clean_all(log, clock)
        assert seen(log) == seen_committed(log) == expected
        append(log, (b"z", b"1"))
        expected = {offset: record for offset, record in expected.items() if record[0] != b"z"}
        expected[log.log_end_offset - 1] = (b"z", b"1")
        clock.now_ms += 1000


def test_other_control_records_stay(log: Log, clock: Clock) -> None:
    leader = build_control_batch(
        [(ControlType.LEADER_CHANGE, b"\x00\x00")], timestamp=1, base_offset=0, partition_leader_epoch=0
    )
    log.append_as_follower(leader)
    append(log, (b"z", b"1"))
    checkpoint = None
    for _ in range(3):
        checkpoint = clean_all(log, clock, checkpoint).end_offset
        clock.now_ms += 5000
        append(log, (b"z", b"1"))
    assert headers(log)[0].is_control
    assert headers(log)[0].delete_horizon_ms is None


def test_a_policy_of_both_words_compacts_and_deletes(tmp_path: Path, clock: Clock) -> None:
    config = replace(CONFIG, delete=True, retention_ms=5000)
    log = open_compacted(tmp_path / "log", clock, config)
    append(log, (b"a", b"1"), (b"b", b"1"), timestamp=clock())
    append(log, (b"a", b"2"), timestamp=clock())
    clock.now_ms += 3000
    checkpoint = clean_all(log, clock).end_offset
    append(log, (b"c", b"1"), timestamp=clock())
    log.roll()
    assert seen(log) == {1: (b"b", b"1"), 2: (b"a", b"2"), 3: (b"c", b"1")}
    clock.now_ms += 2500
    assert log.delete_by_retention(clock(), log.log_end_offset).by_time == 1
    assert seen(log) == {3: (b"c", b"1")}
    dirty = log.find_dirty(checkpoint, log.log_end_offset, clock())
    assert (dirty.first_dirty_offset, dirty.checkpoint_is_wrong) == (3, False)


def test_default_settings_compact_nothing_young(tmp_path: Path, clock: Clock) -> None:
    log = open_compacted(tmp_path / "log", clock, LogConfig(compact=True, min_compaction_lag_ms=1000))
    append(log, (b"a", b"1"), timestamp=clock())
    log.roll()
    assert not log.find_dirty(None, 1, clock()).is_due
    clock.now_ms += 1000
    assert log.find_dirty(None, 1, clock()).is_due
