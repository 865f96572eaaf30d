"""Batches that a producer sent or a disk holds: opened or refused, in pieces as at once, in proportion to their bytes.

An input is which topic and version it is sent to, whether length and checksum are made to fit (so that what comes after the
checksum is reached), and the bytes.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from barnabas.batches import (
    AppendRules,
    BatchError,
    BatchHeader,
    Compression,
    InvalidBatch,
    Record,
    TimestampType,
    ValidBatch,
    build_batch,
    build_end_txn_marker,
    check_crc,
    check_produce,
    check_record_lengths,
    decode_header,
    decode_payload,
    decode_records_of_payload,
    decompress,
    end_of_whole_batches,
    iterate_batches,
    must_open,
    offset_of_max_timestamp,
    validate_batch,
    validate_in_slices,
)
from barnabas.batches.compression import most_decompressed_bytes
from barnabas.batches.format import HEADER_SIZE
from barnabas.batches.reader import decode_records_in_chunks
from barnabas.batches.spans import retain_records, walk_spans
from barnabas.batches.stamping import stamp
from tests.broker.test_fuzz_produce import repair
from tests.counting import counted

NOW_MS = 1_700_000_000_000
MAX_OPENED = 1 << 20
RULES = (
    AppendRules(max_decompressed_bytes=MAX_OPENED),
    AppendRules(compacted=True, max_decompressed_bytes=MAX_OPENED),
    AppendRules(timestamp_type=TimestampType.LOG_APPEND_TIME, max_decompressed_bytes=MAX_OPENED),
    AppendRules(timestamp_before_max_ms=1000, timestamp_after_max_ms=0, max_decompressed_bytes=MAX_OPENED),
    AppendRules(open_compressed=True, max_message_bytes=1500, max_decompressed_bytes=MAX_OPENED),
    *(
        AppendRules(compression=each, compacted=each.value % 2 == 0, max_decompressed_bytes=MAX_OPENED)
        for each in Compression
    ),
)
VERSIONS = (3, 7, 9, 13)
AS_IT_IS, FITTING_CHECKSUM, FITTING_LENGTH = range(3)


def seeds() -> Iterator[bytes]:
    records = [
        Record(0, NOW_MS, b"key", b"value", (("h", b"v"), ("", None))),
        Record(1, NOW_MS + 5, None, bytes(300)),
        Record(2, NOW_MS - 9, b"", None),
    ]
    for number, compression in enumerate(Compression):
        for some in (records, records[:1], records * 4):
            batch = build_batch(some, compression=compression)
            for rules in range(len(RULES)):
                yield bytes((rules, number, FITTING_LENGTH)) + batch
        yield bytes((0, 3, FITTING_CHECKSUM)) + build_batch(
            records, compression=compression, producer_id=5, producer_epoch=1, base_sequence=7, is_transactional=True
        )
    marker = build_end_txn_marker(commit=True, producer_id=5, producer_epoch=1, coordinator_epoch=3, timestamp=NOW_MS)
    yield bytes((0, 3, AS_IT_IS)) + marker
    yield bytes((0, 3, AS_IT_IS)) + build_batch(records) + build_batch(records, base_offset=3)


def check(data: bytes) -> None:
    if len(data) < 3:
        return
    rules, version, fitting = RULES[data[0] % len(RULES)], VERSIONS[data[1] % len(VERSIONS)], data[2] % 3
    batch = bytearray(data[3:])
    if fitting:
        repair(batch, length=fitting == FITTING_LENGTH)
    sent = bytes(batch)
    opened = check_opening(sent)
    check_validation(sent, version, rules, opened)


def check_opening(data: bytes) -> list[Record] | None:
    """The records of the first batch, or None if it cannot be opened."""
    assert 0 <= end_of_whole_or_none(data) <= len(data)
    first: list[Record] | None = None
    position = 0
    try:
        for position, header in iterate_batches(data):
            records = opened_records(data, position, header)
            first = records if position == 0 else first
            if position > 8 * HEADER_SIZE:
                break
    except BatchError:
        pass
    return first


def end_of_whole_or_none(data: bytes) -> int:
    try:
        return end_of_whole_batches(data)
    except BatchError:
        return 0


def opened_records(data: bytes, position: int, header: BatchHeader) -> list[Record]:
    stored = data[position + HEADER_SIZE : position + header.size_in_bytes]
    payload = decode_payload(data, position, header, max_decompressed_bytes=MAX_OPENED)
    assert len(payload) <= max(MAX_OPENED, len(stored))
    assert len(payload) <= most_decompressed_bytes(header.compression, stored), "more than the bound"
    assert decompress(header.compression, memoryview(stored), len(payload)) == payload, "its own size is too small"
    whole = outcome(lambda: decode_records_of_payload(payload, header))
    for size in (1, 3):
        some = outcome(
            lambda size=size: [r for chunk in decode_records_in_chunks(payload, header, size) for r in chunk]
        )
        assert some == whole, f"in chunks of {size}: {some}, not {whole}"
    if whole is None:
        raise BatchError("not opened")
    check_record_lengths(payload, header.records_count)
    spans = walk_spans(payload, 0, header.records_count)
    assert [(span.key, span.has_value) for span in spans] == [(each.key, each.value is not None) for each in whole]
    if whole and not header.is_control:
        kept = retain_records(header, payload, spans)
        assert [each.key for each in opened_again(kept)] == [each.key for each in whole]
        outcome(lambda: offset_of_max_timestamp(data, position, header))
    return list(whole)


def opened_again(batch: bytes) -> list[Record]:
    header = decode_header(batch)
    check_crc(header, batch)
    return decode_records_of_payload(decode_payload(batch, 0, header), header)


def check_validation(data: bytes, version: int, rules: AppendRules, records: list[Record] | None) -> None:
    header = check_produce(data, version)
    if isinstance(header, InvalidBatch):
        return
    how: dict[str, Any] = {"partition": "t-0", "now_ms": NOW_MS}
    result = validate_batch(data, rules, header=header, **how)
    assert counted(validate_in_slices(memoryview(data), rules, **how))[0] == result, "a view gives another result"
    if outcome(lambda: must_open(header, rules, NOW_MS)):
        payload = error_or(lambda: decode_payload(data, 0, header, max_decompressed_bytes=rules.max_decompressed_bytes))
        given = counted(validate_in_slices(data, rules, payload=payload, **how))[0]
        assert given == result, f"with the payload given: {given}, not {result}"
    if isinstance(result, ValidBatch):
        check_valid(result, rules, records)


def check_valid(result: ValidBatch, rules: AppendRules, records: list[Record] | None) -> None:
    batch = bytearray(result.batch)
    assert decode_header(batch) == result.header
    assert len(batch) == result.header.size_in_bytes
    check_crc(result.header, batch)
    stamp(batch, 17, 3)
    check_crc(decode_header(batch), batch)
    assert (1 << 63) > result.header.last_offset >= 0 and 17 + result.records_count - 1 == decode_header(
        batch
    ).last_offset
    if rules.compacted or rules.open_compressed or result.header.compression is Compression.NONE:
        if records is None:  # lengths are checked, not what is inside of records
            assert (result.header.compression is Compression.NONE and not rules.compacted) or rules.open_compressed
        else:
            found = opened_again(bytes(batch))
            assert [(each.key, each.value) for each in found] == [(each.key, each.value) for each in records]
            assert not rules.compacted or all(each.key is not None for each in found)


def outcome(work: Any) -> Any:
    """The result, or None for what cannot be read."""
    try:
        return work()
    except BatchError:
        return None


def error_or(work: Any) -> Any:
    try:
        return work()
    except BatchError as error:
        return error
