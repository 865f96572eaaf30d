"""Snapshots of producers: what is written, what is read again, and what is done without them."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.batches import crc32c
from barnabas.storage.producer_snapshots import (
    CorruptSnapshotError,
    ProducerSnapshots,
    decode_producers,
    encode_producers,
)
from barnabas.storage.producers import BatchMetadata, Producers, ProducerState
from barnabas.wire.codec import reader, writer
from barnabas.wire.records.storage import ProducerSnapshot
from tests.storage.made import NOW_MS, open_log, produced

STATES = [
    ProducerState(1000, 3, -1, 1_700_000_000_000, -1, (BatchMetadata(41, 99, 9, 1_700_000_000_000),)),
    ProducerState(7, 0, 12, 1_700_000_000_001, 55, (BatchMetadata(2**31 - 1, 60, 0, 1_700_000_000_001),)),
    ProducerState(2**40 + 1, 2**15 - 1, 3, -1, -1),
]


def test_a_snapshot_is_what_the_schema_says() -> None:
    content = encode_producers(STATES)
    assert content[:2] == b"\x00\x01"
    snapshot, end = reader(ProducerSnapshot, 1)(content, 2)
    assert end == len(content)
    assert snapshot.crc == crc32c(content[6:])
    pieces = [b"\x00\x01"]
    writer(ProducerSnapshot, 1)(snapshot, pieces.append)
    assert b"".join(pieces) == content
    entries = {entry.producer_id: entry for entry in snapshot.producer_entries}
    assert (entries[1000].last_sequence, entries[1000].last_offset, entries[1000].offset_delta) == (41, 99, 9)
    assert (entries[7].coordinator_epoch, entries[7].current_txn_first_offset) == (12, 55)
    assert (entries[2**40 + 1].last_sequence, entries[2**40 + 1].last_offset) == (-1, -1)


def test_what_is_read_is_what_was_written() -> None:
    assert decode_producers(encode_producers(STATES)) == STATES
    assert decode_producers(encode_producers([])) == []


def test_only_the_last_batch_is_kept() -> None:
    batches = tuple(BatchMetadata(number, number, 0, number) for number in range(5))
    assert decode_producers(encode_producers([ProducerState(1, 0, -1, 4, -1, batches)]))[0].batches == batches[4:]


def test_a_damaged_snapshot_is_none(tmp_path: Path) -> None:
    content = encode_producers(STATES)
    for size in range(len(content)):
        with pytest.raises(CorruptSnapshotError):
            decode_producers(content[:size])
    for position in range(len(content)):
        damaged = bytearray(content)
        damaged[position] ^= 0x40
        with pytest.raises(CorruptSnapshotError):
            decode_producers(bytes(damaged))
    with pytest.raises(CorruptSnapshotError):
        decode_producers(content + b"\0")


def test_a_count_that_does_not_fit_is_damage_even_if_the_checksum_fits() -> None:
    entries = (2**31 - 1).to_bytes(4, "big")
    with pytest.raises(CorruptSnapshotError):
        decode_producers(b"\0\1" + crc32c(entries).to_bytes(4, "big") + entries)


def test_a_snapshot_is_taken_once_at_an_offset(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)
    producers = Producers(STATES)
    assert not snapshots.take(producers, 5, log_start_offset=5)
    assert snapshots.take(producers, 6, log_start_offset=5)
    assert not snapshots.take(producers, 6, log_start_offset=5)
    assert snapshots.take(producers, 8, log_start_offset=5)
    assert not snapshots.take(producers, 7, log_start_offset=5)
    assert snapshots.offsets() == [6, 8]


def test_strays_are_deleted_but_for_the_one_at_the_end(tmp_path: Path) -> None:
    snapshots = ProducerSnapshots(tmp_path)
    for offset in (5, 10, 15, 20, 22, 25):
        snapshots.take(Producers(), offset, 0)
    (tmp_path / "00000000000000000005-0000000001.checkpoint").touch()
    snapshots.delete_strays([0, 10, 20])
    assert snapshots.offsets() == [10, 20, 25]
    snapshots.delete_strays([0, 10, 20, 30])
    assert snapshots.offsets() == [10, 20]


def log_of_three_producers(directory: Path) -> list[tuple[ProducerState, ...]]:
    """A closed log with segments at 0, 2 and 4, and its states at the ends of them."""
    log = open_log(directory)
    states = []
    for producer_id in (1, 2, 3):
        log.append_as_leader(produced(producer_id, 0), 0)
        log.append_as_leader(produced(producer_id, 1), 0)
        states.append(log.active_producers())
        if producer_id < 3:
            log.roll()
    log.close()
    assert ProducerSnapshots(directory).offsets() == [2, 4, 6]
    return states


def last_batches(states: tuple[ProducerState, ...]) -> set[ProducerState]:
    return {state._replace(batches=state.batches[-1:]) for state in states}


def test_the_newest_snapshot_that_is_whole_is_read_and_the_log_behind_it(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    states = log_of_three_producers(directory)
    newest_first = [6, 4, 2]
    for damaged in range(4):
        for offset in newest_first[:damaged]:
            (directory / f"{offset:020d}.snapshot").write_bytes(b"damaged")
        log = open_log(directory, clean_shutdown=True)
        assert last_batches(log.active_producers()) == last_batches(states[-1])
        # What was read from the log is remembered whole.
        read = {state for state in log.active_producers() if len(state.batches) == 2}
        assert len(read) == damaged
        log.abandon()
        # Those are written again that a truncation of the last two segments would ask for.
        whole = [offset for offset in (2, 4, 6) if decodes(directory / f"{offset:020d}.snapshot")]
        assert whole == [2, 4, 6]


def decodes(path: Path) -> bool:
    try:
        decode_producers(path.read_bytes())
    except (CorruptSnapshotError, FileNotFoundError):
        return False
    return True


def test_a_snapshot_behind_the_end_of_the_log_is_not_believed(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log_of_three_producers(directory)
    (directory / "00000000000000000007.snapshot").write_bytes(encode_producers(STATES))
    log = open_log(directory, clean_shutdown=True)
    assert {state.producer_id for state in log.active_producers()} == {1, 2, 3}
    assert ProducerSnapshots(directory).offsets() == [2, 4, 6]


def test_snapshots_up_to_the_start_of_the_log_are_forgotten_with_their_producers(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log_of_three_producers(directory)
    (directory / "00000000000000000006.snapshot").unlink()
    log = open_log(directory, clean_shutdown=True, log_start_offset=4)
    assert [state.producer_id for state in log.active_producers()] == [3]
    assert ProducerSnapshots(directory).offsets() == [6]


def test_expired_producers_are_not_loaded(tmp_path: Path) -> None:
    directory = tmp_path / "log"
    log = open_log(directory)
    a_day_ago_ms = NOW_MS - 24 * 60 * 60 * 1000
    log.append_as_leader(produced(1, 0, timestamp=a_day_ago_ms), 0)
    log.append_as_leader(produced(2, 0, timestamp=a_day_ago_ms + 1), 0)
    log.close()
    for clean_shutdown in (True, False):
        log = open_log(directory, clean_shutdown=clean_shutdown)
        assert [state.producer_id for state in log.active_producers()] == [2]
        log.abandon()
