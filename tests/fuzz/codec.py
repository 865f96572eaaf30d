"""Every message and record in every version: bytes are malformed, or a message that survives a round trip.

An input is the CRC of "name version", which stays the same when messages are added, and the body. The sliced reader agrees with
the plain one, and a view is read as bytes are.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from functools import cache
from typing import Any

from barnabas import wire
from barnabas.wire.codec import reader, sliced_reader, sliced_writer, takes_views
from tests.counting import counted
from tests.wire.golden import NAMES, vectors_of, versions_of
from tests.wire.test_slices import UNREADABLE

SELECTOR = struct.Struct(">I")


@cache
def choices() -> dict[int, tuple[str, int]]:
    return {selector(name, version): (name, version) for name in NAMES for version in versions_of(name)}


@cache
def ordered_choices() -> list[tuple[str, int]]:
    return list(choices().values())


def selector(name: str, version: int) -> int:
    return zlib.crc32(f"{name} {version}".encode())


def chosen(number: int) -> tuple[str, int]:
    """The message of a selector; any other number selects one too."""
    return choices().get(number) or ordered_choices()[number % len(ordered_choices())]


def seeds() -> Iterator[bytes]:
    for name in NAMES:
        for vector in vectors_of(name):
            if vector.case in ("full", "random"):
                yield SELECTOR.pack(selector(name, vector.version)) + vector.data


def check(data: bytes) -> None:
    if len(data) < SELECTOR.size:
        return
    name, version = chosen(SELECTOR.unpack_from(data)[0])
    body, cls = data[SELECTOR.size :], wire.message_class(name)
    plain = outcome(lambda: reader(cls, version)(body, 0))
    same("a sliced reader", plain, outcome(lambda: counted(sliced_reader(cls, version)(body, 0))[0]))
    if takes_views(cls):
        same("a view", plain, outcome(lambda: reader(cls, version)(memoryview(body), 0)))
    try:
        message, end = wire.decode_from(cls, version, body, 0)
    except wire.MalformedError:
        assert plain is None, f"{name} v{version} is malformed for `decode_from` only"
        return
    assert end <= len(body), f"{name} v{version} ends at {end} of {len(body)} bytes"
    encoded = wire.encode(message, version)
    pieces: list[bytes] = []
    counted(sliced_writer(cls, version)(message, pieces.append))
    assert b"".join(pieces) == encoded, f"{name} v{version} is written differently in slices"
    again = wire.decode(cls, version, encoded)
    assert is_same(again, message), f"{name} v{version} changes in a round trip"
    assert wire.encode(again, version) == encoded, f"{name} v{version} is written differently the second time"


def outcome(read: Any) -> Any:
    """The message and its end, or None if it cannot be read."""
    try:
        return read()
    except UNREADABLE:
        return None


def same(what: str, plain: Any, other: Any) -> None:
    assert (plain is None) == (other is None), f"{what} disagrees: {plain} and {other}"
    assert plain is None or is_same(plain, other), f"{what} reads something else: {plain} and {other}"


def is_same(one: Any, other: Any) -> bool:
    return bool(one == other) or repr(one) == repr(other)  # a float that is no number does not equal itself
