"""What a leader takes from a producer, by what the log knows of it."""

from __future__ import annotations

import pytest

from barnabas.batches import BatchError, BatchHeader, ControlType, EndTxnMarker
from barnabas.batches.format import CONTROL_BIT, MAX_INT32, TRANSACTIONAL_BIT
from barnabas.storage.producers import (
    AppendOrigin,
    BatchMetadata,
    CompletedTxn,
    ProducerBatch,
    Producers,
    ProducerState,
)
from barnabas.wire.errors import ErrorCode, KafkaError

DAY_MS = 24 * 60 * 60 * 1000


def data(
    sequence: int,
    offset: int = 0,
    *,
    count: int = 1,
    epoch: int = 0,
    producer_id: int = 7,
    transactional: bool = False,
    timestamp: int = 1000,
) -> ProducerBatch:
    attributes = TRANSACTIONAL_BIT if transactional else 0
    return ProducerBatch(
        BatchHeader(0, 100, 0, 2, 0, attributes, count - 1, timestamp, timestamp, producer_id, epoch, sequence, count),
        offset,
    )


def marker(
    offset: int = 0,
    *,
    epoch: int = 0,
    producer_id: int = 7,
    commit: bool = True,
    coordinator_epoch: int = 0,
    timestamp: int = 2000,
) -> ProducerBatch:
    header = data(-1, epoch=epoch, producer_id=producer_id, timestamp=timestamp).header
    return ProducerBatch(
        header._replace(attributes=TRANSACTIONAL_BIT | CONTROL_BIT),
        offset,
        EndTxnMarker(ControlType.COMMIT if commit else ControlType.ABORT, coordinator_epoch),
    )


def known(*batches: ProducerBatch) -> Producers:
    """The producers after these batches."""
    producers = Producers()
    for batch in batches:
        completed = producers.update(batch)
        if completed is not None:
            producers.complete(completed)
    return producers


def refusal(producers: Producers, batch: ProducerBatch, **options: object) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        producers.check(batch, **options)  # type: ignore[arg-type]
    return refused.value.code


def test_a_batch_that_goes_on_is_taken() -> None:
    producers = known(data(0, 0, count=3))
    assert producers.check(data(3)) is None


@pytest.mark.parametrize("sequence", [0, 2, 4, 5, MAX_INT32])
def test_a_batch_that_does_not_go_on_is_out_of_order(sequence: int) -> None:
    producers = known(data(0, 0, count=3))
    assert refusal(producers, data(sequence)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_that_is_not_known_may_start_at_any_sequence() -> None:
    assert Producers().check(data(12345)) is None
    producers = known(data(12345, 10))
    assert producers.check(data(12346)) is None
    assert refusal(producers, data(12348)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_that_comes_twice_is_answered_with_its_offsets_while_it_is_one_of_the_last_five() -> None:
    batches = [data(10 * number, 100 * number, count=10, timestamp=number) for number in range(7)]
    producers = known(*batches)
    for number in range(2, 7):
        duplicate = producers.check(batches[number])
        assert duplicate == BatchMetadata(10 * number + 9, 100 * number + 9, 9, number)
        assert (duplicate.first_offset, duplicate.first_sequence) == (100 * number, 10 * number)
    for number in range(2):
        assert refusal(producers, batches[number]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_only_the_whole_batch_is_a_duplicate() -> None:
    producers = known(data(0, 0, count=10))
    for part in (data(0, count=9), data(1, count=9), data(0, count=11)):
        assert refusal(producers, part) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_coordinator_writes_without_sequences_and_never_twice() -> None:
    batch = data(-1, 0, transactional=True)
    producers = known(batch)
    assert producers.check(batch, origin=AppendOrigin.COORDINATOR) is None
    assert producers.get(7) == ProducerState(7, 0, -1, 1000, 0, (BatchMetadata(-1, 0, 0, 1000),))


def test_a_batch_is_a_duplicate_even_if_a_coordinator_wrote_after_it() -> None:
    first = data(0, 0, transactional=True)
    producers = known(first, data(-1, 1, transactional=True))
    assert producers.check(first) == BatchMetadata(0, 0, 0, 1000)


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    last = data(MAX_INT32 - 1, 0, count=2)
    producers = known(last)
    assert producers.check(last) == BatchMetadata(MAX_INT32, 1, 1, 1000)
    assert producers.check(data(0)) is None
    assert refusal(producers, data(1)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_batch_may_hold_the_largest_sequence_and_zero() -> None:
    across = data(MAX_INT32 - 1, 0, count=5)
    producers = known(across)
    assert producers.get(7) == ProducerState(7, 0, -1, 1000, -1, (BatchMetadata(2, 4, 4, 1000),))
    assert producers.check(across) == BatchMetadata(2, 4, 4, 1000)
    assert producers.check(data(3)) is None


def test_an_old_epoch_is_refused_and_a_new_one_begins_with_zero() -> None:
    producers = known(data(0, 0, epoch=4))
    assert refusal(producers, data(1, epoch=3)) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert refusal(producers, data(1, epoch=5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(data(0, epoch=5)) is None
    producers.update(data(0, 1, epoch=5))
    # What was sent in the old epoch is no duplicate of the new one.
    assert producers.get(7) == ProducerState(7, 5, -1, 1000, -1, (BatchMetadata(0, 1, 0, 1000),))


def test_batches_that_are_appended_together_follow_each_other() -> None:
    producers = known(data(0))
    first = data(1, 1)
    assert producers.check(data(2), earlier=[first]) is None
    assert refusal(producers, data(3), earlier=[first]) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(data(0, producer_id=8), earlier=[first]) is None


def test_a_check_changes_nothing() -> None:
    producers = known(data(0), data(1, 1))
    before = producers.states
    producers.check(data(2))
    producers.check(data(1))
    with pytest.raises(KafkaError):
        producers.check(data(9))
    assert producers.states == before


# Transactions


def test_a_transaction_lasts_from_its_first_batch_to_its_marker() -> None:
    producers = known(data(0, 10, transactional=True), data(1, 11, transactional=True))
    assert producers.has_ongoing_transaction(7, 0)
    assert producers.first_unstable_offset() == 10
    completed = producers.update(marker(12, commit=False))
    assert completed == CompletedTxn(7, 10, 12, is_aborted=True)
    assert producers.stable_offset_after(completed) == 13
    producers.complete(completed)
    assert not producers.has_ongoing_transaction(7, 0)
    # The end is unstable as well, until it is replicated.
    assert producers.first_unstable_offset() == 10
    producers.forget_replicated(12)
    assert producers.first_unstable_offset() == 10
    producers.forget_replicated(13)
    assert producers.first_unstable_offset() is None


def test_a_marker_without_a_transaction_ends_nothing_and_is_remembered() -> None:
    producers = Producers()
    assert producers.update(marker(0, coordinator_epoch=3)) is None
    assert producers.get(7) == ProducerState(7, 0, 3, 2000)
    assert refusal(producers, data(5)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(data(0)) is None


def test_the_log_is_unstable_from_the_first_of_all_transactions() -> None:
    producers = known(
        data(0, 10, producer_id=1, transactional=True),
        data(0, 20, producer_id=2, transactional=True),
        data(0, 30, producer_id=3, transactional=True),
        marker(40, producer_id=1),
        marker(41, producer_id=3),
    )
    assert producers.first_unstable_offset() == 10
    producers.forget_replicated(41)
    assert producers.first_unstable_offset() == 20
    last = producers.update(marker(50, producer_id=2, commit=False))
    assert last is not None
    producers.complete(last)
    producers.forget_replicated(42)
    assert producers.first_unstable_offset() == 20
    producers.forget_replicated(51)
    assert producers.first_unstable_offset() is None


def test_a_transaction_that_began_first_and_ended_last_is_the_first_that_is_unstable() -> None:
    producers = known(
        data(0, 10, producer_id=1, transactional=True),
        data(0, 20, producer_id=2, transactional=True),
        marker(30, producer_id=2),
        marker(31, producer_id=1),
    )
    assert producers.first_unstable_offset() == 10


def test_what_aborts_is_stable_up_to_the_transactions_of_others() -> None:
    producers = known(
        data(0, 10, producer_id=1, transactional=True),
        data(0, 20, producer_id=2, transactional=True),
        data(0, 30, producer_id=3, transactional=True),
    )
    completed = producers.update(marker(40, producer_id=1, commit=False))
    assert completed is not None
    assert producers.stable_offset_after(completed) == 20
    other = producers.update(marker(41, producer_id=3, commit=False))
    assert other is not None
    assert producers.stable_offset_after(other) == 10


def test_a_producer_in_a_transaction_sends_nothing_else() -> None:
    producers = known(data(0, transactional=True))
    assert refusal(producers, data(1)) is ErrorCode.INVALID_TXN_STATE
    assert producers.check(data(1, transactional=True)) is None


def test_a_marker_keeps_the_batches_of_its_epoch_and_a_larger_epoch_drops_them() -> None:
    first = data(0, 0, transactional=True)
    producers = known(first, marker(1))
    assert producers.check(first) == BatchMetadata(0, 0, 0, 1000)
    assert producers.check(data(1, transactional=True)) is None
    producers = known(first, marker(1, epoch=1))
    assert refusal(producers, first) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert producers.check(data(0, epoch=1, transactional=True)) is None
    assert refusal(producers, data(1, epoch=1, transactional=True)) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def check_marker(producers: Producers, batch: ProducerBatch, version: int) -> ErrorCode | None:
    try:
        producers.check(batch, origin=AppendOrigin.COORDINATOR, transaction_version=version)
    except KafkaError as error:
        return error.code
    return None


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_a_marker_has_the_epoch_of_its_transaction_or_a_larger_one(version: int) -> None:
    producers = known(data(0, epoch=4, transactional=True))
    assert check_marker(producers, marker(epoch=3), version) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert check_marker(producers, marker(epoch=4), version) is None
    assert check_marker(producers, marker(epoch=5), version) is None


def test_in_version_2_a_marker_has_a_larger_epoch_than_its_transaction() -> None:
    producers = known(data(0, epoch=4, transactional=True))
    assert check_marker(producers, marker(epoch=3), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert check_marker(producers, marker(epoch=4), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    assert check_marker(producers, marker(epoch=5), 2) is None


def test_in_version_2_a_marker_may_come_again_when_its_transaction_has_ended() -> None:
    producers = known(data(0, epoch=4, transactional=True), marker(1, epoch=5))
    assert check_marker(producers, marker(epoch=5), 2) is None
    assert check_marker(producers, marker(epoch=4), 2) is ErrorCode.INVALID_PRODUCER_EPOCH
    producers.update(data(0, 2, epoch=5, transactional=True))
    assert check_marker(producers, marker(epoch=5), 2) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_in_version_2_the_largest_epoch_ends_its_own_transaction() -> None:
    producers = known(data(0, epoch=2**15 - 1, transactional=True))
    assert check_marker(producers, marker(epoch=2**15 - 1), 2) is None


def test_a_coordinator_is_fenced_by_a_later_one() -> None:
    producers = known(data(0, transactional=True), marker(1, coordinator_epoch=5), data(1, 2, transactional=True))
    assert check_marker(producers, marker(coordinator_epoch=4), 1) is ErrorCode.TRANSACTION_COORDINATOR_FENCED
    assert check_marker(producers, marker(coordinator_epoch=5), 1) is None
    assert check_marker(producers, marker(coordinator_epoch=6), 1) is None


def test_a_marker_is_of_some_version() -> None:
    with pytest.raises(KafkaError, match="version") as caught:
        Producers().check(marker(), origin=AppendOrigin.COORDINATOR)
    assert caught.value.code is ErrorCode.UNKNOWN_SERVER_ERROR  # as in Kafka; any client may send such a marker


def test_a_control_batch_that_is_no_marker_is_refused() -> None:
    with pytest.raises(BatchError):
        Producers().check(marker()._replace(marker=None), origin=AppendOrigin.COORDINATOR, transaction_version=0)


def test_a_marker_that_compaction_has_emptied_changes_nothing() -> None:
    producers = known(data(0, transactional=True))
    before = producers.states
    assert producers.update(marker(1)._replace(marker=None)) is None
    assert producers.states == before
    # Kafka remembers even a producer of which nothing else is left.
    producers = known(marker(1)._replace(marker=None))
    assert producers.states == (ProducerState(7),)


# Verification


def transactional(sequence: int, **options: int) -> ProducerBatch:
    return data(sequence, transactional=True, **options)


def test_a_new_transaction_needs_a_guard() -> None:
    producers = Producers()
    assert refusal(producers, transactional(0), verify=True) is ErrorCode.INVALID_TXN_STATE
    guard = producers.maybe_start_verification(7, 0, 0, False, now_ms=0)
    assert guard is not None
    assert refusal(producers, transactional(0), verify=True, guard=guard + 1) is ErrorCode.INVALID_TXN_STATE
    assert producers.check(transactional(0), verify=True, guard=guard) is None
    assert producers.check(transactional(0), verify=False) is None


def test_a_transaction_that_goes_on_needs_no_guard() -> None:
    producers = known(transactional(0))
    assert producers.maybe_start_verification(7, 1, 0, False, now_ms=0) is None
    assert producers.check(transactional(1), verify=True) is None
    # In a larger epoch it is another transaction.
    assert refusal(producers, transactional(0, epoch=1), verify=True) is ErrorCode.INVALID_TXN_STATE
    assert producers.maybe_start_verification(7, 0, 1, False, now_ms=0) is not None


def test_what_is_not_transactional_needs_no_guard() -> None:
    assert Producers().check(data(0), verify=True) is None


def test_a_duplicate_needs_no_guard() -> None:
    producers = known(transactional(0), marker(1))
    assert producers.check(transactional(0), verify=True) is not None


def test_a_coordinators_offsets_need_a_guard_too() -> None:
    producers = Producers()
    origin = AppendOrigin.COORDINATOR
    assert refusal(producers, transactional(-1), verify=True, origin=origin) is ErrorCode.INVALID_TXN_STATE
    guard = producers.maybe_start_verification(7, -1, 0, False, now_ms=0)
    assert producers.check(transactional(-1), verify=True, origin=origin, guard=guard) is None


def test_a_guard_is_good_until_the_transaction_is_written_to() -> None:
    producers = Producers()
    guard = producers.maybe_start_verification(7, 0, 0, False, now_ms=0)
    assert producers.maybe_start_verification(7, 1, 0, False, now_ms=0) == guard
    producers.update(transactional(0))
    assert producers.verification_guard(7) is None


def test_a_marker_takes_the_guard_away() -> None:
    producers = known(data(0), data(1))
    guard = producers.maybe_start_verification(7, 2, 0, False, now_ms=0)
    producers.update(marker(3))
    assert refusal(producers, transactional(2), verify=True, guard=guard) is ErrorCode.INVALID_TXN_STATE
    again = producers.maybe_start_verification(7, 2, 0, False, now_ms=0)
    assert again != guard


def test_the_marker_of_the_transaction_before_leaves_the_guard_of_the_next_epoch() -> None:
    producers = known(transactional(0))
    guard = producers.maybe_start_verification(7, 0, 1, True, now_ms=0)
    producers.update(marker(1, epoch=1))
    assert producers.verification_guard(7) == guard
    assert producers.check(transactional(0, epoch=1), verify=True, guard=guard) is None


def test_an_old_epoch_is_not_verified() -> None:
    producers = known(data(0, epoch=3))
    with pytest.raises(KafkaError) as refused:
        producers.maybe_start_verification(7, 0, 2, False, now_ms=0)
    assert refused.value.code is ErrorCode.INVALID_PRODUCER_EPOCH
    # The error is one that a producer recovers from, whether or not it comes with a guard.
    assert refusal(producers, transactional(0, epoch=2), verify=True) is ErrorCode.INVALID_PRODUCER_EPOCH


def test_a_sequence_above_the_lowest_that_is_verified_has_to_wait() -> None:
    producers = Producers()
    guard = producers.maybe_start_verification(7, 5, 0, False, now_ms=0)
    assert producers.maybe_start_verification(7, 3, 0, False, now_ms=0) == guard
    assert refusal(producers, transactional(5), verify=True, guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    assert producers.check(transactional(3), verify=True, guard=guard) is None
    # A larger epoch counts anew.
    producers.maybe_start_verification(7, 8, 1, False, now_ms=0)
    assert producers.check(transactional(8, epoch=1), verify=True, guard=guard) is None


def test_what_is_left_of_a_transaction_waits_while_the_next_one_is_verified() -> None:
    producers = known(transactional(0))
    producers.maybe_start_verification(7, 0, 1, True, now_ms=0)
    assert refusal(producers, transactional(1), verify=True) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER


def test_a_producer_of_version_2_that_is_not_known_begins_with_zero() -> None:
    producers = Producers()
    guard = producers.maybe_start_verification(7, 4, 0, True, now_ms=0)
    assert refusal(producers, transactional(4), verify=True, guard=guard) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    producers.maybe_start_verification(7, 0, 0, True, now_ms=0)
    assert producers.check(transactional(0), verify=True, guard=guard) is None


# Expiry


def test_a_silent_producer_is_forgotten_unless_it_is_in_a_transaction() -> None:
    producers = known(
        data(0, 0, producer_id=1, timestamp=0),
        data(0, 1, producer_id=2, timestamp=1),
        data(0, 2, producer_id=3, timestamp=0, transactional=True),
    )
    producers.remove_expired(DAY_MS, DAY_MS)
    assert [state.producer_id for state in producers.states] == [2, 3]
    assert producers.check(data(77, producer_id=1)) is None


def test_a_verification_that_never_ends_is_forgotten() -> None:
    producers = Producers()
    producers.maybe_start_verification(7, 0, 0, False, now_ms=5)
    producers.remove_expired(DAY_MS + 4, DAY_MS)
    assert producers.verification_guard(7) is not None
    producers.remove_expired(DAY_MS + 5, DAY_MS)
    assert producers.verification_guard(7) is None


def test_transactions_of_loaded_producers_are_in_the_order_of_their_offsets() -> None:
    states = [ProducerState(number, 0, -1, 0, offset) for number, offset in ((1, 50), (2, 20), (3, -1), (4, 30))]
    producers = Producers(states)
    assert producers.first_unstable_offset() == 20
    assert producers.has_ongoing_transaction(4, 0)
    assert not producers.has_ongoing_transaction(3, 0)


def test_producers_are_in_the_order_of_kafkas_table() -> None:
    # Buckets of 16, by the low bits of both halves; within one, as they came.
    producers = known(*(data(0, producer_id=producer_id) for producer_id in (17, 3, 1, 16, 2**32)))
    assert [state.producer_id for state in producers.states] == [16, 17, 1, 2**32, 3]


def test_above_a_number_idle_producers_are_forgotten_and_none_with_a_transaction() -> None:
    producers = known(transactional(0, producer_id=1), *(data(0, producer_id=number) for number in range(2, 30)))
    producers.update(data(1, offset=1000, producer_id=2))
    for number in range(30, 60):
        producers.update(data(0, offset=2000 + number, producer_id=number))
        producers.keep_at_most(20)
    producers.keep_at_most(20)
    producers.keep_at_most(20)
    assert producers.count == 20
    assert producers.get(1) is not None
    assert producers.get(59) is not None
    assert producers.get(3) is None


def test_a_producer_that_was_forgotten_may_go_on_with_its_next_sequence() -> None:
    producers = known(data(0, producer_id=1), data(0, producer_id=2))
    producers.keep_at_most(1)
    assert producers.get(1) is None
    assert producers.check(data(1, producer_id=1)) is None
