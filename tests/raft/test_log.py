"""The core's view of a log, and the log in memory."""

from __future__ import annotations

import pytest

from barnabas.batches import Record, build_batch
from barnabas.raft.log import EpochStart, LogView, MemoryLog, OffsetAndEpoch, Validity


def view() -> LogView:
    """Epoch 2 from 0, epoch 4 from 10, epoch 5 from 15, end 20."""
    return LogView(epochs=[EpochStart(2, 0), EpochStart(4, 10), EpochStart(5, 15)], end_offset=20)


def trimmed() -> LogView:
    found = view()
    found.snapshot_id = OffsetAndEpoch(12, 4)
    found.trim(OffsetAndEpoch(12, 4))
    return found


@pytest.mark.parametrize(
    ("epoch", "end"), [(0, (0, 0)), (1, (0, 0)), (2, (10, 2)), (3, (10, 2)), (4, (15, 4)), (5, (20, 5)), (9, (20, 5))]
)
def test_an_epoch_ends_where_the_next_begins(epoch: int, end: tuple[int, int]) -> None:
    assert view().end_of_epoch(epoch) == end


@pytest.mark.parametrize(
    ("offset", "epoch", "expected"),
    [
        (0, 0, (Validity.VALID, (0, 0))),
        (5, 2, (Validity.VALID, (5, 2))),
        (10, 2, (Validity.VALID, (10, 2))),
        (20, 5, (Validity.VALID, (20, 5))),
        (11, 2, (Validity.DIVERGING, (10, 2))),
        (12, 3, (Validity.DIVERGING, (10, 2))),
        (21, 5, (Validity.DIVERGING, (20, 5))),
        (5, 7, (Validity.DIVERGING, (20, 5))),
        (3, 0, (Validity.DIVERGING, (0, 0))),
    ],
)
def test_a_replica_goes_on_where_logs_agree(
    offset: int, epoch: int, expected: tuple[Validity, tuple[int, int]]
) -> None:
    assert view().validate(offset, epoch) == expected


@pytest.mark.parametrize(
    ("offset", "epoch", "validity"),
    [
        (11, 4, Validity.SNAPSHOT),
        (12, 2, Validity.SNAPSHOT),
        (18, 2, Validity.SNAPSHOT),
        (0, 0, Validity.SNAPSHOT),
        (12, 4, Validity.VALID),
        (15, 4, Validity.VALID),
        (16, 4, Validity.DIVERGING),
    ],
)
def test_who_is_behind_the_start_needs_the_snapshot(offset: int, epoch: int, validity: Validity) -> None:
    assert trimmed().validate(offset, epoch)[0] is validity


@pytest.mark.parametrize(
    ("diverging", "offset"), [((10, 2), 10), ((7, 2), 7), ((12, 3), 10), ((12, 4), 12), ((30, 4), 15), ((3, 1), 0)]
)
def test_a_log_is_cut_where_it_parts_from_the_leaders(diverging: tuple[int, int], offset: int) -> None:
    assert view().truncation_offset(OffsetAndEpoch(*diverging)) == offset


def test_a_view_follows_appends_and_truncations() -> None:
    log = view()
    log.append(5, 22)
    log.append(8, 25)
    assert log.end == (25, 8)
    log.truncate(22)
    assert log.end == (22, 5)
    log.truncate(12)
    assert (log.end, log.flushed_offset) == ((12, 4), 12)
    log.truncate(0)
    assert log.end == (0, 0)
    log.replace_by(OffsetAndEpoch(40, 9))
    assert (log.start, log.end, log.flushed_offset) == ((40, 9), (40, 9), 40)
    log.append(9, 41)
    assert log.end_of_epoch(9) == (41, 9)


def test_a_trimmed_view_keeps_the_epochs_that_are_left() -> None:
    log = trimmed()
    assert (log.start, log.end) == ((12, 4), (20, 5))
    assert log.end_of_epoch(4) == (15, 4)
    log.trim(OffsetAndEpoch(20, 5))
    assert log.end == (20, 5)


def batch(offset: int, count: int = 1, epoch: int = 1) -> bytes:
    values = [Record(0, 0, None, b"v" * 100)] * count
    return build_batch(values, base_offset=offset, partition_leader_epoch=epoch)


def test_a_memory_log_reads_whole_batches() -> None:
    log = MemoryLog()
    log.append(batch(0, 2) + batch(2, 3) + batch(5, 1, 2))
    assert (log.end_offset, log.epochs()) == (6, [EpochStart(1, 0), EpochStart(2, 5)])
    assert log.read(0, 1) == batch(0, 2), "at least one"
    assert log.read(3, 10_000) == batch(2, 3) + batch(5, 1, 2), "from the batch that has the offset"
    assert log.read(0, 10_000, 5) == batch(0, 2) + batch(2, 3)
    assert log.read(6, 10_000) == b""
    with pytest.raises(ValueError, match="does not continue the log"):
        log.append(batch(7))


def test_a_memory_log_loses_what_was_not_flushed() -> None:
    log = MemoryLog()
    log.append(batch(0, 2))
    log.flush()
    log.append(batch(2) + batch(3))
    log.crash(lambda least, most: 3)
    assert log.end_offset == 3
    log.append(batch(3))
    log.crash()
    assert log.end_offset == 3, "what survived a crash is on disk"
    log.append(batch(3))
    log.truncate(2)
    log.append(batch(2, 5, 4))
    log.crash()
    assert log.end_offset == 2


def test_a_memory_log_is_replaced_by_a_snapshot() -> None:
    log = MemoryLog()
    log.append(batch(0, 2))
    for snapshot_id in (OffsetAndEpoch(1, 1), OffsetAndEpoch(9, 3)):
        writer = log.create_snapshot(snapshot_id)
        writer.append(b"data")
        assert log.open_snapshot(snapshot_id) is None, "not before it is frozen"
        writer.freeze()
    log.replace_by_snapshot(OffsetAndEpoch(9, 3))
    assert (log.start_offset, log.end_offset, log.epochs()) == (9, 9, [])
    assert log.snapshot_ids() == [OffsetAndEpoch(9, 3)]
    reader = log.open_snapshot(OffsetAndEpoch(9, 3))
    assert reader is not None
    assert (reader.size_in_bytes, reader.read(1, 2)) == (4, b"at")
