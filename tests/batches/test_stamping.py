"""What a leader writes into a batch."""

from __future__ import annotations

import pytest

from barnabas.batches import (
    Compression,
    Record,
    TimestampType,
    build_batch,
    check_crc,
    decode_header,
    decode_records,
    stamp,
    stamp_max_timestamp,
)
from tests.batches.samples import NOW_MS

RECORDS = [Record(0, NOW_MS - 9, b"k", b"v"), Record(1, NOW_MS - 5, b"k", b"v")]


@pytest.mark.parametrize("position", [0, 11])
def test_offset_and_epoch_are_stamped_and_nothing_else(position: int) -> None:
    batch = build_batch(RECORDS)
    data = bytearray(b"x" * position + batch + b"y")
    stamp(data, 2**40, 17, position)
    header = decode_header(data, position)
    check_crc(header, data, position)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (2**40, 2**40 + 1, 17)
    assert header._replace(base_offset=0, partition_leader_epoch=-1) == decode_header(batch)
    assert data[:position] + data[-1:] == b"x" * position + b"y"
    assert data[position + 16 : -1] == batch[16:]


def test_a_stamp_can_be_set_through_a_view() -> None:
    data = bytearray(build_batch(RECORDS))
    stamp(memoryview(data), 5, 6)
    assert (decode_header(data).base_offset, decode_header(data).partition_leader_epoch) == (5, 6)


@pytest.mark.parametrize("compression", list(Compression))
@pytest.mark.parametrize("position", [0, 11])
def test_an_append_time_is_that_of_all_records(compression: Compression, position: int) -> None:
    data = bytearray(position) + build_batch(RECORDS, compression=compression, is_transactional=True)
    stamped = stamp_max_timestamp(data, TimestampType.LOG_APPEND_TIME, NOW_MS, position)
    header = decode_header(data, position)
    assert stamped == header
    check_crc(header, data, position)
    assert header.timestamp_type is TimestampType.LOG_APPEND_TIME
    assert header.is_transactional
    assert header.compression is compression
    assert [record.timestamp for record in decode_records(data, position)] == [NOW_MS, NOW_MS]


def test_a_create_time_gives_the_records_their_own_times_back() -> None:
    data = bytearray(build_batch(RECORDS))
    stamp_max_timestamp(data, TimestampType.LOG_APPEND_TIME, NOW_MS)
    stamp_max_timestamp(data, TimestampType.CREATE_TIME, NOW_MS - 5)
    assert data == build_batch(RECORDS)


def test_the_same_timestamp_leaves_even_a_wrong_crc_alone() -> None:
    data = bytearray(build_batch(RECORDS))
    data[17:21] = b"\x00\x00\x00\x01"
    before = bytes(data)
    assert stamp_max_timestamp(data, TimestampType.CREATE_TIME, NOW_MS - 5) == decode_header(before)
    assert data == before
