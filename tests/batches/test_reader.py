"""Records that lie about themselves, and what else a reader is asked."""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable

import pytest

from barnabas.batches import (
    HEADER_SIZE,
    BatchError,
    Compression,
    Record,
    TimestampType,
    build_batch,
    check_record_lengths,
    decode_header,
    decode_records,
    encode_batch,
    offset_of_max_timestamp,
)
from barnabas.batches.varint import encode_varint, read_raw_varint, read_raw_varlong
from tests.batches.samples import NOW_MS

HEADER = decode_header(build_batch([Record(0, NOW_MS, None, None)]))


def batch_of(payload: bytes, count: int = 1, compression: Compression = Compression.NONE) -> bytes:
    return encode_batch(HEADER._replace(records_count=count), payload, compression)


def record_of(body: bytes) -> bytes:
    return encode_varint(len(body)) + body


# attributes, timestamp delta, offset delta, no key, no value, no headers
PLAIN = record_of(b"\x00\x00\x00\x01\x01\x00")


def test_the_plain_record_of_these_tests_is_one() -> None:
    assert decode_records(batch_of(PLAIN)) == [Record(0, NOW_MS, None, None)]


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x00",
        b"\x01",  # a length of -1
        PLAIN[:-1],
        PLAIN + b"\x00",
        b"\x0e" + PLAIN[1:],  # longer than it is
        b"\x0a" + PLAIN[1:],  # shorter than it is
        b"\x0d" + PLAIN[1:],  # -7, where 6 would be right
        b"\xff\xff\xff\xff\xff\x01" + PLAIN[1:],  # a varint too long
        b"\xfe\xff\xff\xff\x0f" + PLAIN[1:],  # 2 GB
        record_of(b"\x00\x00\x01\x01\x01\x00"),  # an offset delta of -1
        record_of(b"\x00\x00\x00\x03\x01\x00"),  # a key of -2
        record_of(b"\x00\x00\x00\x03k\x01\x00"),  # the same, with bytes for it
        record_of(b"\x00\x00\x00\x01\x03v\x00"),  # a value of -2, with bytes for it
        record_of(b"\x00\x00\x00\x08k\x01\x00"),  # a key that goes on after the record
        record_of(b"\x00\x00\x00\xfe\xff\xff\xff\x0f\x01\x00"),
        record_of(b"\x00\x00\x00\x01\xfe\xff\xff\xff\x0f\x00"),
        record_of(b"\x00" + b"\xff" * 10 + b"\x01\x00\x01\x01\x00"),
        record_of(b"\x00\x00\x00\x01\x01\x01"),  # -1 headers
        record_of(b"\x00\x00\x00\x01\x01\x02"),
        record_of(b"\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f"),
        record_of(b"\x00\x00\x00\x01\x01\x02\x01\x01"),  # a header without a key
        record_of(b"\x00\x00\x00\x01\x01\x02\x02k\x03v"),  # a header value of -2
        record_of(b"\x00\x00\x00\x01\x01\x02\x02k\x08v"),
        record_of(b"\x00\x00\x00\x01\x01\x02\x08k\x01"),
    ],
    ids=bytes.hex,
)
@pytest.mark.parametrize("compression", [Compression.NONE, Compression.LZ4])
def test_a_record_that_lies_about_its_lengths_is_refused(payload: bytes, compression: Compression) -> None:
    for data in (batch_of(payload, 1, compression), batch_of(payload + PLAIN, 2, compression)):
        with pytest.raises(BatchError):
            decode_records(data)


@pytest.mark.parametrize("count", [-(2**31), -1, 0, 1, 3, 2**31 - 1])
def test_a_count_that_lies_is_refused(count: int) -> None:
    for compression in Compression:
        with pytest.raises(BatchError):
            decode_records(batch_of(PLAIN * 2, count, compression))
    with pytest.raises(BatchError):
        check_record_lengths(PLAIN * 2, count)
    check_record_lengths(PLAIN * 2, 2)


@pytest.mark.parametrize("payload", [b"\x01", b"\x0d" + PLAIN[1:], b"\xff\xff\xff\xff\x0f"], ids=bytes.hex)
def test_a_negative_length_is_seen_by_the_walk(payload: bytes) -> None:
    with pytest.raises(BatchError):
        check_record_lengths(payload, 1)
    with pytest.raises(BatchError):
        check_record_lengths(PLAIN + payload, 2)


@pytest.mark.parametrize("size", [0, 1, 57, 58, 59, 100, 8185, 8186, 8187, 100_000])
def test_the_walk_over_lengths_agrees_with_the_records(size: int) -> None:
    records = [Record(0, NOW_MS, None, b"x" * size), Record(1, NOW_MS, None, b"y")]
    payload = build_batch(records)[HEADER_SIZE:]
    check_record_lengths(payload, 2)
    for wrong in (payload[:-1], payload + b"\x00", payload[1:]):
        with pytest.raises(BatchError):
            check_record_lengths(wrong, 2)


def peak_bytes(function: Callable[[], object]) -> int:
    tracemalloc.start()
    try:
        with pytest.raises(BatchError):
            function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def test_memory_grows_with_the_input_and_not_with_its_claims() -> None:
    many_records = batch_of(PLAIN * 10, 2**31 - 1)
    many_headers = batch_of(record_of(b"\x00\x00\x00\x01\x01\xfe\xff\xff\xff\x0f\x02k\x01"))
    long_value = batch_of(record_of(b"\x00\x00\x00\x01\xfe\xff\xff\xff\x0f"))
    for data in (many_records, many_headers, long_value):
        assert peak_bytes(lambda data=data: decode_records(data)) < 100_000  # type: ignore[misc]


def test_with_append_time_all_records_have_the_time_of_the_batch() -> None:
    records = [Record(0, 5, None, b"a"), Record(1, 900, None, b"b")]
    batch = build_batch(records, timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=NOW_MS)
    assert [record.timestamp for record in decode_records(batch)] == [NOW_MS, NOW_MS]
    assert offset_of_max_timestamp(batch) == (NOW_MS, 0)


def test_the_first_record_of_the_largest_timestamp_is_found() -> None:
    records = [Record(0, timestamp, None, b"") for timestamp in (5, 9, 7, 9)]
    assert offset_of_max_timestamp(build_batch(records, base_offset=10)) == (9, 11)
    assert offset_of_max_timestamp(build_batch([Record(0, -1, None, b"")], base_offset=10)) == (-1, 10)
    with pytest.raises(BatchError):
        offset_of_max_timestamp(build_batch(records, max_timestamp=100))


def test_header_keys_that_are_not_utf_8_survive() -> None:
    batch = batch_of(record_of(b"\x00\x00\x00\x01\x01\x02\x04\xff\xc3\x02v"))
    [record] = decode_records(batch)
    assert record.headers == (("\udcff\udcc3", b"v"),)
    assert build_batch([record])[HEADER_SIZE:] == batch[HEADER_SIZE:]


def test_records_are_read_out_of_any_buffer_at_any_position() -> None:
    records = [Record(0, NOW_MS, b"k", b"v", (("h", b"x"),))]
    data = b"before" + build_batch(records) + b"after"
    for buffer in (data, bytearray(data), memoryview(data)):
        [record] = decode_records(buffer, 6)
        assert record == records[0]
        assert type(record.key) is type(record.value) is type(record.headers[0][1]) is bytes


VARINTS = [
    (0, "00"),
    (-1, "01"),
    (1, "02"),
    (63, "7e"),
    (-64, "7f"),
    (64, "8001"),
    (-65, "8101"),
    (8191, "fe7f"),
    (8192, "808001"),
    (2**31 - 1, "feffffff0f"),
    (-(2**31), "ffffffff0f"),
]
VARLONGS = [*VARINTS, (2**63 - 1, "feffffffffffffffff01"), (-(2**63), "ffffffffffffffffff01")]


@pytest.mark.parametrize(("value", "encoded"), VARLONGS)
def test_varints_are_zigzag(value: int, encoded: str) -> None:
    data = bytes.fromhex(encoded)
    assert encode_varint(value) == data
    raw, position = read_raw_varlong(b"." + data, 1)
    assert ((raw >> 1) ^ -(raw & 1), position) == (value, 1 + len(data))
    if (value, encoded) in VARINTS:
        assert read_raw_varint(b"." + data, 1) == (raw, position)


def test_a_varint_that_does_not_end_is_refused() -> None:
    for read, length in ((read_raw_varint, 5), (read_raw_varlong, 10)):
        with pytest.raises(BatchError):
            read(b"\x80" * length + b"\x00", 0)
        with pytest.raises(IndexError):
            read(b"\x80" * (length - 1), 0)
        assert read(b"\x80" * (length - 1) + b"\x00", 0) == (0, length)


def test_of_a_varint_with_too_many_bits_the_upper_are_dropped() -> None:
    assert read_raw_varint(b"\xff\xff\xff\xff\x7f", 0) == (0xFFFF_FFFF, 5)
    assert read_raw_varlong(b"\xff" * 9 + b"\x7f", 0) == (0xFFFF_FFFF_FFFF_FFFF, 10)
