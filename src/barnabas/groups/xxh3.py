"""XXH3 with 64 bits and seed 0. Kafka's groups use it to detect changes of their topics.

In plain Python, because it is rarely needed, and only for a few hundred bytes.
"""

from __future__ import annotations

import struct
from typing import Final

_MASK: Final = 0xFFFFFFFFFFFFFFFF
_PRIME32_1: Final = 0x9E3779B1
_PRIME32_2: Final = 0x85EBCA77
_PRIME32_3: Final = 0xC2B2AE3D
_PRIME64_1: Final = 0x9E3779B185EBCA87
_PRIME64_2: Final = 0xC2B2AE3D27D4EB4F
_PRIME64_3: Final = 0x165667B19E3779F9
_PRIME64_4: Final = 0x85EBCA77C2B2AE63
_PRIME64_5: Final = 0x27D4EB2F165667C5
_PRIME_MX1: Final = 0x165667919E3779F9
_PRIME_MX2: Final = 0x9FB21C651E98DF25
_SECRET: Final = bytes.fromhex(
    "b8fe6c3923a44bbe7c01812cf721ad1cded46de9839097db7240a4a4b7b3671fcb79e64eccc0e578825ad07dccff7221b8084674f743248e"
    "e03590e6813a264c3c2852bb91c300cb88d0658b1b532ea371644897a20df94e3819ef46a9deacd8a8fa763fe39c343ff9dcbbc7c70b4f1d"
    "8a51e04bcdb45931c89f7ec9d9787364eac5ac8334d3ebc3c581a0fffa1363eb170ddd51b7f0da49d316552629d4689e2b16be587d47a1fc"
    "8ff8b8d17ad031ce45cb3a8f95160428afd7fbcabb4b407e"
)
_STRIPE: Final = 64
_STRIPES_IN_BLOCK: Final = (len(_SECRET) - _STRIPE) // 8
_LANES: Final = struct.Struct("<8Q")
_KEYS: Final = tuple(_LANES.unpack_from(_SECRET, 8 * number) for number in range(_STRIPES_IN_BLOCK))
_SCRAMBLE_KEYS: Final = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE)
_LAST_KEYS: Final = _LANES.unpack_from(_SECRET, len(_SECRET) - _STRIPE - 7)


def xxh3_64(data: bytes) -> int:
    """Return the hash as an unsigned number."""
    size = len(data)
    if size > 240:
        return _long(data)
    if size > 128:
        return _up_to_240(data)
    if size > 16:
        return _up_to_128(data)
    if size > 8:
        low = _u64(data, 0) ^ (_u64(_SECRET, 24) ^ _u64(_SECRET, 32))
        high = _u64(data, size - 8) ^ (_u64(_SECRET, 40) ^ _u64(_SECRET, 48))
        swapped = int.from_bytes(low.to_bytes(8, "little"))
        return _avalanche(size + swapped + high + _fold(low, high))
    if size >= 4:
        first, last = int.from_bytes(data[:4], "little"), int.from_bytes(data[-4:], "little")
        return _rrmxmx((last + (first << 32)) ^ (_u64(_SECRET, 8) ^ _u64(_SECRET, 16)), size)
    if size:
        combined = data[0] << 16 | data[size >> 1] << 24 | data[-1] | size << 8
        key = int.from_bytes(_SECRET[:4], "little") ^ int.from_bytes(_SECRET[4:8], "little")
        return _xxh64_avalanche(combined ^ key)
    return _xxh64_avalanche(_u64(_SECRET, 56) ^ _u64(_SECRET, 64))


def _up_to_128(data: bytes) -> int:
    size = len(data)
    total = size * _PRIME64_1
    for number in range((size - 1) // 32, -1, -1):
        total += _mix16(data, 16 * number, 32 * number)
        total += _mix16(data, size - 16 * (number + 1), 32 * number + 16)
    return _avalanche(total)


def _up_to_240(data: bytes) -> int:
    size = len(data)
    total = _avalanche(size * _PRIME64_1 + sum(_mix16(data, 16 * number, 16 * number) for number in range(8)))
    total += sum(_mix16(data, 16 * number, 16 * (number - 8) + 3) for number in range(8, size // 16))
    return _avalanche(total + _mix16(data, size - 16, 136 - 17))


def _long(data: bytes) -> int:
    lanes = [
        *(_PRIME32_3, _PRIME64_1, _PRIME64_2, _PRIME64_3),
        *(_PRIME64_4, _PRIME32_2, _PRIME64_5, _PRIME32_1),
    ]
    for number in range((len(data) - 1) // _STRIPE):
        place = number % _STRIPES_IN_BLOCK
        _accumulate(lanes, _LANES.unpack_from(data, _STRIPE * number), _KEYS[place])
        if place == _STRIPES_IN_BLOCK - 1:
            for lane, key in enumerate(_SCRAMBLE_KEYS):
                value = lanes[lane]
                lanes[lane] = ((value ^ value >> 47 ^ key) * _PRIME32_1) & _MASK
    _accumulate(lanes, _LANES.unpack_from(data, len(data) - _STRIPE), _LAST_KEYS)
    keys = struct.unpack_from("<8Q", _SECRET, 11)
    pairs = (_fold(lanes[lane] ^ keys[lane], lanes[lane + 1] ^ keys[lane + 1]) for lane in range(0, 8, 2))
    return _avalanche(len(data) * _PRIME64_1 + sum(pairs))


def _accumulate(lanes: list[int], values: tuple[int, ...], keys: tuple[int, ...]) -> None:
    for lane, (value, key) in enumerate(zip(values, keys, strict=True)):
        mixed = value ^ key
        lanes[lane ^ 1] = (lanes[lane ^ 1] + value) & _MASK
        lanes[lane] = (lanes[lane] + (mixed & 0xFFFFFFFF) * (mixed >> 32)) & _MASK


def _u64(data: bytes, place: int) -> int:
    return int.from_bytes(data[place : place + 8], "little")


def _fold(left: int, right: int) -> int:
    product = left * right
    return (product & _MASK) ^ product >> 64


def _mix16(data: bytes, place: int, secret: int) -> int:
    low, high = _u64(data, place) ^ _u64(_SECRET, secret), _u64(data, place + 8) ^ _u64(_SECRET, secret + 8)
    return _fold(low, high)


def _avalanche(value: int) -> int:
    value &= _MASK
    value = ((value ^ value >> 37) * _PRIME_MX1) & _MASK
    return value ^ value >> 32


def _xxh64_avalanche(value: int) -> int:
    value = ((value ^ value >> 33) * _PRIME64_2) & _MASK
    value = ((value ^ value >> 29) * _PRIME64_3) & _MASK
    return value ^ value >> 32


def _rrmxmx(value: int, size: int) -> int:
    value ^= _rotated(value, 49) ^ _rotated(value, 24)
    value = value * _PRIME_MX2 & _MASK
    value ^= (value >> 35) + size
    value = value * _PRIME_MX2 & _MASK
    return value ^ value >> 28


def _rotated(value: int, bits: int) -> int:
    return (value << bits & _MASK) | value >> (64 - bits)
