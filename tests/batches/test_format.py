"""The header of a batch: what stands in it, and what is no header."""

from __future__ import annotations

import struct

import pytest

from barnabas.batches import (
    HEADER_SIZE,
    BatchError,
    Compression,
    CorruptBatchError,
    Record,
    TruncatedBatchError,
    UnknownCompressionError,
    build_batch,
    check_crc,
    crc32c,
    decode_header,
    decode_whole_header,
)
from barnabas.wire.errors import ErrorCode, MalformedError
from tests.batches.samples import NOW_MS

BATCH = build_batch([Record(0, NOW_MS, b"key", b"value"), Record(1, NOW_MS, None, None)])


def changed(fmt: str, position: int, value: int) -> bytes:
    batch = bytearray(BATCH)
    struct.pack_into(">" + fmt, batch, position, value)
    return bytes(batch)


def test_the_checksum_is_crc_32c() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(b"6789", crc32c(b"12345")) == 0xE3069283


def test_a_wrong_crc_is_corrupt_message() -> None:
    batch = changed("I", 17, 1)
    with pytest.raises(CorruptBatchError) as raised:
        check_crc(decode_header(batch), batch)
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [3, 127, -1])
def test_an_unknown_magic_is_corrupt_message(magic: int) -> None:
    with pytest.raises(CorruptBatchError, match="magic") as raised:
        decode_header(changed("b", 16, magic))
    assert raised.value.code is ErrorCode.CORRUPT_MESSAGE


@pytest.mark.parametrize("magic", [0, 1])
def test_an_old_magic_is_invalid_record(magic: int) -> None:
    with pytest.raises(BatchError, match="magic") as raised:
        decode_header(changed("b", 16, magic))
    assert raised.value.code is ErrorCode.INVALID_RECORD


@pytest.mark.parametrize("length", [-(2**31), -1, 0, 13, 48])
def test_a_length_that_no_batch_has_is_corrupt_message(length: int) -> None:
    with pytest.raises(CorruptBatchError, match="length"):
        decode_header(changed("i", 8, length))


def test_a_header_needs_its_own_bytes_and_no_more() -> None:
    assert decode_header(BATCH[:HEADER_SIZE]) == decode_header(BATCH)
    for end in range(HEADER_SIZE):
        with pytest.raises(TruncatedBatchError) as raised:
            decode_header(BATCH[:end])
        assert raised.value.position == 0
        assert raised.value.code is ErrorCode.INVALID_RECORD


def test_a_whole_batch_needs_all_its_bytes() -> None:
    assert decode_whole_header(b"1234" + BATCH + b"5", 4) == decode_header(BATCH)
    with pytest.raises(TruncatedBatchError) as raised:
        decode_whole_header(b"1234" + BATCH[:-1], 4)
    assert raised.value.position == 4


def test_every_kind_of_buffer_is_read() -> None:
    assert decode_header(bytearray(BATCH)) == decode_header(memoryview(BATCH)) == decode_header(BATCH)


@pytest.mark.parametrize("codec", [5, 6, 7])
def test_a_codec_that_does_not_exist_is_unsupported(codec: int) -> None:
    header = decode_header(changed("h", 21, codec))
    with pytest.raises(UnknownCompressionError) as raised:
        _ = header.compression
    assert raised.value.code is ErrorCode.UNSUPPORTED_COMPRESSION_TYPE


def test_all_errors_are_malformed_errors() -> None:
    for error in (BatchError, CorruptBatchError, TruncatedBatchError, UnknownCompressionError):
        assert issubclass(error, MalformedError)


def test_offsets_follow_from_base_and_delta() -> None:
    header = decode_header(build_batch([Record(0, NOW_MS, None, None)] * 3, base_offset=40))
    assert (header.base_offset, header.last_offset, header.next_offset) == (40, 42, 43)


def test_sequences_go_on_at_zero_after_the_largest() -> None:
    records = [Record(0, NOW_MS, None, None)] * 3
    for base_sequence, last_sequence in ((-1, -1), (0, 2), (2**31 - 3, 2**31 - 1), (2**31 - 2, 0), (2**31 - 1, 1)):
        batch = build_batch(records, producer_id=1, producer_epoch=0, base_sequence=base_sequence)
        assert decode_header(batch).last_sequence == last_sequence


def test_the_codecs_have_the_numbers_of_the_format() -> None:
    assert [(codec.value, codec.name) for codec in Compression] == [
        (0, "NONE"),
        (1, "GZIP"),
        (2, "SNAPPY"),
        (3, "LZ4"),
        (4, "ZSTD"),
    ]
