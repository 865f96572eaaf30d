"""Validation of batches with very many records: pauses by count, and memory that does not grow with the records."""

from __future__ import annotations

import tracemalloc

import pytest

from barnabas.batches import (
    AppendRules,
    BatchHeader,
    Compression,
    InvalidBatch,
    ValidBatch,
    decode_header,
    encode_batch,
)
from barnabas.batches.format import MAGIC
from barnabas.batches.reader import CHUNK_LENGTHS, CHUNK_RECORDS
from barnabas.batches.validation import MAX_RECORD_ERRORS, must_open, validate_in_slices
from barnabas.wire import ErrorCode
from tests.counting import counted

NOW_MS = 1_700_000_000_000
COUNT = 200_000
KEYLESS = bytes([12, 0, 0, 0, 1, 1, 0])  # length 6, attributes, two deltas of 0, null key, null value, no headers


def batch_of(count: int, compression: Compression, *, base_timestamp: int = 2, max_timestamp: int = 1) -> bytes:
    """A batch of the smallest records. The default timestamps make the validation decode every record."""
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=-1,
        magic=MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=count - 1,
        base_timestamp=base_timestamp,
        max_timestamp=max_timestamp,
        producer_id=-1,
        producer_epoch=-1,
        base_sequence=-1,
        records_count=count,
    )
    return encode_batch(header, KEYLESS * count, compression)


@pytest.mark.parametrize("compression", list(Compression))
def test_records_are_decoded_a_few_hundred_at_a_time_and_not_kept(compression: Compression) -> None:
    batch = batch_of(COUNT, compression)
    rules = AppendRules(max_message_bytes=len(batch))
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        _, pauses = counted(validate_in_slices(batch, rules, partition="t-0", now_ms=NOW_MS))
        used = tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()
    assert pauses >= COUNT // CHUNK_RECORDS
    assert used < 3 * len(KEYLESS) * COUNT  # the decompressed payload and some more, not an object for each record


def test_lengths_are_checked_a_few_thousand_at_a_time() -> None:
    batch = batch_of(COUNT, Compression.NONE, base_timestamp=1)
    rules = AppendRules(max_message_bytes=len(batch))
    valid, pauses = counted(validate_in_slices(batch, rules, partition="t-0", now_ms=NOW_MS))
    assert isinstance(valid, ValidBatch)
    assert pauses >= COUNT // CHUNK_LENGTHS


def test_a_response_lists_so_many_errors_and_counts_all() -> None:
    batch = batch_of(COUNT, Compression.GZIP)
    rules = AppendRules(compacted=True)
    found, _ = counted(validate_in_slices(batch, rules, partition="t-0", now_ms=NOW_MS))
    assert isinstance(found, InvalidBatch)
    assert found.error_code is ErrorCode.INVALID_RECORD
    assert len(found.record_errors) == MAX_RECORD_ERRORS
    assert f"due to {COUNT} record errors" in found.message


def test_a_payload_is_opened_only_if_the_rules_need_it() -> None:
    usual = decode_header(batch_of(3, Compression.ZSTD, base_timestamp=1))
    odd = decode_header(batch_of(3, Compression.ZSTD))
    plain = decode_header(batch_of(3, Compression.NONE))
    assert not must_open(usual, AppendRules(), NOW_MS)
    assert must_open(usual, AppendRules(compacted=True), NOW_MS)
    assert must_open(usual, AppendRules(compression=Compression.LZ4), NOW_MS)
    assert must_open(odd, AppendRules(), NOW_MS)
    assert not must_open(plain, AppendRules(compacted=True), NOW_MS)
