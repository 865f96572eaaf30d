"""Logs that are only looked at: what is broken is put in order in memory, and not a byte of the directory changes."""

from __future__ import annotations

import random
import shutil
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from barnabas.batches import decode_records
from barnabas.batches.format import MAX_INT64
from barnabas.storage import Log, LogConfig, StorageError
from tests.storage import golden
from tests.storage.looking import look, seen, state
from tests.storage.made import NOW_MS, Clock, batch, open_log, produced, whole_log

CONFIG = LogConfig(
    segment_bytes=1500,
    index_interval_bytes=150,
    transaction_partition_verification_enable=False,
    producer_id_expiration_ms=MAX_INT64,
)


def write(directory: Path, seed: int = 1, appends: int = 60) -> list[bytes]:
    """A log that was not closed, of several segments, with transactions that ended and one that did not."""
    chance = random.Random(seed)
    log = open_log(directory, CONFIG)
    for number in range(appends):
        producer_id = chance.randint(1, 4)
        known = log.producers.get(producer_id)
        if known is not None and known.current_txn_first_offset >= 0 and chance.random() < 0.4:
            log.append_marker(
                producer_id=producer_id,
                producer_epoch=0,
                commit=chance.random() < 0.5,
                coordinator_epoch=0,
                leader_epoch=number // 20,
                now_ms=NOW_MS + number,
                transaction_version=1,
            )
        else:
            values = [b"%d" % number * chance.randint(1, 30) for _ in range(chance.randint(1, 3))]
            sequence = 0 if known is None else known.last_sequence + 1
            stamp = NOW_MS + chance.randint(0, 1000)
            data = produced(producer_id, sequence, *values, transactional=producer_id % 2 == 1, timestamp=stamp)
            log.append_as_leader(data, number // 20)
    assert len(log.segments) > 3
    batches = whole_log(log)
    log.abandon()
    return batches


def last(directory: Path, suffix: str) -> Path:
    return max(directory.glob(f"*{suffix}"))


@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_every_golden_log_is_seen_as_if_it_were_ours(tmp_path: Path, clean_shutdown: bool) -> None:
    node = golden.extract_node(tmp_path)
    before = state(node)
    expected = golden.data_batches()
    count = 0
    for directory in golden.log_directories(node):
        if directory.name == "__cluster_metadata-0":
            continue
        config = replace(golden.DATA_CONFIG, producer_id_expiration_ms=MAX_INT64)
        start = golden.log_start_offset(directory)
        options = {"clean_shutdown": clean_shutdown, "log_start_offset": start}
        log = Log.open(directory, config, clock=Clock(), read_only=True, **options)  # type: ignore[arg-type]
        for segment in log.segments:
            lines = expected.get(f"{directory.parent.name}/{directory.name}/{segment.base_offset:020d}.log", [])
            records = [
                (record.offset, record.key, record.value)
                for position, header in segment.headers()
                for record in decode_records(segment.log.read(header.size_in_bytes, position), 0, header)
            ]
            theirs = [record for line in lines for record in line["records"]]
            assert records == [(each["offset"], _bytes(each["key"]), _bytes(each["value"])) for each in theirs]
            count += len(records)
        own = tmp_path / "own"
        shutil.copytree(directory, own)
        assert seen(log) == seen(Log.open(own, config, clock=Clock(), **options))  # type: ignore[arg-type]
        shutil.rmtree(own)
        log.close()
    assert count == sum(len(line["records"]) for lines in expected.values() for line in lines) > 500
    assert state(node) == before


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else bytes.fromhex(text)


@pytest.mark.parametrize("seed", range(4))
def test_a_log_that_was_not_closed_is_seen_whole(tmp_path: Path, seed: int) -> None:
    batches = write(tmp_path / "t-0", seed)
    assert look(tmp_path / "t-0", CONFIG)["batches"] == batches


def test_a_tail_that_is_torn_at_any_byte_ends_the_log(tmp_path: Path) -> None:
    batches = write(tmp_path / "t-0")
    path = last(tmp_path / "t-0", ".log")
    content = path.read_bytes()
    for size in range(0, len(content), 7):
        path.write_bytes(content[:size])
        found = look(tmp_path / "t-0", CONFIG, clean_shutdown=size % 2 == 0)["batches"]
        assert found == batches[: len(found)]
        assert len(b"".join(found)) >= len(b"".join(batches)) - len(content) + size - max(map(len, batches))


def test_damage_in_what_was_not_flushed_ends_the_log_there(tmp_path: Path) -> None:
    batches = write(tmp_path / "t-0")
    first = min((tmp_path / "t-0").glob("*.log"))
    content = bytearray(first.read_bytes())
    content[len(content) // 2] ^= 1
    first.write_bytes(content)
    found = look(tmp_path / "t-0", CONFIG)["batches"]
    assert 0 < len(found) < len(batches) and found == batches[: len(found)]


def empty(path: Path) -> None:
    path.write_bytes(b"")


def preallocate(path: Path) -> None:
    """As Kafka leaves the indexes of the active segment when it is killed."""
    path.write_bytes(path.read_bytes() + bytes(1200))


def zeros(path: Path) -> None:
    path.write_bytes(bytes(path.stat().st_size))


def garbage(path: Path) -> None:
    path.write_bytes(random.Random(1).randbytes(path.stat().st_size))


def odd(path: Path) -> None:
    path.write_bytes(path.read_bytes() + b"x")


@pytest.mark.parametrize("damage", [Path.unlink, empty, preallocate, zeros, garbage, odd])
@pytest.mark.parametrize("suffix", [".index", ".timeindex"])
@pytest.mark.parametrize("clean_shutdown", [True, False])
def test_indexes_that_are_missing_or_wrong_are_worked_around(
    tmp_path: Path, damage: Callable[[Path], None], suffix: str, clean_shutdown: bool
) -> None:
    write(tmp_path / "t-0")
    open_log(tmp_path / "t-0", CONFIG).close()
    directory = tmp_path / "t-0"
    expected = look(directory, CONFIG, clean_shutdown=clean_shutdown)
    for path in directory.glob(f"*{suffix}"):
        damage(path)
    before = state(directory)
    log = Log.open(directory, CONFIG, clock=Clock(), clean_shutdown=clean_shutdown, read_only=True)
    assert seen(log) == expected
    assert state(directory) == before


@pytest.mark.parametrize("suffix", [".txnindex", ".snapshot", "leader-epoch-checkpoint"])
@pytest.mark.parametrize("damage", [Path.unlink, empty, garbage])
def test_what_else_is_lost_is_made_again_in_memory(tmp_path: Path, damage: Callable[[Path], None], suffix: str) -> None:
    write(tmp_path / "t-0")
    directory = tmp_path / "t-0"
    expected = look(directory, CONFIG)
    for path in directory.glob(f"*{suffix}"):
        damage(path)
    before = state(directory)
    assert seen(Log.open(directory, CONFIG, clock=Clock(), read_only=True)) == expected
    assert state(directory) == before


def test_leftovers_of_a_deletion_and_of_a_compaction_that_was_not_decided_are_passed_over(tmp_path: Path) -> None:
    batches = write(tmp_path / "t-0")
    directory = tmp_path / "t-0"
    first = min(directory.glob("*.log"))
    for name in ("00000000000000009999.log.deleted", "00000000000000009999.index", f"{first.name}.cleaned"):
        (directory / name).write_bytes(first.read_bytes()[:100])
    (directory / "00000000000000000003.log.swap").write_bytes(b"behind what is cleaned")
    assert look(directory, CONFIG)["batches"] == batches


def test_segments_that_a_compaction_had_decided_on_are_seen_in_their_place(tmp_path: Path) -> None:
    log = open_log(tmp_path / "t-0", LogConfig(segment_bytes=200, index_interval_bytes=100))
    for number in range(6):
        log.append_as_leader(batch(b"%d" % number * 50), 0)
    written = whole_log(log)
    log.close()
    directory = tmp_path / "t-0"
    (directory / "00000000000000000000.log.swap").write_bytes(written[0] + written[2])
    (directory / "00000000000000000001.log").rename(directory / "00000000000000000001.log.deleted")
    for clean_shutdown in (True, False):
        found = look(directory, log.config, clean_shutdown=clean_shutdown)
        assert found["batches"] == [written[0], written[2], *written[3:]]


def test_the_start_of_the_log_is_that_of_the_checkpoint_unless_nothing_is_left(tmp_path: Path) -> None:
    write(tmp_path / "t-0")
    assert look(tmp_path / "t-0", CONFIG, log_start_offset=30)["offsets"][0] == 30
    log = Log.open(tmp_path / "t-0", CONFIG, clock=Clock(), read_only=True, log_start_offset=10**6)
    assert log.log_start_offset == 0 < log.log_end_offset


def test_an_empty_directory_is_an_empty_log(tmp_path: Path) -> None:
    (tmp_path / "t-0").mkdir()
    found = look(tmp_path / "t-0", CONFIG)
    assert (found["offsets"], found["batches"]) == ((0, 0), [])


def test_nothing_can_be_written(tmp_path: Path) -> None:
    write(tmp_path / "t-0")
    before = state(tmp_path)
    log = Log.open(tmp_path / "t-0", CONFIG, clock=Clock(), read_only=True)
    writes: list[Callable[[], object]] = [
        lambda: log.append_as_leader(batch(b"x"), 9),
        lambda: log.append_as_follower(batch(b"x", base_offset=log.log_end_offset)),
        lambda: log.assign_epoch(9, log.log_end_offset),
        log.roll,
        log.flush,
        lambda: log.truncate_to(3),
        lambda: log.truncate_fully_and_start_at(3),
        lambda: log.advance_log_start_offset(3),
        lambda: log.delete_by_retention(2**62, log.log_end_offset),
        lambda: log.rename(tmp_path / "other"),
    ]
    for write_something in writes:
        with pytest.raises(StorageError, match="opened read-only"):
            write_something()
    log.close()
    assert state(tmp_path) == before
