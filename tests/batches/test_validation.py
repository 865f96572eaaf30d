"""What a leader takes and refuses, held against what Kafka's broker answered and what its validator says.

KafkaCases.java wrote what the validator says of the batches of cases.py.
"""

from __future__ import annotations

import struct
from typing import Any

import pytest

from barnabas.batches import (
    AppendRules,
    Compression,
    InvalidBatch,
    Record,
    TimestampType,
    ValidBatch,
    batch_crc,
    build_batch,
    check_crc,
    check_produce,
    decode_header,
    decode_payload,
    decode_records,
    encode_batch,
    stamp,
    validate_batch,
    validate_produce,
)
from barnabas.wire.errors import ErrorCode
from tests.batches.samples import NOW_MS, STORED_EPOCH, STORED_OFFSET, load

TOPICS = {
    "d-wire": AppendRules(),
    "d-small": AppendRules(max_message_bytes=300),
    "d-compact": AppendRules(compacted=True),
}
RECORDS = [Record(0, NOW_MS, b"a", b"one value"), Record(1, NOW_MS + 9, b"b", b"another value")]


def validate(data: bytes, rules: AppendRules | None = None) -> ValidBatch | InvalidBatch:
    return validate_batch(data, rules or AppendRules(), partition="t-0", now_ms=NOW_MS)


def with_crc(batch: bytes) -> bytes:
    return batch[:17] + struct.pack(">I", batch_crc(batch, len(batch))) + batch[21:]


@pytest.mark.parametrize("row", load("produce"), ids=lambda row: f"{row['case']}, {row['version']}")
def test_a_produce_request_is_answered_as_a_broker_answered_it(row: dict[str, Any]) -> None:
    result = validate_produce(
        bytes.fromhex(row["records"]),
        row["version"],
        TOPICS[row["topic"]],
        partition=f"{row['topic']}-{row['partition']}",
        now_ms=NOW_MS,
    )
    assert result.error_code == row["error_code"]
    if isinstance(result, InvalidBatch) and row["version"] >= 8:  # the first with messages
        assert result.answer_message == row["error_message"]
        assert [list(error) for error in result.record_errors] == row["record_errors"]


VALIDATIONS = load("kafka_validation")


@pytest.mark.parametrize("row", VALIDATIONS, ids=lambda row: row["name"])
def test_a_batch_is_judged_as_kafka_judges_it(row: dict[str, Any]) -> None:
    rules = dict(row["rules"])
    if "timestamp_type" in rules:
        rules["timestamp_type"] = {"LogAppendTime": TimestampType.LOG_APPEND_TIME}[rules["timestamp_type"]]
    if "compression" in rules:
        rules["compression"] = Compression[rules["compression"].upper()]
    data = bytes.fromhex(row["hex"])
    result = validate_produce(data, row["version"], AppendRules(**rules), partition="t-0", now_ms=NOW_MS)
    if row["error_code"] == -1:  # Kafka stumbles
        assert result.error_code is ErrorCode.INVALID_RECORD
        return
    assert result.error_code == row["error_code"]
    if isinstance(result, InvalidBatch):
        assert [list(error) for error in result.record_errors] == row["record_errors"]
        assert result.answer_message == (row["message"] if row["record_errors"] else None)
        return
    assert result.header == decode_header(result.batch)
    batch, stored = bytearray(result.batch), bytes.fromhex(row["stored"])
    stamp(batch, STORED_OFFSET, STORED_EPOCH)
    header = decode_header(batch)
    check_crc(header, batch)
    assert result.max_timestamp == row["max_timestamp"]
    assert header._replace(crc=0, batch_length=0) == decode_header(stored)._replace(crc=0, batch_length=0)
    assert decode_payload(batch) == decode_payload(stored)
    if header.compression in (Compression.NONE, decode_header(data).compression):
        assert batch == stored


def test_kafka_was_asked_about_everything_it_refuses() -> None:
    assert {row["error_code"] for row in VALIDATIONS} == {-1, 0, 2, 10, 32, 76, 87}


def test_a_good_batch_is_stored_as_the_bytes_that_came() -> None:
    batch = build_batch(RECORDS)
    result = validate(batch)
    assert isinstance(result, ValidBatch)
    assert result.batch is batch
    assert result.error_code is ErrorCode.NONE
    assert (result.records_count, result.max_timestamp, result.log_append_time_ms) == (2, NOW_MS + 9, -1)


def test_a_batch_may_come_as_a_view_into_its_request() -> None:
    request = b"head" + build_batch(RECORDS) + b"tail"
    result = validate_batch(memoryview(request)[4:-4], AppendRules(), partition="t-0", now_ms=NOW_MS)
    assert isinstance(result, ValidBatch)
    assert bytes(result.batch) == request[4:-4]


@pytest.mark.parametrize("compression", list(Compression))
def test_a_topic_that_stamps_its_own_time_stamps_it(compression: Compression) -> None:
    data = build_batch(RECORDS, compression=compression)
    result = validate(data, AppendRules(timestamp_type=TimestampType.LOG_APPEND_TIME))
    assert isinstance(result, ValidBatch)
    assert (result.log_append_time_ms, result.max_timestamp) == (NOW_MS, NOW_MS)
    check_crc(result.header, result.batch)
    assert result.header == decode_header(result.batch)
    assert {record.timestamp for record in decode_records(result.batch)} == {NOW_MS}
    assert data == build_batch(RECORDS, compression=compression)


def test_no_records_at_all_are_refused() -> None:
    for data in (None, b""):
        result = check_produce(data, 9)
        assert isinstance(result, InvalidBatch)
        assert result.error_code is ErrorCode.INVALID_RECORD
        assert validate_produce(data, 9, AppendRules(), partition="t-0", now_ms=NOW_MS) == result


def test_a_request_is_checked_without_its_crc_and_a_log_with_it() -> None:
    data = bytearray(build_batch(RECORDS))
    data[-1] ^= 1
    assert check_produce(bytes(data), 9) == decode_header(data)
    assert validate(bytes(data)).error_code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_unsupported(codec: int) -> None:
    batch = build_batch(RECORDS)
    result = validate(with_crc(batch[:22] + bytes([codec]) + batch[23:]))
    assert result.error_code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


CODECS = [codec for codec in Compression if codec is not Compression.NONE]


@pytest.mark.parametrize("codec", CODECS)
def test_a_compressed_batch_that_lies_about_its_count_is_seen_when_it_is_opened(codec: Compression) -> None:
    header = decode_header(build_batch(RECORDS))
    payload = decode_payload(build_batch(RECORDS))
    lie = encode_batch(header._replace(records_count=3, last_offset_delta=2), payload, codec)
    assert validate(lie).error_code is ErrorCode.NONE
    assert validate(lie, AppendRules(open_compressed=True)).error_code is ErrorCode.INVALID_RECORD
    assert validate(lie, AppendRules(compacted=True)).error_code is ErrorCode.INVALID_RECORD
    assert validate(lie, AppendRules(compression=Compression.NONE)).error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_more_records_than_bytes_can_hold_are_refused_unopened(codec: Compression) -> None:
    header = decode_header(build_batch(RECORDS))._replace(records_count=2**31 - 1, last_offset_delta=2**31 - 2)
    lie = encode_batch(header, decode_payload(build_batch(RECORDS)), codec)
    result = validate(lie)
    assert isinstance(result, InvalidBatch)
    assert result.error_code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_refused_when_it_would_be_opened(codec: Compression) -> None:
    bomb = build_batch([Record(0, NOW_MS, b"k", bytes(5_000_000))], compression=codec)
    rules = AppendRules(compacted=True, max_decompressed_bytes=1_000_000)
    assert validate(bomb, rules).error_code is ErrorCode.MESSAGE_TOO_LARGE  # producers of Java split the batch then
    assert validate(bomb, AppendRules(compacted=True)).error_code is ErrorCode.NONE


def test_a_timestamp_beyond_all_numbers_is_out_of_bounds() -> None:
    header = decode_header(build_batch(RECORDS))._replace(base_timestamp=2**63 - 1, max_timestamp=0)
    batch = encode_batch(header, decode_payload(build_batch(RECORDS)), Compression.NONE)
    result = validate(batch, AppendRules(timestamp_after_max_ms=2**63 - 1))
    assert result.error_code is ErrorCode.INVALID_TIMESTAMP
