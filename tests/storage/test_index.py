"""Lookups in the indexes, beside a walk over everything."""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.storage import LogConfig
from barnabas.storage.files import File
from barnabas.storage.index import OffsetIndex, OffsetPosition, TimeIndex, TimestampOffset
from tests.storage.made import batch, open_log


@pytest.mark.parametrize("in_memory", [True, False])
def test_a_lookup_finds_what_a_walk_finds(tmp_path: Path, in_memory: bool) -> None:
    index = OffsetIndex(File.create(tmp_path / "index"), 100, 8000)
    entries = [OffsetPosition(103 + 7 * number, 50 + 11 * number) for number in range(60)]
    for count in range(len(entries)):
        index.append(*entries[count])
        if not in_memory:
            index.drop_memory()
        for offset in (0, 100, 102, *range(103, 103 + 7 * count + 9, 3)):
            found = [entry for entry in entries[: count + 1] if entry.offset <= offset]
            assert index.lookup(offset) == (found[-1] if found else (100, 0))
        for position in range(0, 50 + 11 * count + 13, 5):
            found = [entry for entry in entries[: count + 1] if entry.position <= position]
            assert index.lookup_position(position) == (found[-1] if found else (100, 0))
    assert index.last() == entries[-1]


def test_a_damaged_entry_with_a_negative_position_is_the_start_of_the_segment(tmp_path: Path) -> None:
    index = OffsetIndex(File.create(tmp_path / "index"), 100, 8000)
    index.append(110, 50)
    index.append(120, -2_000_000_000)
    assert index.lookup(115) == (110, 50)
    assert index.lookup(125) == index.last() == (100, 0)


def test_truncation_keeps_smaller_offsets(tmp_path: Path) -> None:
    for target in range(98, 125):
        index = OffsetIndex(File.create(tmp_path / "index"), 100, 8000)
        times = TimeIndex(File.create(tmp_path / "timeindex"), 100, 8000)
        for number in range(4):
            index.append(104 + 5 * number, 1 + number)
            times.maybe_append(TimestampOffset(number, 104 + 5 * number))
        index.truncate_to(target)
        times.truncate_to(target)
        kept = sum(104 + 5 * number < target for number in range(4))
        assert index.entries == times.entries == kept
        assert (tmp_path / "index").stat().st_size == 8 * kept
        assert (tmp_path / "timeindex").stat().st_size == 12 * kept


def test_the_time_index_takes_only_what_is_later(tmp_path: Path) -> None:
    index = TimeIndex(File.create(tmp_path / "timeindex"), 0, 1200)
    for timestamp, offset in ((-1, 0), (5, 1), (5, 2), (3, 3), (9, 4)):
        index.maybe_append(TimestampOffset(timestamp, offset))
    assert [index.entry(slot) for slot in range(index.entries)] == [(5, 1), (9, 4)]
    assert [index.lookup(timestamp) for timestamp in (4, 5, 8, 9, 99)] == [(-1, 0), (5, 1), (5, 1), (9, 4), (9, 4)]


def test_the_time_index_keeps_room_for_its_last_entry(tmp_path: Path) -> None:
    index = TimeIndex(File.create(tmp_path / "timeindex"), 0, 3 * 12 + 5)
    index.maybe_append(TimestampOffset(1, 1))
    assert not index.is_full()
    index.maybe_append(TimestampOffset(2, 2))
    assert index.is_full()
    offsets = OffsetIndex(File.create(tmp_path / "index"), 0, 2 * 8 + 7)
    offsets.append(1, 1)
    assert not offsets.is_full()
    offsets.append(2, 2)
    assert offsets.is_full()


def test_zeros_behind_the_entries_are_not_entries(tmp_path: Path) -> None:
    path = tmp_path / "index"
    for entries in range(4):
        # The last entry ends with a byte of zero, which belongs to it.
        written = b"".join(OffsetIndex.ENTRY.pack(number + 1, 256 * (number + 1)) for number in range(entries))
        path.write_bytes(written + bytes(800))
        index = OffsetIndex(File(path), 0, 800)
        assert index.entries == entries
        assert path.read_bytes() == written


@settings(max_examples=30, deadline=None)
@given(seed=st.integers(0, 2**32), interval=st.sampled_from([0, 50, 400, 4096]))
def test_every_offset_and_time_is_found_where_a_walk_finds_it(
    tmp_path_factory: pytest.TempPathFactory, seed: int, interval: int
) -> None:
    chance = random.Random(seed)
    config = LogConfig(segment_bytes=4000, index_interval_bytes=interval)
    log = open_log(tmp_path_factory.mktemp("log"), config)
    for _ in range(40):
        base_offset = log.log_end_offset + chance.choice((0, 0, 0, 1, 10))
        values = [b"x" * chance.randint(0, 200)] * chance.randint(1, 4)
        times = tuple(chance.randint(0, 100) for _ in values)
        log.append_as_follower(batch(*values, timestamps=times, base_offset=base_offset, epoch=0))
    headers = [(segment, at, header) for segment in log.segments for at, header in segment.headers()]
    for offset in range(log.log_end_offset):
        segment, position, _ = next(found for found in headers if found[2].last_offset >= offset)
        found = log.find_range(offset, 1)
        assert found is not None
        assert (found.file, found.position) == (segment.log, position)
        assert segment.read(offset, 1) == found.read() == log.read(offset, 1)
    records = [
        (record.timestamp, record.offset) for segment, at, header in headers for record in segment._records(at, header)
    ]
    for timestamp in range(102):
        expected = next((record for record in records if record[0] >= timestamp), None)
        searched = log.offset_for_timestamp(timestamp)
        assert (searched and searched[:2]) == expected
    latest = max(timestamp for timestamp, _ in records)
    assert log.offset_for_max_timestamp() == (*next(record for record in records if record[0] == latest), 0)
    log.abandon()
