"""A log and its producers: duplicates, transactions, and what is known again after truncations, restarts and damage."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.batches import ControlType, TimestampType, decode_end_txn_marker, decode_records
from barnabas.storage import AbortedTxn, AppendInfo, AppendOrigin, Log, LogConfig, ProducerState, StorageError
from barnabas.storage.producers import BatchMetadata
from barnabas.storage.segment import segment_path
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.made import NOW_MS, SMALL, batch, open_log, produced, whole_log

# What a transaction needs before its first batch is for other tests.
CONFIG = LogConfig(segment_bytes=1000, index_interval_bytes=100, transaction_partition_verification_enable=False)


def send(log: Log, producer_id: int, sequence: int, *values: bytes, epoch: int = 0) -> AppendInfo:
    return log.append_as_leader(produced(producer_id, sequence, *values, epoch=epoch), 0)


def send_in_transaction(log: Log, producer_id: int, sequence: int, *values: bytes, epoch: int = 0) -> AppendInfo:
    data = produced(producer_id, sequence, *values, epoch=epoch, transactional=True)
    return log.append_as_leader(data, 0)


def end(log: Log, producer_id: int, *, commit: bool, epoch: int = 0, coordinator_epoch: int = 0) -> AppendInfo:
    return log.append_marker(
        producer_id=producer_id,
        producer_epoch=epoch,
        commit=commit,
        coordinator_epoch=coordinator_epoch,
        leader_epoch=0,
        now_ms=NOW_MS,
        transaction_version=1,
    )


def last_batches(log: Log) -> dict[int, ProducerState]:
    """What a snapshot keeps of each producer."""
    return {state.producer_id: state._replace(batches=state.batches[-1:]) for state in log.active_producers()}


def transactions(log: Log) -> list[AbortedTxn]:
    return [transaction for segment in log.segments for transaction in segment.txn_index.transactions()]


def snapshots(log: Log) -> list[int]:
    return sorted(int(path.stem) for path in log.directory.glob("*.snapshot"))


def test_a_duplicate_is_answered_with_its_offsets_and_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    log.append_as_leader(batch(b"other"), 0)
    first = send(log, 7, 0, b"a", b"b")
    send(log, 7, 2, b"c")
    written = whole_log(log)
    again = send(log, 7, 0, b"a", b"b")
    assert again == AppendInfo(1, 2, NOW_MS, 0, is_duplicate=True)
    assert (again.base_offset, again.last_offset) == (first.base_offset, first.last_offset)
    assert not first.is_duplicate
    assert whole_log(log) == written


def test_what_is_refused_is_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    written, states = whole_log(log), log.active_producers()
    with pytest.raises(KafkaError) as refused:
        send(log, 7, 5)
    assert refused.value.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert (whole_log(log), log.active_producers(), log.log_end_offset) == (written, states, 1)
    assert send(log, 7, 1).base_offset == 1


def test_a_batch_that_is_too_large_leaves_its_producer_as_it_was(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    with pytest.raises(KafkaError):
        send(log, 7, 0, b"x" * 2000)
    assert log.active_producers() == ()


def test_a_follower_takes_what_its_leader_took(tmp_path: Path) -> None:
    leader, follower = open_log(tmp_path / "leader", CONFIG), open_log(tmp_path / "follower", CONFIG)
    send(leader, 1, 0)
    send_in_transaction(leader, 2, 0)
    send_in_transaction(leader, 3, 0)
    end(leader, 2, commit=False, epoch=4)
    send_in_transaction(leader, 2, 0, epoch=4)
    end(leader, 3, commit=False)
    follower.append_as_follower(b"".join(whole_log(leader)))
    assert follower.active_producers() == leader.active_producers()
    assert transactions(follower) == transactions(leader) == [AbortedTxn(2, 1, 3, 2), AbortedTxn(3, 2, 5, 4)]
    assert follower.last_stable_offset(6) == leader.last_stable_offset(6) == 4


def test_a_marker_is_the_batch_that_kafka_writes(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    send_in_transaction(log, 7, 0)
    for commit, control_type in ((True, ControlType.COMMIT), (False, ControlType.ABORT)):
        info = end(log, 7, commit=commit, coordinator_epoch=5)
        ((header, data),) = list(log.batches(info.base_offset))
        assert (header.is_control, header.is_transactional, header.records_count) == (True, True, 1)
        assert (header.producer_id, header.producer_epoch, header.base_sequence) == (7, 0, -1)
        assert (header.max_timestamp, header.timestamp_type) == (NOW_MS, TimestampType.CREATE_TIME)
        assert decode_end_txn_marker(decode_records(data, 0, header)[0]) == (control_type, 5)


def test_a_marker_has_the_time_of_the_log_where_the_topic_says_so(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    log.append_marker(
        producer_id=7,
        producer_epoch=0,
        commit=True,
        coordinator_epoch=0,
        leader_epoch=0,
        now_ms=NOW_MS,
        transaction_version=2,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
    )
    ((header, _),) = list(log.batches())
    assert (header.max_timestamp, header.timestamp_type) == (NOW_MS, TimestampType.LOG_APPEND_TIME)
    log.abandon()
    assert open_log(tmp_path, CONFIG).recoveries[0].truncated_bytes == 0


def test_a_marker_of_a_fenced_coordinator_is_not_written(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    end(log, 7, commit=True, coordinator_epoch=5)
    with pytest.raises(KafkaError) as refused:
        end(log, 7, commit=True, coordinator_epoch=4)
    assert refused.value.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert log.log_end_offset == 1


# The last stable offset


def test_the_log_is_stable_up_to_the_first_transaction_that_has_not_ended(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    send(log, 1, 0)
    assert log.last_stable_offset(1) == 1
    send_in_transaction(log, 2, 0)
    send_in_transaction(log, 3, 0)
    assert log.last_stable_offset(1) == 1
    assert log.last_stable_offset(3) == 1
    end(log, 2, commit=True)
    # The marker at 3 is not replicated yet.
    assert log.last_stable_offset(3) == 1
    assert log.last_stable_offset(4) == 2
    end(log, 3, commit=False)
    assert log.last_stable_offset(5) == 5


def test_the_log_is_stable_before_its_start(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    send_in_transaction(log, 2, 0)
    send(log, 1, 0)
    send(log, 1, 1)
    log.advance_log_start_offset(2)
    assert log.last_stable_offset(3) == 2


def test_a_transaction_that_ended_before_the_start_of_the_log_is_forgotten(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    send_in_transaction(log, 2, 0)
    end(log, 2, commit=True)
    send(log, 1, 0)
    log.advance_log_start_offset(2)
    assert log.producers.first_unstable_offset() is None


# Aborted transactions


def aborting_log(directory: Path) -> tuple[Log, list[AbortedTxn]]:
    """A log of several segments with transactions that reach over them, and those that were aborted."""
    log = open_log(directory, CONFIG)
    aborted = []
    sequences = dict.fromkeys(range(1, 5), 0)
    first_offsets: dict[int, int] = {}
    for number in range(60):
        producer_id = number * 7 % 4 + 1
        if producer_id in first_offsets and number % 5 == 0:
            commit = number % 2 == 0
            info = end(log, producer_id, commit=commit)
            first_offset = first_offsets.pop(producer_id)
            if not commit:
                stable = min(first_offsets.values(), default=info.last_offset + 1)
                aborted.append(AbortedTxn(producer_id, first_offset, info.last_offset, stable))
        else:
            info = send_in_transaction(log, producer_id, sequences[producer_id], b"x" * 50, b"y")
            sequences[producer_id] += 2
            first_offsets.setdefault(producer_id, info.base_offset)
    assert len(log.segments) > 5
    assert len(aborted) > 3
    return log, aborted


def test_aborted_transactions_stand_in_the_segments_of_their_markers(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path)
    assert transactions(log) == aborted
    ends = [segment.base_offset for segment in log.segments[1:]] + [log.log_end_offset]
    for segment, next_offset in zip(log.segments, ends, strict=True):
        for transaction in segment.txn_index.transactions():
            assert segment.base_offset <= transaction.last_offset < next_offset


def test_a_fetch_gets_the_aborted_transactions_of_all_segments_that_concern_it(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path)
    for fetch_offset in range(log.log_end_offset):
        for upper_bound in (fetch_offset + 1, fetch_offset + 5, fetch_offset + 30, log.log_end_offset):
            assert log.aborted_transactions(fetch_offset, upper_bound) == [
                transaction
                for transaction in aborted
                if transaction.last_offset >= fetch_offset and transaction.first_offset < upper_bound
            ]


def test_the_upper_bound_of_a_fetch_lies_behind_its_batches(tmp_path: Path) -> None:
    log, _ = aborting_log(tmp_path)
    nearer = 0
    for fetch_offset in range(log.log_end_offset):
        for max_bytes in (1, 200, 400, 10_000):
            found = log.find_range(fetch_offset, max_bytes)
            assert found is not None
            headers = [header for header, _ in log.batches(fetch_offset)]
            data = found.read()
            last = fetch_offset
            for header in headers:
                last = header.last_offset
                data = data[header.size_in_bytes :]
                if not data:
                    break
            assert last < log.upper_bound_offset(found) <= log.log_end_offset
            nearer += log.upper_bound_offset(found) < log.log_end_offset
    assert nearer > 100


def test_the_index_goes_with_its_segment(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path)
    number = next(number for number, segment in enumerate(log.segments) if segment.txn_index.size)
    log.advance_log_start_offset(log.segments[number + 2].base_offset)
    log.delete_old_segments()
    kept = [transaction for transaction in aborted if transaction.last_offset >= log.log_start_offset]
    assert transactions(log) == kept
    assert list(tmp_path.glob("*.txnindex.deleted"))
    assert list(tmp_path.glob("*.snapshot.deleted"))
    log.delete_files()
    assert not list(tmp_path.glob("*.deleted"))
    assert len(list(tmp_path.glob("*.txnindex"))) == len([1 for segment in log.segments if segment.txn_index.size])


def test_an_index_that_cannot_be_written_takes_the_log_out_of_use(tmp_path: Path) -> None:
    log = open_log(tmp_path, CONFIG)
    send_in_transaction(log, 7, 0)
    (tmp_path / "00000000000000000000.txnindex").mkdir()
    with pytest.raises(StorageError):
        end(log, 7, commit=False)
    with pytest.raises(StorageError, match="cannot be written to"):
        send_in_transaction(log, 7, 1)
    # What was undecided stays so.
    assert log.last_stable_offset(log.log_end_offset) == 0


# Snapshots


def test_a_snapshot_is_taken_where_a_segment_begins_and_at_the_end(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(12):
        send(log, 7, number, b"x" * 100)
    bases = [segment.base_offset for segment in log.segments]
    assert len(bases) > 2
    assert snapshots(log) == bases[1:]
    log.close()
    assert snapshots(log) == [*bases[1:], 12]


def test_the_snapshot_of_a_new_segment_does_not_know_what_is_in_it(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    while len(log.segments) == 1:
        send(log, 7, log.log_end_offset, b"x" * 100)
    path = segment_path(tmp_path, log.segments[1].base_offset, ".snapshot")
    last_sequence = int.from_bytes(path.read_bytes()[20:24], "big")
    assert last_sequence == log.segments[1].base_offset - 1
    assert log.active_producers()[0].last_sequence == last_sequence + 1


def test_a_snapshot_is_durable_with_the_segment_before_it(tmp_path: Path, flushed: list[str]) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.roll()
    assert "00000000000000000001.snapshot" not in flushed
    log.flush(1)
    assert "00000000000000000001.snapshot" in flushed


def test_the_transaction_index_of_a_closed_segment_is_durable_with_it(tmp_path: Path, flushed: list[str]) -> None:
    log = open_log(tmp_path, CONFIG)
    send_in_transaction(log, 7, 0)
    end(log, 7, commit=False)
    log.flush()
    assert "00000000000000000000.txnindex" not in flushed  # it would be made again
    log.roll()
    log.flush()
    assert "00000000000000000000.txnindex" in flushed


def test_a_log_that_is_renamed_takes_its_snapshots_along(tmp_path: Path) -> None:
    log = open_log(tmp_path / "a")
    send(log, 7, 0)
    log.roll()
    log.rename(tmp_path / "b")
    log.flush()
    send(log, 7, 1)
    log.close()
    assert snapshots(log) == [1, 2]


# Truncation


def test_truncation_goes_back_to_what_was_known(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path / "log")
    known: dict[int, dict[int, ProducerState]] = {}
    copy = open_log(tmp_path / "copy", CONFIG)
    for data in whole_log(log):
        known[copy.log_end_offset] = last_batches(copy)
        copy.append_as_follower(data)
    for offset in sorted(known, reverse=True):
        log.truncate_to(offset)
        assert last_batches(log) == known[offset]
        assert transactions(log) == [transaction for transaction in aborted if transaction.last_offset < offset]
        assert all(snapshot <= offset for snapshot in snapshots(log))
        unstable = [state.current_txn_first_offset for state in known[offset].values()]
        assert log.last_stable_offset(offset) == min([first for first in unstable if first >= 0], default=offset)


def test_a_log_goes_on_after_a_truncation(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(5):
        send(log, 7, number)
    log.truncate_to(3)
    with pytest.raises(KafkaError):
        send(log, 7, 5)
    assert send(log, 7, 2).is_duplicate
    assert send(log, 7, 3).base_offset == 3


def test_a_log_that_is_emptied_knows_nobody(tmp_path: Path) -> None:
    log, _ = aborting_log(tmp_path)
    log.truncate_fully_and_start_at(1000)
    assert log.active_producers() == ()
    assert transactions(log) == []
    assert snapshots(log) == []
    assert log.last_stable_offset(1000) == 1000
    assert send(log, 1, 55).base_offset == 1000


def test_a_verification_survives_a_truncation(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    send(log, 7, 1)
    guard = log.maybe_start_transaction_verification(7, 1, 0, supports_epoch_bump=False)
    log.truncate_to(1)
    data = produced(7, 1, transactional=True)
    assert log.append_as_leader(data, 0, verification_guard=guard).base_offset == 1


# Restarts


@pytest.mark.parametrize("clean", [True, False])
def test_after_a_restart_all_is_as_before(tmp_path: Path, clean: bool) -> None:
    log, aborted = aborting_log(tmp_path)
    known, stable = last_batches(log), log.last_stable_offset(log.log_end_offset)
    if clean:
        log.close()
    else:
        log.abandon()
    again = open_log(tmp_path, CONFIG, clean_shutdown=clean)
    assert last_batches(again) == known
    assert transactions(again) == aborted
    assert again.last_stable_offset(again.log_end_offset) == stable
    assert end(again, 1, commit=False).base_offset == log.log_end_offset


def test_after_a_kill_five_batches_are_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(7):
        send(log, 7, number)
    known = log.active_producers()
    log.abandon()
    again = open_log(tmp_path)
    assert again.active_producers() == known
    assert [send(again, 7, number).base_offset for number in range(2, 7)] == [2, 3, 4, 5, 6]
    assert again.log_end_offset == 7


def test_after_a_clean_restart_the_last_batch_is_remembered(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(7):
        send(log, 7, number)
    log.close()
    again = open_log(tmp_path, clean_shutdown=True)
    assert again.active_producers()[0].batches == (BatchMetadata(6, 6, 0, NOW_MS),)
    assert send(again, 7, 6).is_duplicate
    assert send(again, 7, 7).base_offset == 7


@pytest.mark.parametrize("recovered", [True, False])
def test_indexes_that_are_lost_or_damaged_are_made_again(tmp_path: Path, recovered: bool) -> None:
    log, aborted = aborting_log(tmp_path)
    log.close()
    for path in tmp_path.glob("*.txnindex"):
        if recovered:
            path.unlink()  # which nobody can see, but what is recovered is made again
        else:
            path.write_bytes(path.read_bytes()[:-5])
    again = open_log(tmp_path, CONFIG, clean_shutdown=not recovered)
    assert transactions(again) == aborted
    assert last_batches(again) == last_batches(log)


def test_snapshots_that_are_lost_are_done_without(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path)
    log.close()
    for path in tmp_path.glob("*.snapshot"):
        path.unlink()
    for clean in (True, False):
        again = open_log(tmp_path, CONFIG, clean_shutdown=clean)
        assert last_batches(again) == last_batches(log)
        assert transactions(again) == aborted
        again.abandon()


def test_a_log_cut_at_any_byte_knows_those_whose_batches_are_left(tmp_path: Path) -> None:
    whole = open_log(tmp_path, CONFIG)
    states = [last_batches(whole)]
    aborted = [transactions(whole)]
    ends = [0]

    def note(info: AppendInfo) -> None:
        states.append(last_batches(whole))
        aborted.append(transactions(whole))
        ends.append(ends[-1] + info.size_in_bytes)

    note(send(whole, 1, 0))
    note(send_in_transaction(whole, 2, 0))
    note(send_in_transaction(whole, 3, 0))
    note(end(whole, 2, commit=False))
    note(send_in_transaction(whole, 2, 1))
    note(end(whole, 3, commit=False))
    note(end(whole, 2, commit=True))
    assert len(whole.segments) == 1
    whole.close()
    (path,) = tmp_path.glob("*.log")
    content = path.read_bytes()
    # Snapshot and index are those of the whole log, as a power cut may leave them.
    stale = {path: path.read_bytes() for path in tmp_path.iterdir() if path.suffix in (".snapshot", ".txnindex")}
    assert len(stale) == 2
    for size in range(len(content) + 1):
        path.write_bytes(content[:size])
        for other, content_of_other in stale.items():
            other.write_bytes(content_of_other)
        log = open_log(tmp_path, CONFIG)
        kept = max(number for number, position in enumerate(ends) if position <= size)
        assert last_batches(log) == states[kept]
        assert transactions(log) == aborted[kept]
        log.abandon()


def test_a_torn_snapshot_changes_nothing(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(12):
        send(log, number % 3, number // 3, b"x" * 100)
    known = last_batches(log)
    log.close()
    newest = max(tmp_path.glob("*.snapshot"))
    content = newest.read_bytes()
    for size in range(len(content)):
        newest.write_bytes(content[:size])
        again = open_log(tmp_path, clean_shutdown=True)
        assert last_batches(again) == known
        assert newest.read_bytes() == content
        again.abandon()


def test_snapshots_of_what_recovery_cut_off_are_not_believed(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    while len(log.segments) < 3:
        send(log, 7, log.log_end_offset, b"x" * 100)
    base = log.segments[1].base_offset
    log.close()
    path = segment_path(tmp_path, base, ".log")
    path.write_bytes(path.read_bytes()[:-1])
    again = open_log(tmp_path)
    assert again.log_end_offset > base
    assert again.active_producers()[0].last_sequence == again.log_end_offset - 1
    assert snapshots(again) == [base, again.log_end_offset]


def test_a_segment_before_the_recovery_point_is_not_read(tmp_path: Path) -> None:
    log, aborted = aborting_log(tmp_path)
    log.close()
    first = log.segments[0].log.path
    first.write_bytes(b"\xff" * first.stat().st_size)
    again = open_log(tmp_path, CONFIG, recovery_point=log.segments[2].base_offset)
    assert last_batches(again) == last_batches(log)
    assert transactions(again) == aborted


def test_gaps_between_segments_are_no_hindrance(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    for number in range(4):
        offset = number * 100
        log.append_as_follower(produced(7, number, base_offset=offset))
        log.append_as_follower(produced(8, number, base_offset=offset + 1))
        log.roll(offset + 50)
    known = log.active_producers()
    log.abandon()
    again = open_log(tmp_path)
    assert again.active_producers() == known
    assert snapshots(again) == [50, 150, 250, 350]


def test_the_metadata_log_remembers_nobody_when_it_is_opened(tmp_path: Path) -> None:
    config = LogConfig(metadata=True)
    log = open_log(tmp_path, config)
    log.append_as_leader(batch(b"a"), 0)
    log.close()
    again = open_log(tmp_path, config)
    assert again.active_producers() == ()
    assert snapshots(again) == [1]


# Producers that are gone


def test_the_start_of_the_log_does_not_make_it_forget(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.append_as_leader(batch(b"other"), 0)
    log.advance_log_start_offset(1)
    assert [state.producer_id for state in log.active_producers()] == [7]
    log.close()
    # The snapshot at its end lies behind the start, so it counts.
    again = open_log(tmp_path, clean_shutdown=True, log_start_offset=1)
    assert [state.producer_id for state in again.active_producers()] == [7]
    again.close()
    # If there is nothing between start and end, nobody is known.
    again = open_log(tmp_path, clean_shutdown=True, log_start_offset=2)
    assert again.active_producers() == ()


def test_expired_producers_are_removed(tmp_path: Path) -> None:
    log = open_log(tmp_path, LogConfig(producer_id_expiration_ms=1000))
    send(log, 7, 0)
    log.remove_expired_producers(NOW_MS + 999)
    assert len(log.active_producers()) == 1
    log.remove_expired_producers(NOW_MS + 1000)
    assert log.active_producers() == ()
    assert send(log, 7, 1).base_offset == 1


# Verification


def test_the_first_batch_of_a_transaction_is_verified(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    data = produced(7, 0, transactional=True)
    with pytest.raises(KafkaError) as refused:
        log.append_as_leader(data, 0)
    assert refused.value.code is ErrorCode.INVALID_TXN_STATE
    guard = log.maybe_start_transaction_verification(7, 0, 0, supports_epoch_bump=False)
    log.append_as_leader(data, 0, verification_guard=guard)
    assert log.has_ongoing_transaction(7, 0)
    assert not log.has_ongoing_transaction(7, 1)
    log.append_as_leader(produced(7, 1, transactional=True), 0)
    end(log, 7, commit=True)
    with pytest.raises(KafkaError):
        log.append_as_leader(produced(7, 2, transactional=True), 0, verification_guard=guard)


def test_verification_can_be_turned_off_while_the_log_is_open(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    log.configure(CONFIG)
    assert send_in_transaction(log, 7, 0).base_offset == 0


def test_a_coordinator_appends_without_sequences(tmp_path: Path) -> None:
    log = open_log(tmp_path, SMALL)
    data = produced(7, -1, transactional=True)
    guard = log.maybe_start_transaction_verification(7, -1, 0, supports_epoch_bump=True)
    for offset in range(3):
        info = log.append_as_leader(data, 0, origin=AppendOrigin.COORDINATOR, verification_guard=guard)
        assert (info.base_offset, info.is_duplicate) == (offset, False)


def test_a_batch_without_a_producer_is_never_asked_about(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    log = open_log(tmp_path)

    def asked(*_: object, **__: object) -> None:
        raise AssertionError

    monkeypatch.setattr("barnabas.storage.producers.Producers.check", asked)
    monkeypatch.setattr("barnabas.storage.producers.Producers.update", asked)
    log.append_as_leader(batch(b"a"), 0)
    log.append_as_follower(batch(b"a", base_offset=1))
    with pytest.raises(AssertionError):
        send(log, 7, 0)


def test_several_batches_in_one_append_are_checked_as_one(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    info = log.append_as_leader(produced(7, 0) + produced(8, 0) + produced(7, 1), 0)
    assert (info.base_offset, info.last_offset) == (0, 2)
    assert [state.last_data_offset for state in log.active_producers()] == [2, 1]
    with pytest.raises(KafkaError):
        log.append_as_leader(produced(7, 2) + produced(7, 4), 0)
    assert log.log_end_offset == 3
    assert log.append_as_leader(produced(7, 2) + produced(7, 3), 0).last_offset == 4


def test_a_log_that_has_failed_answers_no_duplicates(tmp_path: Path) -> None:
    log = open_log(tmp_path)
    send(log, 7, 0)
    log.abandon()
    with pytest.raises(StorageError):
        send(log, 7, 0)
