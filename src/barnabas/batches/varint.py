"""Varints, as records use them: the slow and complete form. The reader inlines the short ones in its loop.

Its one rule: an int32 ends within 5 bytes and an int64 within 10; bits beyond are dropped, as in Java. Read, they are
still zigzag: even is `raw >> 1`, odd is negative. Running off the end of the bytes is an IndexError, for only the caller
knows what it was reading.
"""

from __future__ import annotations

from barnabas.batches.errors import BatchError
from barnabas.batches.format import Buffer


def read_raw_varint(data: Buffer, position: int) -> tuple[int, int]:
    """The zigzag form of an int32, and the position after it."""
    return _read(data, position, 35, 0xFFFF_FFFF)


def read_raw_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """The zigzag form of an int64, and the position after it."""
    return _read(data, position, 70, 0xFFFF_FFFF_FFFF_FFFF)


def encode_varint(value: int) -> bytes:
    """The varint of an int32 or int64; that it is one is for the caller to know."""
    raw = value << 1 if value >= 0 else (-value << 1) - 1
    if raw < 0x80:
        return bytes((raw,))
    if raw < 0x4000:
        return bytes((raw & 0x7F | 0x80, raw >> 7))
    out = bytearray()
    while raw >= 0x80:
        out.append(raw & 0x7F | 0x80)
        raw >>= 7
    out.append(raw)
    return bytes(out)


def _read(data: Buffer, position: int, bits: int, mask: int) -> tuple[int, int]:
    raw = 0
    for shift in range(0, bits, 7):
        byte = data[position]
        position += 1
        if byte < 0x80:
            return (raw | byte << shift) & mask, position
        raw |= (byte & 0x7F) << shift
    raise BatchError(f"a varint is longer than {bits // 7} bytes")
