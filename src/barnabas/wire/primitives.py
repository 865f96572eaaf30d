"""Wire types that Python does not have: Kafka's UUID, and variable-length integers."""

from __future__ import annotations

import base64
import binascii
from typing import TYPE_CHECKING, Any

from barnabas.wire.errors import MalformedError

if TYPE_CHECKING:
    from random import Random


class Uuid(bytes):
    """Sixteen bytes, formatted like Kafka: 22 characters of URL-safe base64."""

    __slots__ = ()

    @classmethod
    def parse(cls, text: str) -> Uuid:
        """Parse base64 in either alphabet, padded or not. Raises ValueError."""
        if not isinstance(text, str):
            raise TypeError(f"a uuid must be parsed from a string, not {type(text).__name__}")
        try:
            value = base64.b64decode(text.rstrip("=").translate(_STANDARD_ALPHABET) + "==", validate=True)
        except (binascii.Error, ValueError) as error:
            raise ValueError(f"not a uuid: {text!r}") from error
        if len(value) != 16:
            raise ValueError(f"not a uuid: {text!r} has {len(value)} bytes instead of 16")
        return cls(value)

    def __str__(self) -> str:
        return binascii.b2a_base64(self, newline=False)[:_TEXT_SIZE].translate(_URL_SAFE).decode("ascii")

    def __repr__(self) -> str:
        return f"Uuid({str(self)!r})"


def random_uuid(random: Random) -> Uuid:
    """Create a UUID like Kafka: with the bits of version 4, and a text that does not start with a dash."""
    while True:
        value = bytearray(random.randbytes(16))
        value[6], value[8] = value[6] & 0x0F | 0x40, value[8] & 0x3F | 0x80
        found = Uuid(bytes(value))
        if not str(found).startswith("-"):
            return found


_TEXT_SIZE = 22
_URL_SAFE = bytes.maketrans(b"+/", b"-_")
_STANDARD_ALPHABET = str.maketrans("-_", "+/")
ZERO_UUID = Uuid(16)


_ONE_BYTE = tuple(bytes((value,)) for value in range(128))


def encode_unsigned_varint(value: int) -> bytes:
    """Encode an unsigned 32-bit integer in at most five bytes. One to three bytes are the common case."""
    if value < 0x80:
        return _ONE_BYTE[value]
    if value < 0x4000:
        return bytes((value & 127 | 128, value >> 7))
    if value < 0x200000:
        return bytes((value & 127 | 128, value >> 7 & 127 | 128, value >> 14))
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    out.append(value)
    return bytes(out)


def decode_unsigned_varint(data: Any, position: int) -> tuple[int, int]:
    """Return the value and the position after it. As in Kafka, 32-bit values are read as signed."""
    byte = data[position]
    if byte < 128:
        return byte, position + 1
    value = byte & 127
    byte = data[position + 1]
    if byte < 128:
        return value | byte << 7, position + 2
    value |= (byte & 127) << 7
    position += 2
    for shift in (14, 21, 28):
        byte = data[position]
        position += 1
        value |= (byte & 127) << shift
        if byte < 128:
            value &= 0xFFFFFFFF
            return (value - (1 << 32) if value >> 31 else value), position
    raise MalformedError("a varint is longer than five bytes")
