"""The parts of a share consumer without a node: sessions, acknowledgements, what is acquired, and what is in flight."""

from __future__ import annotations

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.batches import Record, build_batch
from barnabas.client import (
    AcknowledgeType,
    ConfigError,
    ErrorCode,
    KafkaError,
    ShareConsumer,
    ShareRecord,
    TopicPartition,
    Uuid,
)
from barnabas.client.share_consuming.acknowledgements import GAP, Span, batches, spans_of
from barnabas.client.share_consuming.acquired import Acquired, read_acquired
from barnabas.client.share_consuming.in_flight import Delivery, InFlight, Origin
from barnabas.client.share_consuming.session import LOST, MAX_EPOCH, ShareSession

JOBS_0, JOBS_1 = TopicPartition("jobs", 0), TopicPartition("jobs", 1)
OLD, NEW = Uuid(b"o" * 16), Uuid(b"n" * 16)
HERE = Origin(1, 0)
ACCEPT, RELEASE, REJECT, RENEW = AcknowledgeType

# --- sessions


def test_a_session_lists_only_changes() -> None:
    session = ShareSession()
    assert session.fetch({JOBS_0: OLD}) == (0, {JOBS_0: OLD}, {})
    session.answered(ErrorCode.NONE)
    assert session.fetch({JOBS_0: OLD, JOBS_1: OLD}) == (1, {JOBS_1: OLD}, {})
    session.answered(ErrorCode.NONE)
    assert session.fetch({JOBS_0: NEW}) == (2, {JOBS_0: NEW}, {JOBS_0: OLD, JOBS_1: OLD})


@pytest.mark.parametrize("code", sorted(LOST))
def test_a_lost_session_begins_anew(code: ErrorCode) -> None:
    session = ShareSession()
    session.fetch({JOBS_0: OLD})
    session.answered(ErrorCode.NONE)
    assert session.is_open
    session.answered(code)
    assert not session.is_open
    assert session.fetch({JOBS_0: OLD}) == (0, {JOBS_0: OLD}, {})


def test_other_errors_keep_the_session() -> None:
    session = ShareSession()
    session.fetch({JOBS_0: OLD})
    session.answered(ErrorCode.NONE)
    session.answered(ErrorCode.UNKNOWN_SERVER_ERROR)
    assert session.fetch({JOBS_0: OLD}) == (2, {}, {})


def test_epochs_begin_at_one_again_after_the_last() -> None:
    session = ShareSession()
    session.epoch = MAX_EPOCH
    session.answered(ErrorCode.NONE)
    assert session.epoch == 1


# --- acknowledgements


@given(st.dictionaries(st.integers(0, 60), st.sampled_from([GAP, *AcknowledgeType])))
def test_requests_say_what_was_decided(decided: dict[int, int]) -> None:
    said: dict[int, int] = {}
    found = batches(spans_of(decided.items()))
    for first, last, types in found:
        assert len(types) in (1, last - first + 1)
        for offset in range(first, last + 1):
            assert offset not in said
            said[offset] = types[0] if len(types) == 1 else types[offset - first]
    assert said == decided
    assert all(before.last_offset + 1 < after.first_offset for before, after in pairwise(found))


def test_a_long_gap_is_one_batch() -> None:
    spans = [Span(0, 0, ACCEPT), Span(1, 2**40, GAP)]
    assert batches(spans) == [(0, 0, [1]), (1, 2**40, [0])]


# --- what is acquired


def batch(first: int, *values: bytes, gaps: int = 0) -> bytes:
    step = gaps + 1
    records = [Record(first + at * step, 1000, None, value, ()) for at, value in enumerate(values)]
    return build_batch(records, base_offset=first, keep_offsets=True)


def read(data: bytes, *acquired: tuple[int, int, int]) -> tuple[list[tuple[int, int]], list[Span], object]:
    found = read_acquired("jobs", 0, data, [Acquired(*each) for each in acquired], check_crcs=True)
    return [(record.offset, record.delivery_count) for record in found.records], found.spans, found.error


def test_only_acquired_records_are_delivered() -> None:
    data = batch(0, b"a", b"b", b"c") + batch(3, b"d", b"e")
    assert read(data, (0, 2, 1), (4, 4, 3)) == ([(0, 1), (1, 1), (2, 1), (4, 3)], [], None)
    assert read(data, (1, 3, 2)) == ([(1, 2), (2, 2), (3, 2)], [], None)
    assert read(data, (0, 0, 1), (1, 4, 2)) == ([(0, 1), (1, 2), (2, 2), (3, 2), (4, 2)], [], None)


def test_acquired_offsets_without_records_are_gaps() -> None:
    data = batch(10, b"a", b"b", gaps=2)
    assert read(data, (8, 15, 1)) == ([(10, 1), (13, 1)], [(8, 9, GAP), (11, 12, GAP), (14, 15, GAP)], None)
    assert read(b"", (3, 4, 1)) == ([], [(3, 4, GAP)], None)


def test_a_corrupt_batch_is_rejected_and_the_others_are_delivered() -> None:
    broken = bytearray(batch(2, b"c", b"d"))
    broken[-1] ^= 1
    records, spans, error = read(batch(0, b"a", b"b") + bytes(broken) + batch(4, b"e"), (0, 4, 1))
    assert records == [(0, 1), (1, 1), (4, 1)]
    assert spans == [(2, 3, REJECT)]
    assert error is not None


@given(st.data())
def test_each_acquired_offset_ends_up_in_one_place(data: st.DataObject) -> None:
    present = sorted(data.draw(st.sets(st.integers(0, 40), max_size=20)))
    wanted = sorted(data.draw(st.sets(st.integers(0, 40), max_size=30)))
    pieces, at = b"", 0
    while at < len(present):
        size = data.draw(st.integers(1, 5))
        some = present[at : at + size]
        pieces += build_batch(
            [Record(offset, 0, None, b"", ()) for offset in some], base_offset=some[0], keep_offsets=True
        )
        at += size
    ranges = [Acquired(span.first, span.last, 1) for span in spans_of((offset, 1) for offset in wanted)]
    found = read_acquired("jobs", 0, pieces, ranges, check_crcs=True)
    assert [record.offset for record in found.records] == sorted(set(present) & set(wanted))
    assert batches(found.spans) == batches(spans_of((offset, GAP) for offset in set(wanted) - set(present)))


# --- what is in flight


def delivery(
    offsets: range, place: TopicPartition = JOBS_0, origin: Origin = HERE, expires_s: float = 100.0
) -> Delivery:
    records: list[ShareRecord] = [ShareRecord(*place, offset, 0, None, b"", (), 1) for offset in offsets]
    return Delivery(origin, place, OLD, records, expires_s)


def offsets_of(records: list[ShareRecord]) -> list[int]:
    return [record.offset for record in records]


def test_records_are_taken_in_parts_and_accepted() -> None:
    flight = InFlight()
    flight.add(delivery(range(5)))
    flight.add(delivery(range(2), JOBS_1))
    assert offsets_of(flight.take(3, 0)) == [0, 1, 2]
    flight.accept_all()
    assert list(flight.take_decided()) == [(HERE, JOBS_0, OLD, [(0, 2, ACCEPT)])]
    assert offsets_of(flight.take(10, 0)) == [3, 4, 0, 1]
    assert flight.take(10, 0) == []
    assert list(flight.take_decided()) == []


def test_records_whose_locks_have_ended_are_not_returned() -> None:
    flight = InFlight()
    flight.add(delivery(range(2), expires_s=5))
    flight.add(delivery(range(2, 4)))
    assert offsets_of(flight.take(10, 5)) == [2, 3]


def test_records_of_a_lost_session_are_not_returned() -> None:
    flight = InFlight()
    flight.add(delivery(range(2)))
    flight.add(delivery(range(2, 4), origin=Origin(1, 1)))
    flight.drop(HERE)
    assert offsets_of(flight.take(10, 0)) == [2, 3]


def test_acknowledgements_go_to_the_session_that_delivered() -> None:
    flight = InFlight()
    flight.add(delivery(range(2)))
    flight.add(delivery(range(1, 3), origin=Origin(2, 0)))
    assert offsets_of(flight.take(10, 0)) == [0, 1]
    flight.accept_all()
    assert [each.origin for each in flight.take_decided()] == [HERE]
    assert offsets_of(flight.take(10, 0)) == [1, 2]
    flight.accept_all()
    assert [each.origin for each in flight.take_decided()] == [Origin(2, 0)]


def test_a_renewed_record_has_to_be_acknowledged_again() -> None:
    flight = InFlight()
    flight.add(delivery(range(2)))
    flight.take(10, 0)
    flight.acknowledge(JOBS_0, 0, RENEW)
    assert offsets_of(flight.undecided()) == [1]
    flight.acknowledge(JOBS_0, 1, RELEASE)
    (sent,) = flight.take_decided()
    assert sent.spans == [(0, 0, RENEW), (1, 1, RELEASE)]
    with pytest.raises(KafkaError, match="not in flight"):
        flight.acknowledge(JOBS_0, 0, ACCEPT)
    assert flight.is_renewing
    flight.answered(sent, None)
    assert offsets_of(flight.take_renewed()) == [0]
    assert offsets_of(flight.undecided()) == [0]
    flight.acknowledge(JOBS_0, 0, ACCEPT)
    assert [each.spans for each in flight.take_decided()] == [[(0, 0, ACCEPT)]]


def test_a_record_that_was_not_renewed_is_gone() -> None:
    flight = InFlight()
    flight.add(delivery(range(1)))
    flight.take(10, 0)
    flight.acknowledge(JOBS_0, 0, RENEW)
    (sent,) = flight.take_decided()
    flight.answered(sent, KafkaError(ErrorCode.INVALID_RECORD_STATE))
    assert not flight.is_renewing
    assert flight.take_renewed() == []
    assert flight.undecided() == []


def test_records_that_are_put_back_come_first() -> None:
    flight = InFlight()
    flight.add(delivery(range(4)))
    flight.put_back(flight.take(3, 0)[1:])
    assert offsets_of(flight.take(10, 0)) == [1, 2, 3]


def test_buffered_records_of_revoked_partitions_are_released() -> None:
    flight = InFlight()
    flight.add(delivery(range(4)))
    flight.add(delivery(range(2), JOBS_1))
    flight.take(1, 0)
    assert list(flight.release_buffered({JOBS_0})) == [(HERE, JOBS_0, OLD, [(1, 3, RELEASE)])]
    assert flight.take(10, 0)[0][:2] == JOBS_1


# --- settings


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("auto.offset.reset", "set share.auto.offset.reset of the group"),
        ("enable.auto.commit", "no committed offsets"),
        ("group.instance.id", "no static members"),
        ("isolation.level", "set share.isolation.level of the group"),
    ],
)
def test_settings_of_consumer_groups_are_refused(name: str, text: str) -> None:
    value = "true" if name == "enable.auto.commit" else "earliest"
    with pytest.raises(ConfigError, match=text):
        ShareConsumer({"bootstrap.servers": "localhost:1", "group.id": "g", name: value})


def test_a_group_is_needed() -> None:
    with pytest.raises(ConfigError, match=r"group\.id"):
        ShareConsumer({"bootstrap.servers": "localhost:1"})
    with pytest.raises(ConfigError, match=r"share\.acquire\.mode"):
        ShareConsumer({"bootstrap.servers": "localhost:1", "group.id": "g", "share.acquire.mode": "both"})
