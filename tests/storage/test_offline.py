"""Reading files that somebody else owns: damage is a value, and nothing changes."""

from __future__ import annotations

from pathlib import Path

from barnabas.batches import decode_records
from barnabas.batches.format import CRC_POSITION
from barnabas.storage.offline import (
    Damage,
    OfflineBatch,
    check_indexes,
    read_batches,
    read_offset_index,
    read_partition,
    read_time_index,
)
from barnabas.storage.segment import segment_path
from tests.storage.made import batch, open_log, whole_log


def written_log(directory: Path, batches: int = 30) -> list[bytes]:
    log = open_log(directory)
    for number in range(batches):
        log.append_as_leader(batch(*[b"%d" % number * 20] * 2, timestamps=(number, number)), 0)
    stored = whole_log(log)
    log.close()
    return stored


def test_batches_come_with_their_bytes_and_positions(tmp_path: Path) -> None:
    stored = written_log(tmp_path, 4)
    path = segment_path(tmp_path, 0, ".log")
    items = list(read_batches(path))
    assert [bytes(item.data) for item in items if isinstance(item, OfflineBatch)] == stored
    assert [item.position for item in items] == [sum(map(len, stored[:number])) for number in range(4)]
    last = items[-1]
    assert isinstance(last, OfflineBatch)
    assert [record.offset for record in decode_records(last.data, 0, last.header)] == [6, 7]
    assert next(read_batches(path, items[2].position)).position == items[2].position


def test_a_wrong_checksum_is_said_and_the_walk_goes_on(tmp_path: Path) -> None:
    stored = written_log(tmp_path, 3)
    path = segment_path(tmp_path, 0, ".log")
    damaged = bytearray(path.read_bytes())
    damaged[len(stored[0]) + CRC_POSITION] ^= 1
    path.write_bytes(damaged)
    errors = [item.error for item in read_batches(path) if isinstance(item, OfflineBatch)]
    assert errors[0] is errors[2] is None
    assert errors[1] is not None
    assert "crc" in errors[1]


def test_a_file_cut_at_any_byte_ends_with_what_is_left(tmp_path: Path) -> None:
    stored = written_log(tmp_path, 2)
    path = segment_path(tmp_path, 0, ".log")
    for size in range(len(stored[0]) + 1, len(stored[0]) + len(stored[1])):
        path.write_bytes((stored[0] + stored[1])[:size])
        items = list(read_batches(path))
        assert len(items) == 2
        damage = items[1]
        assert isinstance(damage, Damage)
        assert (damage.position, damage.size, damage.truncated) == (len(stored[0]), size - len(stored[0]), True)
        assert path.stat().st_size == size


def test_what_is_no_batch_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "00000000000000000000.log"
    path.write_bytes(bytes(200))
    (damage,) = read_batches(path)
    assert isinstance(damage, Damage)
    assert (damage.position, damage.size, damage.truncated) == (0, 200, False)


def test_a_partition_is_read_over_its_segments(tmp_path: Path) -> None:
    stored = written_log(tmp_path)
    assert len(list(tmp_path.glob("*.log"))) > 3
    before = {path: path.read_bytes() for path in tmp_path.iterdir()}
    for start in range(0, 62, 3):
        for end in (None, 0, 5, 30, 61):
            items = list(read_partition(tmp_path, start, end))
            wanted = [number for number in range(30) if 2 * number + 1 >= start and (end is None or 2 * number < end)]
            assert [bytes(item.data) for item in items if isinstance(item, OfflineBatch)] == [stored[n] for n in wanted]
    for path in tmp_path.glob("*.index"):
        path.write_bytes(b"\x01\x02\x03\x04\x05\x06\x07\x08")
        before[path] = path.read_bytes()
    assert len(list(read_partition(tmp_path, 21))) == 20
    assert {path: path.read_bytes() for path in tmp_path.iterdir()} == before


def test_indexes_are_read_without_the_room_behind_them(tmp_path: Path) -> None:
    written_log(tmp_path)
    for suffix, read in ((".index", read_offset_index), (".timeindex", read_time_index)):
        path = segment_path(tmp_path, 0, suffix)
        entries = list(read(path))
        assert len(entries) > 1
        content = path.read_bytes() + bytes(2400)
        path.write_bytes(content)
        assert list(read(path)) == entries
        assert path.read_bytes() == content


def test_an_index_that_lies_is_found_out(tmp_path: Path) -> None:
    written_log(tmp_path)
    assert list(check_indexes(tmp_path, 0)) == []
    for suffix in (".index", ".timeindex"):
        path = segment_path(tmp_path, 0, suffix)
        right = path.read_bytes()
        for position in range(len(right)):
            wrong = bytearray(right)
            wrong[position] ^= 0x21
            path.write_bytes(wrong)
            assert list(check_indexes(tmp_path, 0))
        entry = len(right) // 2
        path.write_bytes(right[entry:] + right[:entry])
        assert list(check_indexes(tmp_path, 0))
        path.write_bytes(right)
