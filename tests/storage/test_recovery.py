"""What is left of a log after its files were cut, damaged or taken away."""

from __future__ import annotations

import shutil
import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.batches import iterate_batches
from barnabas.batches.format import CRC_POSITION
from barnabas.storage import CorruptLogError, Log, LogConfig, StorageError
from barnabas.storage.offline import check_indexes
from barnabas.storage.segment import segment_path
from tests.storage.made import SMALL, Clock, batch, open_log, whole_log

METADATA = LogConfig(segment_bytes=1000, index_interval_bytes=100, metadata=True)


def write_log(directory: Path, config: LogConfig = SMALL, batches: int = 5) -> list[bytes]:
    """A closed log of a few batches, and those batches."""
    log = open_log(directory, config)
    for number in range(batches):
        log.append_as_leader(batch(*[b"v" * 10 * (number % 3 + 1)] * (number % 2 + 1)), leader_epoch=number // 3)
    written = whole_log(log)
    log.close()
    return written


def last_segment(directory: Path) -> Path:
    return max(directory.glob("*.log"))


def check(log: Log, expected: list[bytes]) -> None:
    """The log has these batches, its indexes fit, and it can be written to."""
    assert whole_log(log) == expected
    end = sum(header.last_offset_delta + 1 for data in expected for _, header in iterate_batches(data))
    assert log.log_end_offset == end
    assert [item for segment in log.segments for item in check_indexes(log.directory, segment.base_offset)] == []
    info = log.append_as_leader(batch(b"after"), leader_epoch=9)
    assert info.base_offset == end
    assert log.read(end, 1000) == whole_log(log)[-1]


def test_a_segment_cut_at_any_byte_keeps_its_whole_batches(tmp_path: Path) -> None:
    written = write_log(tmp_path / "whole")
    content = last_segment(tmp_path / "whole").read_bytes()
    assert content == b"".join(written)
    ends = [sum(map(len, written[:count])) for count in range(len(written) + 1)]
    for size in range(len(content) + 1):
        directory = tmp_path / f"cut-{size}"
        directory.mkdir()
        (directory / "00000000000000000000.log").write_bytes(content[:size])
        log = open_log(directory)
        whole = max(count for count, end in enumerate(ends) if end <= size)
        assert log.recoveries[0].truncated_bytes == size - ends[whole]
        check(log, written[:whole])
        log.abandon()


def test_a_segment_cut_after_a_clean_shutdown_is_recovered_too(tmp_path: Path) -> None:
    written = write_log(tmp_path / "log")
    path = last_segment(tmp_path / "log")
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    log = open_log(tmp_path / "log", clean_shutdown=True)
    assert log.recoveries[0].truncated_bytes == len(written[-1]) - 1
    check(log, written[:-1])


@pytest.mark.parametrize("tail", [b"\0", b"\0" * 5000, b"\xff" * 300, b"garbage" * 30])
def test_what_is_no_batch_at_the_end_is_cut_off(tmp_path: Path, tail: bytes) -> None:
    written = write_log(tmp_path / "log")
    with last_segment(tmp_path / "log").open("ab") as file:
        file.write(tail)
    log = open_log(tmp_path / "log")
    assert log.recoveries[0].truncated_bytes == len(tail)
    check(log, written)


def test_any_byte_under_the_checksum_that_changes_ends_the_log_there(tmp_path: Path) -> None:
    written = write_log(tmp_path / "whole", batches=4)
    content = b"".join(written)
    start = len(written[0]) + len(written[1])
    # Offset and epoch stand before the checksum; a length that changes is one that does not fit.
    for position in (*range(8, 12), *range(16, len(written[2]))):
        damaged = bytearray(content)
        damaged[start + position] ^= 0x41
        directory = tmp_path / f"damaged-{position}"
        directory.mkdir()
        (directory / "00000000000000000000.log").write_bytes(damaged)
        log = open_log(directory)
        assert log.recoveries[0].truncated_bytes == len(content) - start
        assert log.recoveries[0].reason is not None
        check(log, written[:2])
        log.abandon()


def test_segments_behind_damage_are_taken_away(tmp_path: Path) -> None:
    written = write_log(tmp_path / "log", batches=40)
    log = open_log(tmp_path / "log", clean_shutdown=True)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    assert len(bases) > 3
    first = (tmp_path / "log" / f"{bases[0]:020d}.log").stat().st_size
    path = tmp_path / "log" / f"{bases[1]:020d}.log"
    content = bytearray(path.read_bytes())
    content[CRC_POSITION] ^= 1
    path.write_bytes(content)
    log = open_log(tmp_path / "log")
    kept = [data for number, data in enumerate(written) if sum(map(len, written[: number + 1])) <= first]
    check(log, kept)
    assert sorted(int(path.stem) for path in log.directory.glob("*.log")) == bases[:2]


def test_segments_before_the_recovery_point_are_not_looked_at(tmp_path: Path) -> None:
    write_log(tmp_path / "log", batches=40)
    path = min((tmp_path / "log").glob("*.log"))
    content = bytearray(path.read_bytes())
    content[CRC_POSITION] ^= 1
    path.write_bytes(content)
    log = open_log(tmp_path / "log", recovery_point=55)
    assert [recovery.truncated_bytes for recovery in log.recoveries] == [0]
    assert log.recovery_point == 55


def test_only_segments_that_reach_beyond_the_recovery_point_are_recovered(tmp_path: Path) -> None:
    write_log(tmp_path / "log", batches=40)
    log = open_log(tmp_path / "log", clean_shutdown=True)
    bases = [segment.base_offset for segment in log.segments]
    log.close()
    for recovery_point, recovered in ((0, bases), (bases[1] - 1, bases), (bases[1], bases[1:]), (60, bases[-1:])):
        log = open_log(tmp_path / "log", recovery_point=recovery_point)
        assert [recovery.base_offset for recovery in log.recoveries] == recovered
        log.abandon()


def test_indexes_that_are_missing_or_cannot_be_right_are_made_again(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    written = write_log(directory, batches=40)
    indexes = sorted((*directory.glob("*.index"), *directory.glob("*.timeindex")))
    right = {path: path.read_bytes() for path in indexes}
    assert all(right.values())
    for number, path in enumerate(indexes):
        if number % 3 == 0:
            path.unlink()
        elif number % 3 == 1:
            path.write_bytes(right[path] + b"\0")
    log = open_log(directory, clean_shutdown=True)
    assert {path: path.read_bytes() for path in indexes} == right
    check(log, written)


def test_room_that_kafka_set_aside_in_an_index_is_cut_off(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    written = write_log(directory)
    sizes = {}
    for suffix in (".index", ".timeindex"):
        path = segment_path(directory, 0, suffix)
        sizes[path] = path.stat().st_size
        with path.open("r+b") as file:
            file.truncate(10 * 1024 * 1024 // 24 * 24)
    log = open_log(directory, clean_shutdown=True)
    assert log.offset_for_timestamp(0) is not None
    assert log.read(2, 1000) == b"".join(written[1:])
    check(log, written)
    log.close()
    assert sizes[segment_path(directory, 0, ".index")] > 0


def test_an_index_of_another_log_misleads_nobody(tmp_path: Path) -> None:
    written = write_log(tmp_path / "log")
    path = segment_path(tmp_path / "log", 0, ".index")
    between = (77, 200)
    of_others = (len(b"".join(written[:3])), len(b"".join(written[:4])))
    for first, second in (between, of_others):
        path.write_bytes(struct.pack(">iiii", 1, first, 3, second))
        log = open_log(tmp_path / "log", clean_shutdown=True)
        assert whole_log(log) == written
        assert [log.read(offset, 1) for offset in (0, 1, 3)] == [written[0], written[1], written[2]]
        log.abandon()


def test_a_bare_directory_with_only_a_log_is_opened(tmp_path: Path) -> None:
    written = write_log(tmp_path / "log", batches=6)
    directory = tmp_path / "bare"
    directory.mkdir()
    (directory / "00000000000000000000.log").write_bytes(b"".join(written))
    log = open_log(directory, clean_shutdown=True)
    assert [tuple(entry) for entry in log.epochs.entries] == [(0, 0), (1, 4)]
    check(log, written)


def test_a_log_that_starts_late_and_has_gaps_is_read_by_its_headers(tmp_path: Path) -> None:
    batches = [batch(b"a", b"b", base_offset=100), batch(b"c", base_offset=150), batch(b"d", b"e", base_offset=1000)]
    (tmp_path / "00000000000000000100.log").write_bytes(b"".join(batches))
    log = open_log(tmp_path)
    assert (log.log_start_offset, log.log_end_offset) == (100, 1002)
    assert whole_log(log) == batches
    assert log.read(102, 1) == log.read(150, 1) == batches[1]
    assert log.read(151, 1) == log.read(1001, 1) == batches[2]


def test_a_metadata_log_that_starts_late_and_has_gaps_is_read_by_its_headers(tmp_path: Path) -> None:
    batches = [batch(b"a", b"b", base_offset=4, epoch=1), batch(b"c", base_offset=50, epoch=1)]
    (tmp_path / "00000000000000000000.log").write_bytes(b"".join(batches))
    log = open_log(tmp_path, METADATA)
    assert (log.log_start_offset, log.log_end_offset) == (0, 51)
    assert whole_log(log) == batches
    assert log.read(0, 1) == batches[0]


def test_a_sound_batch_that_goes_backwards_in_a_metadata_log_is_not_cut_off(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(batch(b"a", b"b", base_offset=10) + batch(b"c", base_offset=5))
    before = path.read_bytes()
    with pytest.raises(CorruptLogError, match="offset 5 where 12 is expected"):
        open_log(tmp_path, METADATA)
    assert path.read_bytes() == before


def test_a_base_offset_that_goes_backwards_ends_the_log(tmp_path: Path) -> None:
    batches = [batch(b"a", b"b", base_offset=10), batch(b"c", base_offset=5)]
    (tmp_path / "00000000000000000000.log").write_bytes(b"".join(batches))
    log = open_log(tmp_path)
    assert whole_log(log) == batches[:1]
    assert log.recoveries[0].reason == "offset 5 comes after 11"


def test_messages_of_old_kafka_are_refused_and_not_cut_off(tmp_path: Path) -> None:
    body = struct.pack(">bbqi", 1, 0, 1000, -1) + struct.pack(">i", 1) + b"x"
    message = struct.pack(">qiI", 0, len(body) + 4, zlib.crc32(body)) + body
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(message)
    with pytest.raises(StorageError, match=r"Kafka version before 4\.0"):
        open_log(tmp_path)
    assert path.read_bytes() == message


def test_epochs_follow_the_batches_when_a_truncation_did_not_reach_the_disk(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"a"), 1)
    log.append_as_leader(batch(b"b"), 3)
    log.append_as_leader(batch(b"c"), 3)
    path = tmp_path / "00000000000000000000.log"
    content = path.read_bytes()
    log.truncate_to(2)
    log.append_as_leader(batch(b"d"), 5)
    log.abandon()
    path.write_bytes(content)  # as if the system had lost what came last
    log = open_log(tmp_path)
    assert [tuple(entry) for entry in log.epochs.entries] == [(1, 0), (3, 1)]
    log.append_as_leader(batch(b"e"), 6)
    assert [tuple(entry) for entry in open_log(tmp_path).epochs.entries] == [(1, 0), (3, 1), (6, 3)]


def test_a_deletion_that_was_cut_short_is_finished(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    written = write_log(directory, batches=40)
    last = last_segment(directory)
    for name in ("00000000000000009999.log.deleted", "00000000000000009999.index", "00000000000000009999.timeindex"):
        (directory / name).write_bytes(b"12345678" * 3)
    snapshot = directory / "00000000000000000001-0000000001.checkpoint.deleted"
    snapshot.write_bytes(b"")
    check(open_log(directory), written)
    assert last_segment(directory) == last
    assert not list(directory.glob("*9999*"))
    assert snapshot.exists()


def test_a_replacement_of_segments_is_finished_when_all_new_ones_were_named(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200, index_interval_bytes=100))
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    written = whole_log(log)
    log.close()
    assert len(list(tmp_path.glob("*.log"))) == 6
    # As a compaction does it: the first three become one, of which the middle record is gone.
    (tmp_path / "00000000000000000000.log.swap").write_bytes(written[0] + written[2])
    log = open_log(tmp_path, clean_shutdown=True)
    assert whole_log(log) == [written[0], written[2], *written[3:]]
    assert sorted(int(path.stem) for path in tmp_path.glob("*.log")) == [0, 3, 4, 5]
    assert not list(tmp_path.glob("*.swap"))


def test_a_replacement_of_segments_is_undone_when_some_new_ones_were_not_named(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(segment_bytes=200, index_interval_bytes=100))
    for number in range(4):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    written = whole_log(log)
    log.close()
    times = (tmp_path / "00000000000000000000.timeindex").read_bytes()
    (tmp_path / "00000000000000000000.log.cleaned").write_bytes(written[0])
    (tmp_path / "00000000000000000000.timeindex.swap").write_bytes(bytes(12))
    (tmp_path / "00000000000000000002.log.swap").write_bytes(written[3])
    log = open_log(tmp_path, clean_shutdown=True)
    assert whole_log(log) == written
    assert (tmp_path / "00000000000000000000.timeindex").read_bytes() == times
    assert not [path for path in tmp_path.iterdir() if path.suffix in (".swap", ".cleaned")]


def test_a_log_that_ends_before_its_start_offset_begins_anew_there(tmp_path: Path) -> None:
    write_log(tmp_path / "log")
    log = open_log(tmp_path / "log", clean_shutdown=True, log_start_offset=500)
    assert (log.log_start_offset, log.log_end_offset, log.size_in_bytes) == (500, 500, 0)
    assert log.epochs.entries == ()


def test_a_torn_tail_of_a_metadata_log_is_cut_off(tmp_path: Path) -> None:
    written = write_log(tmp_path / "whole", METADATA, batches=4)
    content = b"".join(written)
    for size in range(len(content) - len(written[-1]), len(content)):
        directory = tmp_path / f"cut-{size}"
        directory.mkdir()
        (directory / "00000000000000000000.log").write_bytes(content[:size])
        log = open_log(directory, METADATA)
        assert whole_log(log) == written[:-1]
        log.abandon()


def test_damage_inside_a_metadata_log_stops_and_changes_nothing(tmp_path: Path) -> None:
    written = write_log(tmp_path / "whole", METADATA, batches=4)
    content = b"".join(written)
    start = len(written[0])
    for position in (*range(12), *range(16, len(written[1]))):  # everything but the epoch, which nothing protects
        damaged = bytearray(content)
        damaged[start + position] ^= 0x41
        directory = tmp_path / f"damaged-{position}"
        directory.mkdir()
        path = directory / "00000000000000000000.log"
        path.write_bytes(damaged)
        with pytest.raises(CorruptLogError, match="intact batches follow"):
            open_log(directory, METADATA)
        assert path.read_bytes() == damaged


def test_a_sector_of_a_metadata_log_that_a_loss_of_power_has_kept_from_being_written_ends_it(tmp_path: Path) -> None:
    config = replace(METADATA, segment_bytes=1 << 20)
    written = write_log(tmp_path / "whole", config, batches=40)
    content = b"".join(written)
    starts = [sum(map(len, written[:number])) for number in range(len(written))]
    path = tmp_path / "log" / "00000000000000000000.log"
    lost = 0
    for flushed in range(1, len(written), 3):
        for sector in range(starts[flushed] // 512, len(content) // 512):
            begin, end = max(starts[flushed], sector * 512), min((sector + 1) * 512, len(content))
            damaged = content[:begin] + bytes(end - begin) + content[end:]
            changed = next((i for i, (was, now) in enumerate(zip(content, damaged, strict=True)) if was != now), None)
            assert changed is not None
            kept = sum(start + len(data) <= changed for start, data in zip(starts, written, strict=True))
            shutil.rmtree(path.parent, ignore_errors=True)
            path.parent.mkdir()
            path.write_bytes(damaged)
            log = open_log(path.parent, config)
            assert whole_log(log) == written[:kept]
            log.abandon()
            if starts[-1] >= end:  # what is known to be flushed is not given up
                lost += 1
                path.write_bytes(damaged)
                for suffix in (".index", ".timeindex"):
                    segment_path(path.parent, 0, suffix).unlink(missing_ok=True)
                with pytest.raises(CorruptLogError, match="intact batches follow"):
                    open_log(path.parent, config, recovery_point=60)
    assert lost > 20


def test_damage_at_the_end_of_a_segment_of_a_metadata_log_stops_if_another_follows(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    write_log(directory, METADATA, batches=40)
    path = min(directory.glob("*.log"))
    with path.open("r+b") as file:
        file.truncate(path.stat().st_size - 1)
    with pytest.raises(CorruptLogError, match="intact batches follow"):
        open_log(directory, METADATA)


def test_a_segment_missing_in_a_metadata_log_stops(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    write_log(directory, METADATA, batches=40)
    sorted(directory.glob("*.log"))[1].unlink()
    with pytest.raises(CorruptLogError, match="the segment before it ends at"):
        open_log(directory, METADATA)


def test_recovery_of_a_metadata_log_may_begin_at_a_flushed_offset(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    config = LogConfig(index_interval_bytes=100, metadata=True)
    written = write_log(directory, config, batches=40)
    right = {path: path.read_bytes() for path in directory.iterdir()}
    path = last_segment(directory)
    content = bytearray(path.read_bytes())
    content[CRC_POSITION] ^= 1  # which a scan from the beginning would see
    path.write_bytes(content)
    right[path] = bytes(content)
    log = open_log(directory, config, recovery_point=50)
    assert log.log_end_offset == 60
    log.close()
    assert {path: path.read_bytes() for path in directory.iterdir()} == right
    with pytest.raises(CorruptLogError):
        open_log(directory, config)
    for suffix in (".index", ".timeindex"):
        segment_path(directory, 0, suffix).unlink()
    path.write_bytes(b"".join(written))
    open_log(directory, config, recovery_point=50).close()
    right[path] = b"".join(written)
    assert {path: path.read_bytes() for path in directory.iterdir()} == right


def test_what_was_recovered_is_flushed_when_asked_for(tmp_path: Path, flushed: list[str]) -> None:
    write_log(tmp_path / "log")
    log = open_log(tmp_path / "log")
    assert log.recovery_point == 0
    del flushed[:]
    log.flush()
    names = ["log", tmp_path.name]  # whoever created the files may not have flushed their names
    assert flushed == ["00000000000000000000.log", "00000000000000000007.snapshot", *names]
    assert log.recovery_point == log.log_end_offset


def test_a_recovered_log_is_the_same_when_recovered_again(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    write_log(directory, batches=40)
    before = {path: path.read_bytes() for path in directory.iterdir()}
    Log.open(directory, SMALL, clock=Clock()).abandon()
    assert {path: path.read_bytes() for path in directory.iterdir()} == before
