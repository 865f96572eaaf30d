"""Single rules of a share partition."""

from __future__ import annotations

import pytest

from barnabas.replicas.share.in_flight import AcknowledgeType, RecordState, StateBatch
from barnabas.replicas.share.share_partition import Acknowledged, Acquired, Asked, Limits, LogBatch, SharePartition
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError

LIMITS = Limits(max_delivery_count=5, max_in_flight=100, lock_duration_ms=1000)
LOG = [LogBatch(0, 9), LogBatch(10, 19), LogBatch(20, 29)]


def acquire(
    partition: SharePartition,
    member_id: str = "a",
    max_records: int = 100,
    batch_size: int = 100,
    *,
    is_record_limit: bool = False,
    limits: Limits = LIMITS,
    now_ms: int = 0,
) -> list[Acquired]:
    offset = partition.next_fetch_offset()
    log = [batch for batch in LOG if batch.last_offset >= offset]
    return partition.acquire(Asked(member_id, offset, max_records, batch_size, is_record_limit), log, limits, now_ms)


def states(partition: SharePartition) -> list[tuple[int, int, RecordState, int]]:
    return [(span.first, span.last, span.state, span.delivery_count) for span in partition.spans]


def acknowledge(
    partition: SharePartition,
    first: int,
    last: int,
    *kinds: AcknowledgeType,
    member_id: str = "a",
    limits: Limits = LIMITS,
    now_ms: int = 0,
) -> None:
    write = at_once(partition.acknowledge(member_id, [Acknowledged(first, last, kinds)], limits, now_ms))
    if write is not None:
        at_once(partition.commit(write))


def test_a_batch_of_the_log_is_acquired_as_a_whole_even_above_max_records() -> None:
    assert acquire(SharePartition(0), max_records=12) == [Acquired(0, 19, 1)]


def test_a_record_limit_ends_within_a_batch_and_leaves_the_rest_available() -> None:
    partition = SharePartition(0)
    assert acquire(partition, max_records=4, is_record_limit=True) == [Acquired(0, 3, 1)]
    assert states(partition) == [(0, 3, RecordState.ACQUIRED, 1), (4, 9, RecordState.AVAILABLE, 0)]
    assert partition.next_fetch_offset() == 4
    assert acquire(partition, "b", max_records=4, is_record_limit=True) == [Acquired(4, 7, 1)]


def test_acquired_records_are_divided_at_batches_of_the_log() -> None:
    assert acquire(SharePartition(0), batch_size=10) == [Acquired(0, 9, 1), Acquired(10, 19, 1), Acquired(20, 29, 1)]
    assert acquire(SharePartition(0), batch_size=15) == [Acquired(0, 19, 1), Acquired(20, 29, 1)]


def test_no_more_records_are_in_flight_than_allowed() -> None:
    partition = SharePartition(0)
    limits = LIMITS._replace(max_in_flight=10)
    assert acquire(partition, limits=limits) == [Acquired(0, 9, 1)]
    assert not partition.can_acquire(limits)
    assert acquire(partition, "b", limits=limits) == []


def test_accepted_records_at_the_start_move_the_start_offset() -> None:
    partition = SharePartition(0)
    acquire(partition)
    acknowledge(partition, 5, 9, AcknowledgeType.ACCEPT)
    assert partition.start_offset == 0
    assert partition.delivery_complete_count == 5
    acknowledge(partition, 0, 4, AcknowledgeType.REJECT)
    assert partition.start_offset == 10
    assert partition.delivery_complete_count == 0


def test_each_record_can_have_its_own_type() -> None:
    partition = SharePartition(0)
    acquire(partition, max_records=10)
    accept, release, reject, gap = (
        AcknowledgeType.ACCEPT,
        AcknowledgeType.RELEASE,
        AcknowledgeType.REJECT,
        AcknowledgeType.GAP,
    )
    acknowledge(partition, 0, 4, release, accept, accept, reject, gap)
    assert states(partition) == [
        (0, 0, RecordState.AVAILABLE, 1),
        (1, 2, RecordState.ACKNOWLEDGED, 1),
        (3, 3, RecordState.ARCHIVED, 1),
        (4, 4, RecordState.ARCHIVED, 1),
        (5, 9, RecordState.ACQUIRED, 1),
    ]
    assert acquire(partition, "b", max_records=1) == [Acquired(0, 0, 2)]


@pytest.mark.parametrize(
    ("first", "last", "member_id", "code"),
    [
        (0, 9, "b", ErrorCode.INVALID_RECORD_STATE),
        (0, 3, "b", ErrorCode.INVALID_RECORD_STATE),
        (0, 30, "a", ErrorCode.INVALID_REQUEST),
        (30, 31, "a", ErrorCode.INVALID_REQUEST),
    ],
)
def test_who_acknowledges_what_he_does_not_have_changes_nothing(
    first: int, last: int, member_id: str, code: ErrorCode
) -> None:
    partition = SharePartition(0)
    acquire(partition, batch_size=10)
    before = states(partition)
    with pytest.raises(KafkaError) as error:
        acknowledge(partition, first, last, AcknowledgeType.ACCEPT, member_id=member_id)
    assert error.value.code is code
    assert states(partition) == before
    assert partition.delivery_complete_count == 0


def test_an_error_undoes_what_the_same_request_acknowledged_before() -> None:
    partition = SharePartition(0)
    acquire(partition, max_records=10)
    acquire(partition, "b")
    both = [Acknowledged(0, 9, [AcknowledgeType.ACCEPT]), Acknowledged(10, 19, [AcknowledgeType.ACCEPT])]
    with pytest.raises(KafkaError):
        at_once(partition.acknowledge("a", both, LIMITS, 0))
    assert states(partition)[0] == (0, 9, RecordState.ACQUIRED, 1)
    assert partition.spans[0].member_id == "a"


def test_nobody_changes_records_whose_state_is_being_stored() -> None:
    partition = SharePartition(0)
    acquire(partition, max_records=10)
    write = at_once(partition.acknowledge("a", [Acknowledged(0, 9, [AcknowledgeType.RELEASE])], LIMITS, 0))
    assert write is not None
    assert write.batches == [StateBatch(0, 9, RecordState.AVAILABLE, 1)]
    assert partition.next_fetch_offset() == 10
    with pytest.raises(KafkaError):
        acknowledge(partition, 0, 9, AcknowledgeType.ACCEPT)
    at_once(partition.commit(write))
    assert partition.next_fetch_offset() == 0


def test_a_lock_expires_unless_it_is_renewed() -> None:
    partition = SharePartition(0)
    acquire(partition, max_records=10)
    acknowledge(partition, 0, 4, AcknowledgeType.RENEW, now_ms=500)
    assert partition.expire(LIMITS, 1000) == [StateBatch(5, 9, RecordState.AVAILABLE, 1)]
    assert partition.next_deadline_ms == 1500
    assert partition.expire(LIMITS, 1500) == [StateBatch(0, 4, RecordState.AVAILABLE, 1)]


def test_locks_are_renewed_only_if_the_group_allows_it() -> None:
    partition = SharePartition(0)
    acquire(partition)
    with pytest.raises(KafkaError, match="Renewing acquisition locks is not enabled"):
        acknowledge(partition, 0, 9, AcknowledgeType.RENEW, limits=LIMITS._replace(may_renew=False))


def test_the_last_delivery_of_a_record_is_alone_and_then_it_is_archived() -> None:
    partition = SharePartition(0)
    limits = LIMITS._replace(max_delivery_count=3, max_in_flight=10)
    for _ in range(2):
        for each in acquire(partition, max_records=10, limits=limits):
            acknowledge(partition, each.first_offset, each.last_offset, AcknowledgeType.RELEASE, limits=limits)
    while partition.spans[0].delivery_count < 2:
        for each in acquire(partition, max_records=10, limits=limits):
            acknowledge(partition, each.first_offset, each.last_offset, AcknowledgeType.RELEASE, limits=limits)
    assert acquire(partition, max_records=10, limits=limits) == [Acquired(0, 0, 3)]
    acknowledge(partition, 0, 0, AcknowledgeType.RELEASE, limits=limits)
    assert partition.start_offset == 1


def test_the_start_of_the_log_takes_available_records_with_it() -> None:
    partition = SharePartition(0)
    acquire(partition, max_records=10)
    acquire(partition, "b", max_records=10)
    acknowledge(partition, 10, 19, AcknowledgeType.RELEASE, member_id="b")
    partition.log_start_moved(15)
    assert partition.start_offset == 15
    acknowledge(partition, 0, 9, AcknowledgeType.ACCEPT)  # nothing is left to do
    assert partition.next_fetch_offset() == 15
    assert acquire(partition, "b", max_records=5) == [Acquired(15, 19, 2)]


def test_aborted_records_are_archived_instead_of_delivered() -> None:
    partition = SharePartition(0)
    acquired = acquire(partition)
    assert partition.archive_aborted([LogBatch(10, 19)], acquired) == [Acquired(0, 9, 1), Acquired(20, 29, 1)]
    assert partition.archive_aborted([LogBatch(0, 9)], [Acquired(0, 9, 1)]) == []
    assert partition.start_offset == 20


def test_a_new_leader_delivers_what_was_not_stored_first() -> None:
    stored = [StateBatch(5, 9, RecordState.ACKNOWLEDGED, 1), StateBatch(20, 24, RecordState.AVAILABLE, 2)]
    partition = SharePartition(0, 3, stored)
    assert (partition.start_offset, partition.end_offset, partition.delivery_complete_count) == (0, 24, 5)
    assert partition.next_fetch_offset() == 0
    assert [(each.first_offset, each.last_offset) for each in acquire(partition, max_records=15)] == [(0, 4), (10, 19)]
    assert partition.next_fetch_offset() == 20


@pytest.mark.parametrize("stored", [[(5, 4)], [(0, 3)], [(5, 8), (8, 9)]])
def test_an_impossible_stored_state_is_refused(stored: list[tuple[int, int]]) -> None:
    with pytest.raises(ValueError, match="is not behind"):
        SharePartition(2, 0, [StateBatch(first, last, RecordState.AVAILABLE, 1) for first, last in stored])
