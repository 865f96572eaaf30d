"""Records as places in a payload, and batches of some of them."""

from __future__ import annotations

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.batches import (
    BatchError,
    Compression,
    Record,
    TimestampType,
    build_batch,
    build_end_txn_marker,
    check_crc,
    decode_header,
    decode_payload,
    decode_records,
)
from barnabas.batches.spans import empty_batch, retain_records, walk_spans

DATA = st.one_of(st.none(), st.binary(max_size=70), st.just(b"x" * 9000))
RECORDS = st.lists(
    st.builds(
        Record,
        st.just(0),
        st.integers(-1, 2**45),
        DATA,
        DATA,
        st.lists(st.tuples(st.text(max_size=3), DATA), max_size=2).map(tuple),
    ),
    min_size=1,
    max_size=90,
)


@given(RECORDS)
def test_spans_say_of_records_what_decoding_says(records: list[Record]) -> None:
    batch = build_batch(records, base_offset=50)
    header, payload = decode_header(batch), decode_payload(batch)
    spans = walk_spans(payload, 0, len(records))
    for number, (span, record) in enumerate(zip(spans, decode_records(batch), strict=True)):
        assert (span.key, span.has_value) == (record.key, record.value is not None)
        assert header.base_timestamp + span.timestamp_delta == record.timestamp
        assert span.offset_delta == number
    assert [span.start for span in spans] == [0, *(span.end for span in spans[:-1])]
    assert spans[-1].end == len(payload)


@given(RECORDS, st.integers(0, 90))
def test_a_walk_goes_on_where_another_ended(records: list[Record], first: int) -> None:
    payload = decode_payload(build_batch(records))
    first = min(first, len(records))
    some = walk_spans(payload, 0, first)
    rest = walk_spans(payload, some[-1].end if some else 0, len(records) - first)
    assert some + rest == walk_spans(payload, 0, len(records))


@given(
    RECORDS,
    st.data(),
    st.sampled_from(Compression),
    st.sampled_from(TimestampType),
    st.one_of(st.none(), st.integers(0, 2**45)),
)
def test_a_batch_of_some_records_is_the_one_that_would_be_built_of_them(
    records: list[Record],
    data: st.DataObject,
    compression: Compression,
    timestamp_type: TimestampType,
    delete_horizon_ms: int | None,
) -> None:
    is_append_time = timestamp_type is TimestampType.LOG_APPEND_TIME
    options = {
        "base_offset": 7,
        "compression": compression,
        "timestamp_type": timestamp_type,
        "max_timestamp": 2**46 if is_append_time else None,
        "producer_id": 5,
        "producer_epoch": 6,
        "base_sequence": 8,
        "is_transactional": True,
        "partition_leader_epoch": 9,
    }
    batch = build_batch(records, **options)  # type: ignore[arg-type]
    kept = data.draw(st.sets(st.integers(0, len(records) - 1), min_size=1))
    header, payload = decode_header(batch), decode_payload(batch)
    spans = walk_spans(payload, 0, len(records))
    retained = retain_records(header, payload, [spans[number] for number in sorted(kept)], delete_horizon_ms)

    whole = decode_records(batch)
    expected = build_batch(
        [whole[number] for number in sorted(kept)],
        keep_offsets=True,
        last_offset=7 + len(records) - 1,
        delete_horizon_ms=delete_horizon_ms,
        **options,  # type: ignore[arg-type]
    )
    assert retained == expected
    check_crc(decode_header(retained), retained)


def test_a_delete_horizon_stays_when_more_records_go() -> None:
    records = [Record(0, 100 + number, b"k%d" % number, None) for number in range(3)]
    batch = build_batch(records, delete_horizon_ms=5000)
    header, payload = decode_header(batch), decode_payload(batch)
    retained = retain_records(header, payload, walk_spans(payload, 0, 3)[2:])
    assert decode_header(retained).delete_horizon_ms == 5000
    assert [(record.offset, record.timestamp) for record in decode_records(retained)] == [(2, 102)]


def test_an_emptied_batch_keeps_its_offsets_its_producer_and_its_largest_timestamp() -> None:
    batch = build_batch(
        [Record(0, 100, b"k", b"v"), Record(0, 200, b"k", b"v")],
        base_offset=40,
        compression=Compression.GZIP,
        delete_horizon_ms=5000,
        producer_id=1,
        producer_epoch=2,
        base_sequence=3,
        is_transactional=True,
        partition_leader_epoch=4,
    )
    empty = empty_batch(decode_header(batch))
    header = decode_header(empty)
    check_crc(header, empty)
    assert decode_records(empty) == []
    assert (header.base_offset, header.last_offset, header.max_timestamp, header.base_timestamp) == (40, 41, 200, -1)
    assert (header.producer_id, header.producer_epoch, header.last_sequence) == (1, 2, 4)
    assert (header.is_transactional, header.is_control, header.delete_horizon_ms) == (True, False, None)
    assert (header.compression, header.partition_leader_epoch) == (Compression.NONE, 4)
    assert empty_batch(header) == empty


def test_an_emptied_marker_is_still_a_control_batch() -> None:
    marker = build_end_txn_marker(commit=True, producer_id=1, producer_epoch=2, coordinator_epoch=3, timestamp=100)
    header = decode_header(empty_batch(decode_header(marker)))
    assert (header.is_control, header.is_transactional, header.records_count) == (True, True, 0)


@given(RECORDS, st.data())
def test_damaged_records_are_a_batch_error_or_other_records(records: list[Record], data: st.DataObject) -> None:
    payload = bytearray(decode_payload(build_batch(records)))
    payload[data.draw(st.integers(0, len(payload) - 1))] = data.draw(st.integers(0, 255))
    with suppress(BatchError):
        spans = walk_spans(bytes(payload), 0, len(records))
        assert all(0 <= span.start < span.rest < span.end <= len(payload) for span in spans)


def test_more_records_than_there_are_is_a_batch_error() -> None:
    payload = decode_payload(build_batch([Record(0, 1, b"k", b"v")]))
    with pytest.raises(BatchError):
        walk_spans(payload, 0, 2)


def test_a_null_value_with_a_byte_too_many_is_null() -> None:
    # length 7, attributes, two deltas, no key, -1 in two bytes, no headers
    assert not walk_spans(b"\x0e\x00\x00\x00\x01\x81\x00\x00", 0, 1)[0].has_value
