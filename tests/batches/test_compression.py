"""The codecs: what Java has to read, what is read of others, and what would be too much."""

from __future__ import annotations

import gzip
import struct
import tracemalloc
import zlib
from typing import Any

import cramjam
import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.batches import BatchError, Compression, compress, decompress
from barnabas.batches.compression import most_decompressed_bytes
from barnabas.batches.errors import TooLargePayloadError
from barnabas.wire.errors import EncodeError
from tests.batches.samples import compressions, property_settings

CODECS = [codec for codec in Compression if codec is not Compression.NONE]
TEXT = b"".join(b"%d bottles of beer on the wall, " % i for i in range(20_000))
XERIAL_HEADER = bytes.fromhex("82534e4150505900 00000001 00000001")


@property_settings
@given(compressions, st.binary() | st.integers(0, 300_000).map(lambda size: TEXT[:size]))
def test_what_is_compressed_is_decompressed(codec: Compression, data: bytes) -> None:
    compressed = compress(codec, data)
    assert decompress(codec, compressed) == data
    assert decompress(codec, memoryview(compressed), len(data)) == data
    assert len(data) <= most_decompressed_bytes(codec, compressed)


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (Compression.GZIP, [None, -1, 1, 6, 9]),
        (Compression.LZ4, [None, 1, 2, 9, 12, 17]),
        (Compression.ZSTD, [None, -131072, -1, 1, 22]),
    ],
)
def test_the_levels_of_kafka_are_taken(codec: Compression, levels: list[int | None]) -> None:
    for level in levels:
        assert decompress(codec, compress(codec, TEXT[:50_000], level)) == TEXT[:50_000]


def test_the_highest_level_compresses_more_than_the_default() -> None:
    for codec, level in ((Compression.GZIP, 9), (Compression.LZ4, 17), (Compression.ZSTD, 19)):
        assert len(compress(codec, TEXT[:100_000], level)) < len(compress(codec, TEXT[:100_000]))


@pytest.mark.parametrize(
    ("codec", "level"),
    [
        (Compression.GZIP, 0),
        (Compression.GZIP, 10),
        (Compression.SNAPPY, 1),
        (Compression.LZ4, 0),
        (Compression.LZ4, 18),
        (Compression.ZSTD, 23),
    ],
)
def test_a_level_that_kafka_does_not_have_is_refused(codec: Compression, level: int) -> None:
    with pytest.raises(EncodeError, match="level"):
        compress(codec, b"data", level)


def test_lz4_blocks_are_independent_for_java_reads_no_others() -> None:
    for level in (None, 1, 17):
        frame = compress(Compression.LZ4, TEXT, level)
        assert frame[:4] == bytes.fromhex("04224d18")
        assert frame[4] & 0b1110_0011 == 0b0110_0000  # version 1, independent, nothing reserved, no dictionary


def test_lz4_blocks_that_depend_on_each_other_are_read() -> None:
    frame = bytes(cramjam.lz4.compress(TEXT))
    assert frame[4] & 0b0010_0000 == 0
    assert decompress(Compression.LZ4, frame) == TEXT


def test_snappy_is_written_in_blocks_of_xerial() -> None:
    data = TEXT[: 32 * 1024 + 5]
    compressed = compress(Compression.SNAPPY, data)
    assert compressed.startswith(XERIAL_HEADER)
    [length] = struct.unpack_from(">i", compressed, 16)
    assert bytes(cramjam.snappy.decompress_raw(compressed[20 : 20 + length])) == data[: 32 * 1024]
    [rest] = struct.unpack_from(">i", compressed, 20 + length)
    assert bytes(cramjam.snappy.decompress_raw(compressed[24 + length :])) == data[32 * 1024 :]
    assert len(compressed) == 24 + length + rest


def test_snappy_without_xerial_is_read() -> None:
    assert decompress(Compression.SNAPPY, bytes(cramjam.snappy.compress_raw(TEXT))) == TEXT


@pytest.mark.parametrize("codec", CODECS)
def test_streams_one_after_the_other_are_one(codec: Compression) -> None:
    data = compress(codec, TEXT[:70_000]) + compress(codec, b"and more")
    assert decompress(codec, data) == TEXT[:70_000] + b"and more"
    with pytest.raises(BatchError):
        decompress(codec, data, 70_000)


def test_a_zstd_frame_to_skip_is_skipped() -> None:
    skipped = struct.pack("<II", 0x184D2A57, 3) + b"abc"
    assert decompress(Compression.ZSTD, skipped + compress(Compression.ZSTD, TEXT) + skipped) == TEXT


FRAMES = [
    (  # with the size of its content
        Compression.LZ4,
        "04224d186840330000000000000081"
        "23000000ff09636f6e74656e74206f662061206b6e6f776e2073697a652c0e0003502073697a6500000000",
    ),
    (  # with a checksum
        Compression.ZSTD,
        "28b52ffd2433f50000c0636f6e74656e74206f662061206b6e6f776e2073697a652c01004438c75dced78c",
    ),
    (  # with a checksum, and without the size of its content
        Compression.ZSTD,
        "28b52ffd0400f50000c0636f6e74656e74206f662061206b6e6f776e2073697a652c01004438c75dced78c",
    ),
]


@pytest.mark.parametrize(("codec", "frame"), FRAMES)
def test_frames_with_other_options_than_ours_are_read(codec: Compression, frame: str) -> None:
    text = b"content of a known size, a known size, a known size"
    assert decompress(codec, bytes.fromhex(frame) * 3) == text * 3


@pytest.mark.parametrize("codec", CODECS)
def test_wherever_compressed_data_ends_too_early_is_seen(codec: Compression) -> None:
    compressed = compress(codec, TEXT[:300])
    for end in range(len(compressed)):
        if codec is Compression.SNAPPY and end == len(XERIAL_HEADER):
            continue  # a stream of no blocks is a stream
        with pytest.raises(BatchError):
            decompress(codec, compressed[:end])


@pytest.mark.parametrize("codec", CODECS)
def test_trailing_garbage_is_refused(codec: Compression) -> None:
    with pytest.raises(BatchError):
        decompress(codec, compress(codec, b"data") + b"\x00garbage")


def zstd_of_equal_bytes(blocks: int) -> bytes:
    """128 KiB for each four bytes."""
    block, last = (131072 << 3 | 1 << 1).to_bytes(3, "little"), (131072 << 3 | 1 << 1 | 1).to_bytes(3, "little")
    return bytes.fromhex("28b52ffd 00 38") + (block + b"a") * (blocks - 1) + last + b"a"


BOMB_SIZE = 64 * 1024 * 1024
BOMBS = {
    Compression.GZIP: gzip.compress(bytes(BOMB_SIZE), mtime=0),
    Compression.SNAPPY: bytes(cramjam.snappy.compress_raw(bytes(BOMB_SIZE))),
    Compression.LZ4: bytes(cramjam.lz4.compress(bytes(BOMB_SIZE))),
    Compression.ZSTD: zstd_of_equal_bytes(BOMB_SIZE // 131072),
}


@pytest.mark.parametrize("codec", CODECS)
def test_a_bomb_is_not_opened(codec: Compression) -> None:
    assert len(decompress(codec, BOMBS[codec], BOMB_SIZE)) == BOMB_SIZE
    tracemalloc.start()
    try:
        with pytest.raises(TooLargePayloadError):
            decompress(codec, BOMBS[codec], 1024 * 1024)
        assert tracemalloc.get_traced_memory()[1] < 4 * 1024 * 1024 + len(BOMBS[codec])
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("codec", CODECS)
def test_one_byte_too_much_is_too_much(codec: Compression) -> None:
    compressed = compress(codec, TEXT)
    assert decompress(codec, compressed, len(TEXT)) == TEXT
    with pytest.raises(TooLargePayloadError, match=f"the records decompress to more than {len(TEXT) - 1} bytes"):
        decompress(codec, compressed, len(TEXT) - 1)


def test_a_snappy_block_cannot_claim_more_than_its_bytes_can_hold() -> None:
    with pytest.raises(BatchError, match="cannot decompress to"):
        decompress(Compression.SNAPPY, b"\xff\xff\xff\x3fabcd")


def test_a_zstd_frame_that_claims_to_be_huge_is_refused() -> None:
    frame = bytes.fromhex("28b52ffd e0") + struct.pack("<Q", 2**60) + b"\x01\x00\x00"
    with pytest.raises(BatchError):
        decompress(Compression.ZSTD, frame)


def test_deflate_reaches_no_further_than_its_largest_ratio() -> None:
    assert most_decompressed_bytes(Compression.GZIP, BOMBS[Compression.GZIP]) >= BOMB_SIZE
    raw = zlib.compressobj(9, zlib.DEFLATED, 31)
    best = raw.compress(bytes(10_000_000)) + raw.flush()
    assert most_decompressed_bytes(Compression.GZIP, best) >= 10_000_000


@pytest.mark.parametrize(
    ("codec", "head", "block"),
    [
        (Compression.LZ4, b"\x04\x22\x4d\x18\x40\x40\xc0", (1 << 31 | 1).to_bytes(4, "little") + b"x"),
        (Compression.ZSTD, b"\x28\xb5\x2f\xfd\x00\x58", bytes(3)),
        (Compression.ZSTD, b"", b"\x50\x2a\x4d\x18" + bytes(4)),  # frames that are skipped
    ],
    ids=["lz4", "zstd", "zstd frames"],
)
def test_the_bound_of_very_many_small_blocks_looks_at_some_of_them_only(
    codec: Compression, head: bytes, block: bytes
) -> None:
    class Looked(bytes):
        looked = 0

        def __getitem__(self, key: Any) -> Any:
            Looked.looked += 1
            return super().__getitem__(key)

    few, many = Looked(head + block * 100), Looked(head + block * 1_000_000)
    assert most_decompressed_bytes(codec, many) >= len(block) * 900_000
    assert Looked.looked < 20_000
    if head:
        with pytest.raises(BatchError, match="incomplete"):
            most_decompressed_bytes(codec, few)
    else:
        assert most_decompressed_bytes(codec, few) == 0
