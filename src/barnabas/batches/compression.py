"""The codecs of record batches: gzip, snappy, lz4 frames and zstd, in the form that Java reads.

Its one rule: untrusted data never decompresses to more than `max_decompressed_bytes`. For gzip, zlib enforces the
limit. For lz4 and zstd, an upper bound is summed over the blocks before they are decompressed. The length in snappy
data is trusted only as far as its format allows. Concatenated gzip members and lz4 or zstd frames are read as one.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Callable

import cramjam

from barnabas.batches.errors import BatchError, TooLargePayloadError
from barnabas.batches.format import Buffer, Compression
from barnabas.wire.errors import EncodeError

DEFAULT_MAX_DECOMPRESSED_BYTES = 128 * 1024 * 1024

_GZIP_WBITS = 31
# A match of 258 bytes needs at least two bits, and a block of them a few bytes.
_MAX_GZIP_RATIO = 1032

_XERIAL_MAGIC = b"\x82SNAPPY\x00"
_XERIAL_HEADER = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_SIZE = 32 * 1024
# Three bytes of snappy copy at most 64 bytes.
_MAX_SNAPPY_RATIO = 22

_LZ4_MAGIC = 0x184D2204
# In Java, level 9 means the fast compressor. Every other level means the slow one, whose levels start at 3 here.
_LZ4_DEFAULT_LEVEL = 9
_LZ4_FAST, _LZ4_FIRST_SLOW = 1, 3
_MAX_LZ4_RATIO = 255

_ZSTD_MAGIC = 0xFD2FB528
_ZSTD_DEFAULT_LEVEL = 3
_ZSTD_BLOCK_SIZE = 128 * 1024
_ZSTD_BLOCK_HEADER_SIZE = 3
_NO_ROOM = "failed to write whole buffer"  # in cramjam's error if there is more than the buffer can have
_MAX_BLOCKS = 4096  # that are looked at for a bound; the blocks of a large batch have 64 KB or more

_INT32 = struct.Struct(">i")
_UINT32_LITTLE = struct.Struct("<I")


def compress(compression: Compression, data: bytes, level: int | None = None) -> bytes:
    """Compress `data`. The levels are Kafka's; None is Kafka's default; snappy has none."""
    if compression is Compression.NONE:
        return data
    least, most = _LEVELS[compression]
    if level is not None and not (least <= level <= most or (compression is Compression.GZIP and level == -1)):
        raise EncodeError(f"{compression.name.lower()} has no level {level}")
    return _COMPRESSORS[compression](data, level)


def decompress(
    compression: Compression, data: Buffer, max_decompressed_bytes: int = DEFAULT_MAX_DECOMPRESSED_BYTES
) -> bytes:
    """Decompress `data`. Raises BatchError if it is incomplete or of another codec, and TooLargePayloadError."""
    if compression is Compression.NONE:
        return bytes(data)
    try:
        return _DECOMPRESSORS[compression](bytes(data), max_decompressed_bytes)
    except (cramjam.DecompressionError, zlib.error) as error:
        raise BatchError(f"the {compression.name.lower()} data is invalid: {error}") from None


def most_decompressed_bytes(compression: Compression, data: Buffer) -> int:
    """Return an upper bound of the decompressed size, without decompressing.

    Raises BatchError if the data is not of this codec.
    """
    if compression is Compression.LZ4:
        return _most_of_lz4(data)
    if compression is Compression.ZSTD:
        return _most_of_zstd(data)
    return len(data) * _MAX_RATIOS[compression]


def _too_much(limit: int) -> TooLargePayloadError:
    return TooLargePayloadError(f"the records decompress to more than {limit} bytes")


def _compress_gzip(data: bytes, level: int | None) -> bytes:
    compressor = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WBITS)
    return compressor.compress(data) + compressor.flush()


def _decompress_gzip(data: bytes, limit: int) -> bytes:
    member = zlib.decompressobj(_GZIP_WBITS)
    # The limit plus one distinguishes too much from just enough. For zlib, 0 would mean no limit.
    out = member.decompress(data, limit + 1)
    if len(out) > limit:
        raise _too_much(limit)
    if not member.eof:
        raise BatchError("the gzip data is incomplete")
    if member.unused_data:
        return _decompress_into(cramjam.gzip.decompress_into, data, limit)
    return out


def _compress_snappy(data: bytes, level: int | None) -> bytes:
    out = [_XERIAL_HEADER]
    view = memoryview(data)
    for start in range(0, len(data), _XERIAL_BLOCK_SIZE):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_SIZE]))
        out += (_INT32.pack(len(block)), block)
    return b"".join(out)


def _decompress_snappy(data: bytes, limit: int) -> bytes:
    if not data.startswith(_XERIAL_MAGIC):
        return _decompress_snappy_block(data, limit, limit)
    out = []
    position, end, room = 0, len(data), limit
    while position < end:
        # In concatenated streams, another header takes the place of a length.
        if data.startswith(_XERIAL_MAGIC, position):
            position += len(_XERIAL_HEADER)
            continue
        if end - position < _INT32.size:
            raise BatchError("the snappy data ends inside a length")
        length = _INT32.unpack_from(data, position)[0]
        position += _INT32.size
        if not 0 < length <= end - position:
            raise BatchError(f"a snappy block of {length} bytes, but only {end - position} bytes are left")
        block = _decompress_snappy_block(data[position : position + length], room, limit)
        room -= len(block)
        position += length
        out.append(block)
    if position > end:
        raise BatchError("the snappy data ends inside its header")
    return b"".join(out)


def _decompress_snappy_block(data: bytes, room: int, limit: int) -> bytes:
    length = cramjam.snappy.decompress_raw_len(data)
    if length > room:
        raise _too_much(limit)
    if length > len(data) * _MAX_SNAPPY_RATIO:
        raise BatchError(f"{len(data)} bytes of snappy data cannot decompress to {length}")
    return bytes(cramjam.snappy.decompress_raw(data))


def _compress_lz4(data: bytes, level: int | None) -> bytes:
    if level is None or level == _LZ4_DEFAULT_LEVEL:
        level = _LZ4_FAST
    else:
        level = max(level, _LZ4_FIRST_SLOW)
    # Java cannot read frames whose blocks depend on each other.
    compressor = cramjam.lz4.Compressor(level=level, content_checksum=False, block_linked=False)
    compressor.compress(data)
    return bytes(compressor.finish())


def _decompress_lz4(data: bytes, limit: int) -> bytes:
    if _most_of_lz4(data) <= limit:
        return bytes(cramjam.lz4.decompress(data))
    return _decompress_into(cramjam.lz4.decompress_into, data, limit)


def _compress_zstd(data: bytes, level: int | None) -> bytes:
    return bytes(cramjam.zstd.compress(data, level=_ZSTD_DEFAULT_LEVEL if level is None else level))


def _decompress_zstd(data: bytes, limit: int) -> bytes:
    if _most_of_zstd(data) <= limit:
        return bytes(cramjam.zstd.decompress(data))
    return _decompress_into(cramjam.zstd.decompress_into, data, limit)


def _decompress_into(decompress_into: Callable[[bytes, bytearray], int], data: bytes, limit: int) -> bytes:
    out = bytearray(limit)
    try:
        length = decompress_into(data, out)
    except cramjam.DecompressionError as error:
        if _NO_ROOM in str(error):
            raise _too_much(limit) from None
        raise
    return bytes(memoryview(out)[:length])


def _most_of_lz4(data: Buffer) -> int:
    return _most_of(_most_of_lz4_frame, data, _MAX_LZ4_RATIO)


def _most_of_zstd(data: Buffer) -> int:
    return _most_of(_most_of_zstd_frame, data, _ZSTD_BLOCK_SIZE // _ZSTD_BLOCK_HEADER_SIZE)


def _most_of(most_of_frame: Callable[[Buffer, int, int], tuple[int, int, int]], data: Buffer, max_ratio: int) -> int:
    """Return an upper bound of the decompressed size of all frames in `data`, without decompressing a block.

    A client may send very many blocks of a few bytes. Only so many are looked at, and the rest may be as large as any.
    """
    position = most = 0
    left = _MAX_BLOCKS
    try:
        while position < len(data):
            if left <= 0:
                return most + (len(data) - position) * max_ratio
            frame, position, blocks = most_of_frame(data, position, left)
            most += frame
            left -= blocks + 1
    except (IndexError, struct.error):
        raise BatchError("the compressed data is incomplete") from None
    return most


def _most_of_lz4_frame(data: Buffer, position: int, max_blocks: int) -> tuple[int, int, int]:
    """Return the bound of a frame or of its first blocks, the position after them, and how many blocks they are."""
    if _UINT32_LITTLE.unpack_from(data, position)[0] != _LZ4_MAGIC:
        raise BatchError("not an lz4 frame")
    flags, sizes = data[position + 4], data[position + 5]
    has_block_checksum, has_content_size = flags & 0x10, flags & 0x08
    has_content_checksum, has_dictionary = flags & 0x04, flags & 0x01
    block_size = 1 << (8 + 2 * (sizes >> 4 & 7))
    position += 7 + (8 if has_content_size else 0) + (4 if has_dictionary else 0)
    most = 0
    for blocks in range(max_blocks):
        word: int = _UINT32_LITTLE.unpack_from(data, position)[0]
        position += 4
        if word == 0:
            return most, position + (4 if has_content_checksum else 0), blocks
        size = word & 0x7FFF_FFFF
        most += min(block_size, size * _MAX_LZ4_RATIO)
        position += size + (4 if has_block_checksum else 0)
    return most, position, max_blocks


def _most_of_zstd_frame(data: Buffer, position: int, max_blocks: int) -> tuple[int, int, int]:
    """Return the bound of a frame or of its first blocks, the position after them, and how many blocks they are."""
    magic: int = _UINT32_LITTLE.unpack_from(data, position)[0]
    if magic & 0xFFFF_FFF0 == 0x184D2A50:  # a skippable frame
        return 0, position + 8 + _UINT32_LITTLE.unpack_from(data, position + 4)[0], 0
    if magic != _ZSTD_MAGIC:
        raise BatchError("not a zstd frame")
    descriptor = data[position + 4]
    is_single_segment, has_checksum = descriptor & 0x20, descriptor & 0x04
    content_size_bytes = (1 if is_single_segment else 0, 2, 4, 8)[descriptor >> 6]
    position += 5 + (0 if is_single_segment else 1) + (0, 1, 2, 4)[descriptor & 3] + content_size_bytes
    most = 0
    for blocks in range(max_blocks):
        word = data[position] | data[position + 1] << 8 | data[position + 2] << 16
        is_last, kind, size = word & 1, word >> 1 & 3, word >> 3
        most += size if kind in (0, 1) else _ZSTD_BLOCK_SIZE
        position += _ZSTD_BLOCK_HEADER_SIZE + (1 if kind == 1 else size)
        if is_last:
            return most, position + (4 if has_checksum else 0), blocks
    return most, position, max_blocks


_MAX_RATIOS = {
    Compression.NONE: 1,
    Compression.GZIP: _MAX_GZIP_RATIO,
    Compression.SNAPPY: _MAX_SNAPPY_RATIO,
}
_LEVELS = {
    Compression.GZIP: (1, 9),
    Compression.SNAPPY: (0, 0),
    Compression.LZ4: (1, 17),
    Compression.ZSTD: (-131072, 22),
}
_COMPRESSORS: dict[Compression, Callable[[bytes, int | None], bytes]] = {
    Compression.GZIP: _compress_gzip,
    Compression.SNAPPY: _compress_snappy,
    Compression.LZ4: _compress_lz4,
    Compression.ZSTD: _compress_zstd,
}
_DECOMPRESSORS: dict[Compression, Callable[[bytes, int], bytes]] = {
    Compression.GZIP: _decompress_gzip,
    Compression.SNAPPY: _decompress_snappy,
    Compression.LZ4: _decompress_lz4,
    Compression.ZSTD: _decompress_zstd,
}
