"""What a transaction coordinator decides, as values."""

from __future__ import annotations

from typing import Any

import pytest

from barnabas.replicated.decision import Producer, Result
from barnabas.replicated.loop import Batch
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions import decide
from barnabas.transactions.state import (
    EMPTY_IMAGE,
    NO_TIMEOUT_MS,
    Transaction,
    TransactionsImage,
    TransactionState,
    apply,
    record,
)
from barnabas.wire import ErrorCode, KafkaError

STATE = TransactionState
ID = "tx"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)
NOW_MS = 1_000
LAST = 32767 - 1  # the last epoch that a client gets
FENCED, MAPPING = ErrorCode.PRODUCER_FENCED, ErrorCode.INVALID_PRODUCER_ID_MAPPING
CONCURRENT, INVALID = ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.INVALID_TXN_STATE


def image_of(*transactions: Transaction) -> TransactionsImage:
    records = [record(each, 2)[0] for each in transactions]
    return apply(EMPTY_IMAGE, Batch(0, 0, 0, 0, records))


def situation(*transactions: Transaction, version: int = 2, now_ms: int = NOW_MS) -> decide.TransactionSituation:
    return decide.TransactionSituation(image_of(*transactions), now_ms, version, 100)


def transaction(state: TransactionState = STATE.EMPTY, **changes: Any) -> Transaction:
    is_begun = state in (STATE.ONGOING, STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT)
    partitions = frozenset({T0}) if is_begun else frozenset()
    start_ms = -1 if state is STATE.EMPTY else 500
    base = Transaction(ID, 7, 7, -1, 3, 60_000, state, partitions, start_ms, 500, 2)
    return base._replace(**changes)


def written(result: Result[object], version: int = 2) -> Transaction:
    """The transaction that the records of a decision make true."""
    assert [each for _, each in result.records] == [1 if version else 0]
    return apply(EMPTY_IMAGE, Batch(0, 0, 0, 0, [each for each, _ in result.records])).transactions[ID]


def refused(code: ErrorCode) -> pytest.RaisesExc[KafkaError]:
    return pytest.RaisesExc(KafkaError, check=lambda error: error.code is code)


# --- InitProducerId


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({}, 1_000),
        ({"timeout_ms": 900_000}, 900_000),
        ({"timeout_ms": 0}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": -1}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"transactional_id": "", "timeout_ms": 0}, ErrorCode.INVALID_REQUEST),
        ({"enable_2pc": True, "keep_prepared": True}, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED),
        ({"enable_2pc": True, "is_2pc_enabled": True, "timeout_ms": -5}, NO_TIMEOUT_MS),
        ({"is_2pc_enabled": True, "timeout_ms": 900_001}, ErrorCode.INVALID_TRANSACTION_TIMEOUT),
        ({"keep_prepared": True, "timeout_ms": 0}, ErrorCode.UNSUPPORTED_VERSION),
    ],
)
def test_what_is_wrong_with_the_request_whatever_the_state(changes: dict[str, Any], expected: int) -> None:
    given = {
        "transactional_id": ID,
        "timeout_ms": 1_000,
        "enable_2pc": False,
        "keep_prepared": False,
        "is_2pc_enabled": False,
        "max_timeout_ms": 900_000,
        **changes,
    }
    if isinstance(expected, ErrorCode):
        with refused(expected):
            decide.transaction_timeout_ms(**given)
    else:
        assert decide.transaction_timeout_ms(**given) == expected


@pytest.mark.parametrize("expected", [None, Producer(5, 5)])
def test_a_new_transactional_id_gets_a_new_producer_id_whoever_it_was_before(expected: Producer | None) -> None:
    result = decide.init_producer_id(situation(), ID, 1_000, expected)
    after = written(result)
    assert after == Transaction(ID, 100, 100, -1, 0, 1_000, STATE.EMPTY, frozenset(), -1, NOW_MS, 0)
    assert result.response == decide.Outcome(after, -1, claims_producer_id=True)


@pytest.mark.parametrize("state", [STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT])
def test_who_begins_takes_the_next_epoch(state: TransactionState) -> None:
    result = decide.init_producer_id(situation(transaction(state)), ID, 1_000, None)
    after = written(result)
    assert (after.producer_id, after.producer_epoch, after.state) == (7, 4, STATE.EMPTY)
    assert (after.timeout_ms, after.start_timestamp_ms, after.last_update_timestamp_ms) == (1_000, -1, NOW_MS)
    assert result.response.last_producer_epoch == -1


def test_who_goes_on_takes_the_next_epoch_and_may_ask_again() -> None:
    first = decide.init_producer_id(situation(transaction()), ID, 1_000, Producer(7, 3))
    assert (first.response.transaction.producer_epoch, first.response.last_producer_epoch) == (4, 3)
    again = decide.init_producer_id(situation(first.response.transaction), ID, 1_000, Producer(7, 3), 3)
    assert (again.response.transaction.producer_epoch, again.response.last_producer_epoch) == (4, 3)


@pytest.mark.parametrize("expected", [Producer(7, 2), Producer(7, 4), Producer(6, 3), Producer(8, 3)])
def test_who_is_not_who_it_says_is_fenced(expected: Producer) -> None:
    with refused(FENCED):
        decide.init_producer_id(situation(transaction(previous_producer_id=6)), ID, 1_000, expected)


def test_when_epochs_are_used_up_there_is_a_new_producer_id() -> None:
    used_up = transaction(producer_epoch=LAST)
    result = decide.init_producer_id(situation(used_up), ID, 1_000, None)
    after = written(result)
    assert (after.producer_id, after.previous_producer_id, after.producer_epoch) == (100, 7, 0)
    assert result.response == decide.Outcome(after, -1, claims_producer_id=True)


def test_who_was_given_a_new_producer_id_and_does_not_know_may_ask_again() -> None:
    first = decide.init_producer_id(situation(transaction(producer_epoch=LAST)), ID, 1_000, Producer(7, LAST))
    assert first.response.last_producer_epoch == LAST
    again = decide.init_producer_id(situation(first.response.transaction), ID, 1_000, Producer(7, LAST), LAST)
    assert (again.response.transaction.producer_id, again.response.transaction.producer_epoch) == (100, 0)
    assert (first.response.claims_producer_id, again.response.claims_producer_id) == (True, False)


def test_the_last_epoch_is_told_again_to_who_was_given_it() -> None:
    again = decide.init_producer_id(situation(transaction(producer_epoch=LAST)), ID, 1_000, Producer(7, 5), 5)
    assert again.response.transaction.producer_epoch == LAST


@pytest.mark.parametrize("state", [STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT])
@pytest.mark.parametrize("expected", [None, Producer(1, 1)])
def test_who_begins_while_markers_are_under_way_has_to_wait(state: TransactionState, expected: Producer | None) -> None:
    with refused(CONCURRENT):
        decide.init_producer_id(situation(transaction(state)), ID, 1_000, expected)


def test_what_goes_on_is_aborted_in_a_new_epoch_before_another_begins() -> None:
    result = decide.init_producer_id(situation(transaction(STATE.ONGOING)), ID, 1_000, None)
    after = written(result)
    assert (result.response.is_fenced, result.response.claims_producer_id) == (True, False)
    assert (after.state, after.producer_epoch, after.client_transaction_version) == (STATE.PREPARE_ABORT, 4, 2)
    assert (after.timeout_ms, after.partitions, after.start_timestamp_ms) == (60_000, frozenset({T0}), 500)


@pytest.mark.parametrize("version", [0, 1])
def test_before_version_2_the_epoch_that_fences_is_not_one_of_the_end(version: int) -> None:
    before = transaction(STATE.ONGOING, client_transaction_version=0)
    result = decide.init_producer_id(situation(before, version=version), ID, 1_000, None)
    after = written(result, version)
    assert (after.state, after.producer_epoch, after.next_producer_id) == (STATE.PREPARE_ABORT, 4, -1)
    assert (after.client_transaction_version, result.response.last_producer_epoch) == (0, -1)


def test_who_is_fenced_in_the_last_epoch_leaves_a_new_producer_id() -> None:
    before = transaction(STATE.ONGOING, producer_epoch=LAST)
    result = decide.init_producer_id(situation(before), ID, 1_000, None)
    after = written(result)
    assert (result.response.is_fenced, result.response.claims_producer_id) == (True, True)
    assert (after.producer_id, after.producer_epoch, after.next_producer_id) == (7, LAST + 1, 100)
    done = decide.complete(after, NOW_MS)
    assert (done.producer_id, done.producer_epoch, done.previous_producer_id) == (100, 0, 7)


# --- partitions


@pytest.mark.parametrize("state", [STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT])
@pytest.mark.parametrize("version", [0, 2])
def test_the_first_partition_begins_a_transaction(state: TransactionState, version: int) -> None:
    before = transaction(state)
    after = written(decide.add_partitions(situation(before), ID, Producer(7, 3), {T0, T1}, version))
    assert (after.state, after.partitions, after.client_transaction_version) == (
        STATE.ONGOING,
        frozenset({T0, T1}),
        version,
    )
    assert (after.start_timestamp_ms, after.last_update_timestamp_ms) == (NOW_MS, NOW_MS)


def test_further_partitions_leave_its_beginning() -> None:
    after = written(decide.add_partitions(situation(transaction(STATE.ONGOING)), ID, Producer(7, 3), {T1}, 2))
    assert (after.partitions, after.start_timestamp_ms, after.last_update_timestamp_ms) == (
        frozenset({T0, T1}),
        500,
        NOW_MS,
    )


def test_a_partition_that_is_in_already_needs_no_record() -> None:
    assert not decide.add_partitions(situation(transaction(STATE.ONGOING)), ID, Producer(7, 3), {T0}, 2).records


ASKING = [
    (STATE.ONGOING, Producer(8, 3), MAPPING),
    (STATE.ONGOING, Producer(7, 2), FENCED),
    (STATE.ONGOING, Producer(7, 4), FENCED),
    (STATE.PREPARE_COMMIT, Producer(7, 3), CONCURRENT),
    (STATE.PREPARE_ABORT, Producer(7, 3), CONCURRENT),
]


@pytest.mark.parametrize(("state", "producer", "code"), [*ASKING, (STATE.PREPARE_COMMIT, Producer(9, 9), CONCURRENT)])
def test_who_may_not_add_partitions(state: TransactionState, producer: Producer, code: ErrorCode) -> None:
    with refused(code):
        decide.add_partitions(situation(transaction(state)), ID, producer, {T0}, 2)


@pytest.mark.parametrize(("state", "producer", "code"), [*ASKING, (STATE.PREPARE_COMMIT, Producer(9, 9), MAPPING)])
def test_who_is_not_verified(state: TransactionState, producer: Producer, code: ErrorCode) -> None:
    with refused(code):
        decide.verify_partitions(situation(transaction(state)), ID, producer, {T0})


def test_partitions_that_are_not_part_of_the_transaction_are_named() -> None:
    result = decide.verify_partitions(situation(transaction(STATE.ONGOING)), ID, Producer(7, 3), {T0, T1})
    assert result == Result([], {T1: ErrorCode.TRANSACTION_ABORTABLE})


def test_nothing_is_known_of_a_transactional_id_that_never_began() -> None:
    for ask in (
        lambda: decide.add_partitions(situation(), ID, Producer(7, 3), {T0}, 2),
        lambda: decide.verify_partitions(situation(), ID, Producer(7, 3), {T0}),
        lambda: decide.end(situation(), ID, Producer(7, 3), True, 2),
        lambda: decide.end(situation(), ID, Producer(7, 3), True, 0),
    ):
        with refused(MAPPING):
            ask()


# --- the end


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_commit", [True, False])
def test_an_end_prepares_what_goes_on(is_commit: bool, version: int) -> None:
    result = decide.end(situation(transaction(STATE.ONGOING)), ID, Producer(7, 3), is_commit, version)
    after = written(result)
    state = STATE.PREPARE_COMMIT if is_commit else STATE.PREPARE_ABORT
    epoch = 4 if version == 2 else 3
    assert (after.state, after.producer_epoch, after.client_transaction_version) == (state, epoch, version)
    assert (after.partitions, after.start_timestamp_ms, after.last_update_timestamp_ms) == (
        frozenset({T0}),
        500,
        NOW_MS,
    )
    assert result.response == decide.Ended(*((Producer(7, 4), 3) if version == 2 else (Producer(-1, -1),)))


def test_an_end_in_the_last_epoch_takes_a_new_producer_id() -> None:
    before = transaction(STATE.ONGOING, producer_epoch=LAST)
    result = decide.end(situation(before), ID, Producer(7, LAST), True, 2)
    after = written(result)
    assert (after.producer_id, after.producer_epoch, after.next_producer_id) == (7, LAST + 1, 100)
    assert result.response == decide.Ended(Producer(100, 0), LAST, claims_producer_id=True)
    done = decide.complete(after, NOW_MS)
    assert (done.producer_id, done.previous_producer_id, done.next_producer_id) == (100, 7, -1)
    again = decide.end(situation(done), ID, Producer(7, LAST), True, 2)
    assert again == Result([], decide.Ended(Producer(100, 0)))


def test_an_end_without_a_new_producer_id_at_hand_changes_nothing() -> None:
    given = situation(transaction(STATE.ONGOING, producer_epoch=LAST))._replace(next_producer_id=None)
    with refused(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS):
        decide.end(given, ID, Producer(7, LAST), True, 2)


def test_a_decision_is_the_same_however_often_it_is_made() -> None:
    new, old = situation(), situation(transaction(STATE.ONGOING, producer_epoch=LAST))
    for ask in (
        lambda: decide.init_producer_id(new, ID, 1_000, None),
        lambda: decide.init_producer_id(old, ID, 1_000, None),
        lambda: decide.end(old, ID, Producer(7, LAST), False, 2),
        lambda: decide.abort_timed_out(old._replace(now_ms=1 << 40), ID),
    ):
        assert ask() == ask()
        response: Any = ask().response
        assert response.claims_producer_id


NEW, AGAIN = Producer(7, 3), Producer(7, 2)
BUMPED, DONE = "a new epoch", "nothing"
TABLE = {
    # state: abort again, abort, commit again, commit
    STATE.EMPTY: (FENCED, BUMPED, FENCED, INVALID),
    STATE.COMPLETE_ABORT: (DONE, BUMPED, INVALID, INVALID),
    STATE.COMPLETE_COMMIT: (INVALID, BUMPED, DONE, INVALID),
}


@pytest.mark.parametrize("state", TABLE)
@pytest.mark.parametrize(
    ("place", "producer", "is_commit"), [(0, AGAIN, False), (1, NEW, False), (2, AGAIN, True), (3, NEW, True)]
)
def test_an_end_at_rest_in_version_2(state: TransactionState, place: int, producer: Producer, is_commit: bool) -> None:
    given, expected = situation(transaction(state)), TABLE[state][place]
    if isinstance(expected, ErrorCode):
        with refused(expected):
            decide.end(given, ID, producer, is_commit, 2)
        return
    result = decide.end(given, ID, producer, is_commit, 2)
    if expected is DONE:
        assert result == Result([], decide.Ended(Producer(7, 3)))
    else:
        after = written(result)
        assert (after.state, after.producer_epoch, after.partitions) == (STATE.PREPARE_ABORT, 4, frozenset())
        assert after.start_timestamp_ms == NOW_MS
        assert result.response == decide.Ended(Producer(7, 4), 3)


@pytest.mark.parametrize(
    ("state", "is_commit", "code"),
    [
        (STATE.EMPTY, True, INVALID),
        (STATE.EMPTY, False, INVALID),
        (STATE.COMPLETE_COMMIT, True, None),
        (STATE.COMPLETE_COMMIT, False, INVALID),
        (STATE.COMPLETE_ABORT, True, INVALID),
        (STATE.COMPLETE_ABORT, False, None),
    ],
)
def test_an_end_at_rest_before_version_2(state: TransactionState, is_commit: bool, code: ErrorCode | None) -> None:
    if code is None:
        result = decide.end(situation(transaction(state)), ID, Producer(7, 3), is_commit, 0)
        assert result == Result([], decide.Ended(Producer(-1, -1)))
    else:
        with refused(code):
            decide.end(situation(transaction(state)), ID, Producer(7, 3), is_commit, 0)


@pytest.mark.parametrize("version", [0, 2])
@pytest.mark.parametrize("is_commit", [True, False])
@pytest.mark.parametrize("state", [STATE.PREPARE_COMMIT, STATE.PREPARE_ABORT])
def test_an_end_while_markers_are_under_way_has_to_wait(state: TransactionState, is_commit: bool, version: int) -> None:
    with refused(CONCURRENT):
        decide.end(situation(transaction(state)), ID, Producer(7, 3), is_commit, version)


@pytest.mark.parametrize("version", [0, 2])
def test_who_may_not_end_what_goes_on(version: int) -> None:
    given = situation(transaction(STATE.ONGOING))
    for producer, code in ((Producer(8, 3), MAPPING), (Producer(7, 4), FENCED), (Producer(7, 2), FENCED)):
        with refused(code):
            decide.end(given, ID, producer, True, version)


def test_all_markers_written_is_said_once() -> None:
    prepared = transaction(STATE.PREPARE_COMMIT)
    done = decide.complete(prepared, NOW_MS)
    assert written(decide.write_completed(situation(prepared), prepared, done)) == done
    assert (done.state, done.partitions, done.start_timestamp_ms) == (STATE.COMPLETE_COMMIT, frozenset(), 500)
    assert not decide.write_completed(situation(done), prepared, done).records
    begun = transaction(STATE.ONGOING)
    assert not decide.write_completed(situation(begun), prepared, done).records


# --- time


def test_only_what_goes_on_longer_than_its_producer_said_is_aborted() -> None:
    late, waits, ended = (
        transaction(STATE.ONGOING),
        transaction(STATE.ONGOING, timeout_ms=NO_TIMEOUT_MS),
        transaction(STATE.PREPARE_ABORT),
    )
    assert decide.timed_out(image_of(late), 60_500) == []
    assert decide.timed_out(image_of(late), 60_501) == [ID]
    for other in (waits, ended):
        assert decide.timed_out(image_of(other), 1 << 40) == []
        assert not decide.abort_timed_out(situation(other, now_ms=1 << 40), ID).records
    assert not decide.abort_timed_out(situation(late, now_ms=60_500), ID).records
    result = decide.abort_timed_out(situation(late, now_ms=60_501), ID)
    assert (written(result).state, written(result).producer_epoch) == (STATE.PREPARE_ABORT, 4)


@pytest.mark.parametrize("state", TransactionState)
def test_a_transactional_id_expires_at_rest_only(state: TransactionState) -> None:
    if state in (STATE.DEAD, STATE.PREPARE_EPOCH_FENCE):
        return
    image = image_of(transaction(state))
    at_rest = [ID] if state in (STATE.EMPTY, STATE.COMPLETE_COMMIT, STATE.COMPLETE_ABORT) else []
    assert list(decide.expired(image, 600, 100)) == at_rest
    assert list(decide.expired(image, 599, 100)) == []
    assert len(decide.forget([ID, "other"], 600, 100, image).records) == len(at_rest)
    assert not decide.forget([ID], 599, 100, image).records
