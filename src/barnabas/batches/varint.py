"""Varints as used in records: the slow and complete implementation. The reader inlines the short forms.

Its one rule: an int32 has at most 5 bytes and an int64 at most 10; excess bits are dropped, as in Java. The values read
are still zigzag encoded: even means `raw >> 1`, odd means negative. Reading beyond the end of the data raises
IndexError, because only the caller knows what it was reading.
"""

from __future__ import annotations

from barnabas.batches.errors import BatchError
from barnabas.batches.format import Buffer


def read_raw_varint(data: Buffer, position: int) -> tuple[int, int]:
    """Return the zigzag form of an int32, and the position after it."""
    return _read(data, position, 35, 0xFFFF_FFFF)


def read_raw_varlong(data: Buffer, position: int) -> tuple[int, int]:
    """Return the zigzag form of an int64, and the position after it."""
    return _read(data, position, 70, 0xFFFF_FFFF_FFFF_FFFF)


def encode_varint(value: int) -> bytes:
    """Encode an int32 or int64. The range is not checked."""
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
