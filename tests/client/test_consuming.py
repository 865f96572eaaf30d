"""What of an answer is for the reader: batches, markers, positions. No node."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from barnabas.batches import (
    BatchError,
    Compression,
    CorruptBatchError,
    Record,
    TimestampType,
    build_batch,
    build_end_txn_marker,
)
from barnabas.client.consumer import Consumer
from barnabas.client.consuming.collector import Collector
from barnabas.client.consuming.partition import PartitionState
from barnabas.client.records import TopicPartition
from barnabas.wire import KafkaError

PLACE = TopicPartition("orders", 0)


def batch(first: int, count: int, producer_id: int = -1, *, transactional: bool = False, **how: object) -> bytes:
    records = [Record(0, 1_000, None, b"%d" % (first + number)) for number in range(count)]
    return build_batch(records, base_offset=first, producer_id=producer_id, is_transactional=transactional, **how)  # type: ignore[arg-type]


def marker(offset: int, producer_id: int, *, commit: bool) -> bytes:
    return build_end_txn_marker(
        commit=commit, producer_id=producer_id, producer_epoch=0, coordinator_epoch=0, timestamp=0, base_offset=offset
    )


def reading(*data: bytes, position: int = 0, aborted: list[tuple[int, int]] | None = None) -> PartitionState:
    state = PartitionState(PLACE)
    state.seek(position)
    state.fetched(b"".join(data), aborted or [])
    return state


def take_all(state: PartitionState, *, committed_only: bool = False, limit: int = 3) -> list[int]:
    found: list[int] = []
    while some := state.take(limit, check_crcs=True, committed_only=committed_only):
        assert len(some) <= limit
        found += [record.offset for record in some]
    return found


def test_batches_are_handed_out_in_pieces_and_the_position_follows() -> None:
    state = reading(batch(0, 5), batch(5, 2, compression=Compression.ZSTD), batch(9, 1))
    assert [record.offset for record in state.take(3, check_crcs=True, committed_only=False)] == [0, 1, 2]
    assert state.position == 3
    assert take_all(state) == [3, 4, 5, 6, 9]
    assert (state.position, state.has_buffered) == (10, False)


def test_a_position_within_a_batch_leaves_out_what_is_before() -> None:
    assert take_all(reading(batch(0, 5), batch(5, 5), position=7)) == [7, 8, 9]
    state = reading(batch(0, 5), position=3)
    record = state.take_one(check_crcs=True, committed_only=False)
    assert record is not None
    assert (record.offset, state.position) == (3, 4)


def test_what_was_cut_off_is_asked_for_again() -> None:
    state = reading(batch(0, 2), batch(2, 2)[:-1])
    assert take_all(state) == [0, 1]
    assert state.position == 2


def test_a_wrong_crc_is_corrupt_and_a_check_that_is_off_lets_it_pass() -> None:
    broken = bytearray(batch(0, 1))
    broken[-2] ^= 1
    with pytest.raises(CorruptBatchError):
        take_all(reading(bytes(broken)))
    assert len(reading(bytes(broken)).take(1, check_crcs=False, committed_only=False)) == 1


def corrupt(data: bytes) -> bytes:
    broken = bytearray(data)
    broken[-2] ^= 1
    return bytes(broken)


def old(data: bytes) -> bytes:
    return data[:16] + b"\x01" + data[17:]


@pytest.mark.parametrize("broken", [corrupt, old])
def test_a_batch_that_cannot_be_read_is_an_error_until_it_is_sought_past(broken: Callable[[bytes], bytes]) -> None:
    data = batch(0, 2) + broken(batch(2, 1)) + batch(3, 1)
    state = reading(data)
    assert [record.offset for record in state.take(9, check_crcs=True, committed_only=False)] == [0, 1]
    for _ in range(3):
        with pytest.raises(BatchError):
            state.take(9, check_crcs=True, committed_only=False)
        with pytest.raises(BatchError):
            state.take_one(check_crcs=True, committed_only=False)
        assert (state.position, state.fetch_offset, state.has_buffered, state.has_room) == (2, 2, True, True)
    state.seek(3)
    assert not state.has_buffered
    assert state.fetched(batch(3, 1), [])
    assert take_all(state) == [3]


def test_a_part_of_a_batch_is_not_buffered() -> None:
    state = reading(position=0)
    assert not state.fetched(batch(0, 2)[:-1], [])
    assert (state.has_buffered, state.fetch_offset) == (False, 0)


class _NoFetcher:
    def wake(self) -> None:
        pass


def test_a_partition_that_cannot_be_read_does_not_hold_up_the_others() -> None:
    places = [TopicPartition("orders", index) for index in range(3)]
    states = {place: PartitionState(place) for place in places}
    for place, data in zip(places, (corrupt(batch(0, 1)), batch(0, 1), batch(0, 1)), strict=True):
        states[place].seek(0)
        states[place].fetched(data, [])
    settings = Consumer({"bootstrap.servers": "localhost:1"}).settings
    collector = Collector(settings, states, _NoFetcher())  # type: ignore[arg-type]
    collector.reassigned()
    assert list(collector.take(1)) == [places[1]]
    record = collector.take_one()
    assert record is not None
    assert record.partition == 2
    for _ in range(2):
        with pytest.raises(KafkaError, match=r"CORRUPT_MESSAGE: orders-0 at 0"):
            collector.take(500)
        with pytest.raises(KafkaError, match=r"CORRUPT_MESSAGE: orders-0 at 0"):
            collector.take_one()


def test_values_of_records_in_a_view_are_bytes() -> None:
    data = batch(0, 3) + batch(3, 3, compression=Compression.LZ4)
    state = PartitionState(PLACE)
    state.seek(0)
    assert state.fetched(memoryview(bytearray(data)).toreadonly(), [])
    records = state.take(9, check_crcs=True, committed_only=False)
    assert [record.value for record in records] == [b"%d" % number for number in range(6)]
    assert {type(record.value) for record in records} == {bytes}


def test_aborted_transactions_and_markers_are_passed_over() -> None:
    log = [
        batch(0, 2, 1, transactional=True),
        batch(2, 2, 2, transactional=True),
        batch(4, 1),
        marker(5, 1, commit=False),
        batch(6, 1, 1, transactional=True),
        marker(7, 2, commit=True),
        marker(8, 1, commit=True),
    ]
    state = reading(*log, aborted=[(1, 0)])
    assert take_all(state, committed_only=True) == [2, 3, 4, 6]
    assert state.position == 9
    assert take_all(reading(*log)) == [0, 1, 2, 3, 4, 6]


def test_a_transaction_that_was_aborted_is_known_from_its_first_offset_on() -> None:
    log = [batch(0, 1, 1, transactional=True), marker(1, 1, commit=True), batch(2, 1, 1, transactional=True)]
    state = reading(*log, marker(3, 1, commit=False), aborted=[(1, 2)])
    assert take_all(state, committed_only=True) == [0]


def test_a_seek_forgets_what_is_buffered_and_what_is_under_way() -> None:
    state = reading(batch(0, 5))
    generation = state.generation
    state.seek(2)
    assert (state.has_buffered, state.position, state.fetch_offset) == (False, 2, 2)
    assert state.generation != generation


def test_whose_clock_a_timestamp_is_of_is_known() -> None:
    state = reading(batch(0, 1), batch(1, 1, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=5))
    state.take_one(check_crcs=True, committed_only=False)
    assert state.timestamp_type is TimestampType.CREATE_TIME
    record = state.take_one(check_crcs=True, committed_only=False)
    assert record is not None
    assert (state.timestamp_type, record.timestamp) == (TimestampType.LOG_APPEND_TIME, 5)
