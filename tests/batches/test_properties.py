"""Round trips of every batch, and what becomes of bytes that were cut, changed or invented."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.batches import (
    HEADER_SIZE,
    AppendRules,
    BatchError,
    Compression,
    Record,
    TimestampType,
    TruncatedBatchError,
    batch_crc,
    build_batch,
    check_crc,
    check_record_lengths,
    decode_header,
    decode_payload,
    decode_records,
    decompress,
    end_of_whole_batches,
    iterate_batches,
    recompress,
    validate_produce,
)
from tests.batches.samples import NOW_MS, compressions, many_examples, property_settings, record_lists

MEBIBYTE = 1024 * 1024


@property_settings
@given(record_lists(), compressions)
def test_what_is_built_is_read_again(records: list[Record], compression: Compression) -> None:
    batch = build_batch(records, compression=compression)
    header = decode_header(batch)
    check_crc(header, batch)
    assert decode_records(batch) == records
    assert header.size_in_bytes == len(batch)
    assert header.records_count == header.last_offset_delta + 1 == len(records)
    assert header.base_timestamp == records[0].timestamp
    assert header.max_timestamp == max(record.timestamp for record in records)
    check_record_lengths(decode_payload(batch), len(records))


@property_settings
@given(
    record_lists(),
    st.integers(0, 2**62),
    st.integers(-1, 2**63 - 1),
    st.integers(-1, 2**15 - 1),
    st.integers(-1, 2**31 - 1),
    st.integers(-1, 2**31 - 1),
    st.booleans(),
    st.booleans(),
)
def test_every_field_of_the_header_is_kept(
    records: list[Record],
    base_offset: int,
    producer_id: int,
    producer_epoch: int,
    base_sequence: int,
    leader_epoch: int,
    is_transactional: bool,
    is_control: bool,
) -> None:
    batch = build_batch(
        records,
        base_offset=base_offset,
        timestamp_type=TimestampType.LOG_APPEND_TIME,
        max_timestamp=NOW_MS,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        base_sequence=base_sequence,
        is_transactional=is_transactional,
        is_control=is_control,
        partition_leader_epoch=leader_epoch,
    )
    header = decode_header(batch)
    assert header.base_offset == base_offset
    assert header.producer_id == producer_id
    assert header.producer_epoch == producer_epoch
    assert header.base_sequence == base_sequence
    assert header.partition_leader_epoch == leader_epoch
    assert header.is_transactional == is_transactional
    assert header.is_control == is_control
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert decode_records(batch) == [
        record._replace(offset=base_offset + record.offset, timestamp=NOW_MS) for record in records
    ]


@property_settings
@given(record_lists(min_size=2), st.data())
def test_offsets_with_gaps_are_kept(records: list[Record], data: st.DataObject) -> None:
    steps = data.draw(st.lists(st.integers(1, 1000), min_size=len(records), max_size=len(records)))
    offset = 100
    sparse = []
    for record, step in zip(records, steps, strict=True):
        offset += step
        sparse.append(record._replace(offset=offset))
    batch = build_batch(sparse, base_offset=100, keep_offsets=True, last_offset=offset + 7, delete_horizon_ms=NOW_MS)
    header = decode_header(batch)
    assert decode_records(batch) == sparse
    assert (header.base_offset, header.last_offset, header.delete_horizon_ms) == (100, offset + 7, NOW_MS)


@property_settings
@given(record_lists(), compressions, compressions)
def test_recompressed_records_are_the_same(records: list[Record], source: Compression, target: Compression) -> None:
    batch = recompress(build_batch(records, compression=source), target)
    check_crc(decode_header(batch), batch)
    assert decode_header(batch).compression is target
    assert decode_records(batch) == records


@property_settings
@given(st.lists(st.tuples(record_lists(), compressions), min_size=1, max_size=4))
def test_batches_one_after_the_other_are_walked(content: list[tuple[list[Record], Compression]]) -> None:
    batches = [build_batch(records, compression=compression) for records, compression in content]
    data = b"".join(batches)
    walked = list(iterate_batches(data))
    assert [decode_records(data, position, header) for position, header in walked] == [
        records for records, _ in content
    ]
    assert [data[position : position + header.size_in_bytes] for position, header in walked] == batches
    assert [position for position, _ in iterate_batches(data, len(batches[0]))] == [p for p, _ in walked[1:]]


@pytest.mark.parametrize("compression", list(Compression))
def test_wherever_the_bytes_end_the_whole_batches_are_found(compression: Compression) -> None:
    records = [Record(i, NOW_MS, b"key", b"value" * 3, (("h", b"v"),)) for i in range(3)]
    first = build_batch(records, compression=compression)
    data = first + build_batch(records, base_offset=3, compression=compression)
    for end in range(len(data) + 1):
        whole = 0 if end < len(first) else len(first) if end < len(data) else len(data)
        assert end_of_whole_batches(data[:end]) == whole
        if end == whole:
            assert len(list(iterate_batches(data[:end]))) == (whole + 1) // len(first)
        else:
            with pytest.raises(TruncatedBatchError) as raised:
                list(iterate_batches(data[:end]))
            assert raised.value.position == whole


@pytest.mark.parametrize("compression", list(Compression))
def test_a_batch_whose_payload_was_cut_gives_no_records(compression: Compression) -> None:
    records = [Record(i, NOW_MS + i, b"key", b"value" * 3, (("h", b"v"),)) for i in range(3)]
    batch = build_batch(records, compression=compression)
    for end in range(HEADER_SIZE, len(batch)):
        header = decode_header(batch)._replace(batch_length=end - 12)
        with pytest.raises(BatchError):
            decode_records(batch, 0, header)


@pytest.mark.parametrize("compression", list(Compression))
def test_any_changed_byte_after_the_crc_is_a_wrong_crc(compression: Compression) -> None:
    batch = build_batch([Record(0, NOW_MS, b"key", b"value")], compression=compression)
    for position in range(17, len(batch)):
        changed = bytearray(batch)
        changed[position] ^= 0x10
        with pytest.raises(BatchError):
            check_crc(decode_header(changed), changed)


@many_examples
@given(record_lists(), compressions, st.data())
def test_changed_bytes_raise_nothing_but_batch_errors(
    records: list[Record], compression: Compression, data: st.DataObject
) -> None:
    batch = bytearray(build_batch(records, compression=compression))
    changes = st.tuples(st.integers(0, min(len(batch) - 1, 200)), st.integers(0, 255))
    for position, byte in data.draw(st.lists(changes, min_size=1, max_size=4)):
        batch[position] = byte
    with contextlib.suppress(BatchError):
        for position, header in iterate_batches(batch):
            decode_records(batch, position, header, max_decompressed_bytes=MEBIBYTE)
    # The same with a right checksum, so that validation looks further than that.
    batch[17:21] = batch_crc(batch, len(batch)).to_bytes(4)
    for rules in (AppendRules(), AppendRules(compacted=True, max_decompressed_bytes=MEBIBYTE)):
        validate_produce(bytes(batch), 9, rules, partition="t-0", now_ms=NOW_MS)


@many_examples
@given(st.binary(max_size=200), st.integers(-(2**31), 2**31 - 1))
def test_invented_records_raise_nothing_but_batch_errors(payload: bytes, count: int) -> None:
    header = decode_header(build_batch([Record(0, NOW_MS, None, None)]))._replace(
        batch_length=HEADER_SIZE - 12 + len(payload), records_count=count
    )
    try:
        records = decode_records(bytes(HEADER_SIZE) + payload, 0, header)
    except BatchError:
        return
    assert len(records) == count
    check_record_lengths(payload, count)


@many_examples
@given(
    compressions,
    st.binary(max_size=100),
    st.sampled_from([b"", b"\x82SNAPPY\x00", b"\x04\x22\x4d\x18", b"\x28\xb5\x2f\xfd", b"\x1f\x8b\x08\x00"]),
)
def test_invented_compressed_data_raises_nothing_but_batch_errors(
    compression: Compression, data: bytes, magic: bytes
) -> None:
    with contextlib.suppress(BatchError):
        assert len(decompress(compression, magic + data, MEBIBYTE)) <= MEBIBYTE


@property_settings
@given(st.binary(max_size=120))
def test_invented_requests_get_an_answer(data: bytes) -> None:
    validate_produce(data, 9, AppendRules(), partition="t-0", now_ms=NOW_MS)
