"""What a batch cannot be built from, and the batches that compaction needs."""

from __future__ import annotations

import pytest

from barnabas.batches import (
    HEADER_SIZE,
    Compression,
    Record,
    TimestampType,
    build_batch,
    check_crc,
    decode_header,
    decode_records,
    recompress,
)
from barnabas.wire.errors import EncodeError
from tests.batches.samples import NOW_MS

RECORD = Record(0, NOW_MS, b"key", b"value")


def test_offsets_count_up_whatever_the_records_say() -> None:
    batch = build_batch([RECORD._replace(offset=70), RECORD._replace(offset=3)], base_offset=5)
    assert [record.offset for record in decode_records(batch)] == [5, 6]


def test_offsets_that_are_kept_have_to_grow() -> None:
    for offsets in ((7, 7), (7, 6), (4, 5)):
        with pytest.raises(EncodeError, match="offset"):
            build_batch([RECORD._replace(offset=offset) for offset in offsets], base_offset=5, keep_offsets=True)


def test_the_last_offset_is_not_before_the_last_record() -> None:
    assert decode_header(build_batch([RECORD] * 2, base_offset=5, last_offset=6)).last_offset == 6
    with pytest.raises(EncodeError, match="last offset"):
        build_batch([RECORD] * 2, base_offset=5, last_offset=5)


def test_a_batch_without_records_keeps_its_producer() -> None:
    batch = build_batch(
        [],
        base_offset=5,
        last_offset=9,
        max_timestamp=NOW_MS,
        compression=Compression.ZSTD,
        producer_id=3,
        producer_epoch=1,
        base_sequence=40,
    )
    header = decode_header(batch)
    check_crc(header, batch)
    assert len(batch) == HEADER_SIZE
    assert (header.base_offset, header.last_offset, header.records_count) == (5, 9, 0)
    assert (header.base_timestamp, header.max_timestamp, header.last_sequence) == (-1, NOW_MS, 44)
    assert header.compression is Compression.NONE
    assert decode_records(batch) == []
    with pytest.raises(EncodeError, match="last offset"):
        build_batch([])


def test_negative_timestamps_are_refused_but_for_the_one_that_means_none() -> None:
    assert decode_records(build_batch([RECORD._replace(timestamp=-1)]))[0].timestamp == -1
    with pytest.raises(EncodeError, match="timestamp"):
        build_batch([RECORD._replace(timestamp=-2)])


@pytest.mark.parametrize(
    "fields",
    [
        {"producer_id": 2**63},
        {"producer_epoch": 2**15},
        {"base_sequence": 2**31},
        {"partition_leader_epoch": 2**31},
        {"base_offset": 2**63},
        {"max_timestamp": 2**63},
        {"last_offset": 2**31},
    ],
    ids=str,
)
def test_a_field_out_of_range_is_an_encode_error(fields: dict[str, int]) -> None:
    with pytest.raises(EncodeError, match="out of range"):
        build_batch([RECORD], **fields)  # type: ignore[arg-type]


def test_a_delta_out_of_range_is_an_encode_error() -> None:
    with pytest.raises(EncodeError):
        build_batch([RECORD, RECORD._replace(offset=2**31)], keep_offsets=True)
    with pytest.raises(EncodeError):
        build_batch([RECORD._replace(timestamp=2**63)])


def test_the_largest_timestamp_can_be_an_append_time() -> None:
    batch = build_batch([RECORD], timestamp_type=TimestampType.LOG_APPEND_TIME, max_timestamp=NOW_MS + 5)
    header = decode_header(batch)
    assert (header.base_timestamp, header.max_timestamp) == (NOW_MS, NOW_MS + 5)


def test_markers_are_not_compressed() -> None:
    batch = build_batch([RECORD], is_control=True)
    assert recompress(batch, Compression.GZIP) == batch


def test_recompressing_takes_the_one_batch_and_leaves_what_follows() -> None:
    batch = build_batch([RECORD])
    assert recompress(batch + b"rest", Compression.NONE) == batch
    assert decode_records(recompress(batch + b"rest", Compression.GZIP)) == [RECORD]
