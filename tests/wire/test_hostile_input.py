"""Bytes that lie: whatever comes in, a message comes out or MalformedError does, and memory follows the input's size."""

from __future__ import annotations

import contextlib
import random
import tracemalloc
from collections.abc import Iterator

import pytest

from barnabas import wire
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.primitives import decode_unsigned_varint, encode_unsigned_varint
from tests.wire.golden import NAMES, Place, Vector, message_around, places_in, smallest_element, vectors_of, versions_of

EVERY_CUT_UP_TO = 64
MUTATIONS_PER_VECTOR = 12
# An object of Python's takes some tens of bytes where the wire needs one: the worst struct of the schema needs 72.
BYTES_PER_BYTE = 96
BYTES_AT_ALL = 32768

HUGE_COUNTS = {
    "the largest int32": b"\x7f\xff\xff\xff",
    "a billion": b"\x40\x00\x00\x00",
    "the smallest int32": b"\x80\x00\x00\x00",
    "minus two": b"\xff\xff\xff\xfe",
    "the largest compact count": b"\xff\xff\xff\xff\x07",
    "a compact count of 32 bits": b"\xff\xff\xff\xff\x0f",
    "a compact count of 2^31": b"\x80\x80\x80\x80\x08",
    "an endless varint": b"\xff\xff\xff\xff\xff\xff",
}


def cuts(vector: Vector) -> Iterator[int]:
    size = len(vector.data)
    if size <= EVERY_CUT_UP_TO:
        return iter(range(size))
    drawn = random.Random(str(vector)).sample(range(size), EVERY_CUT_UP_TO - 2)
    return iter([0, size - 1, *drawn])


@pytest.mark.parametrize("name", NAMES)
def test_a_message_that_is_cut_anywhere_is_malformed(name: str) -> None:
    cls = wire.message_class(name)
    for vector in vectors_of(name):
        for cut in cuts(vector):
            with pytest.raises(wire.MalformedError):
                wire.decode_from(cls, vector.version, vector.data[:cut], 0)
                pytest.fail(f"{vector} was decoded from its first {cut} bytes")


@pytest.mark.parametrize("name", NAMES)
def test_bytes_after_a_message_are_malformed_and_found_by_decode_from(name: str) -> None:
    for vector in vectors_of(name):
        for tail in (b"\0", b"\xff" * 9):
            with pytest.raises(wire.MalformedError, match=f"{len(tail)} bytes follow"):
                wire.decode(name, vector.version, vector.data + tail)
        message, end = wire.decode_from(name, vector.version, b"head" + vector.data + b"tail", 4)
        assert end == 4 + len(vector.data), vector
        assert wire.encode(message, vector.version) == vector.data, vector


def mutated(draw: random.Random, data: bytes) -> bytes:
    out = bytearray(data)
    for _ in range(draw.choice((1, 1, 1, 2, 3))):
        at = draw.randrange(len(out) + 1)
        kind = draw.randrange(6)
        if kind == 0 and at < len(out):
            out[at] ^= 1 << draw.randrange(8)
        elif kind == 1 and at < len(out):
            out[at] = draw.choice((0, 1, 2, 0x7F, 0x80, 0xFE, 0xFF))
        elif kind == 2:
            out[at:at] = draw.randbytes(draw.randint(1, 5))
        elif kind == 3:
            del out[at : at + draw.randint(1, 5)]
        elif kind == 4:
            count = draw.choice(list(HUGE_COUNTS.values()))
            out[at : at + len(count)] = count
        else:
            out[at:at] = out[at : at + draw.randint(1, 40)]
    return bytes(out)


def check_decodes_or_is_malformed(cls: type[wire.Message], version: int, data: bytes) -> None:
    try:
        message = wire.decode(cls, version, data)
    except wire.MalformedError:
        return
    encoded = wire.encode(message, version)
    again = wire.decode(cls, version, encoded)
    assert again == message or repr(again) == repr(message)  # a float that is no number does not equal itself
    assert wire.encode(again, version) == encoded


@pytest.mark.parametrize("name", NAMES)
def test_mutated_messages_are_malformed_or_survive_a_round_trip(name: str) -> None:
    cls = wire.message_class(name)
    for vector in vectors_of(name):
        draw = random.Random(f"mutate {vector}")
        for _ in range(MUTATIONS_PER_VECTOR):
            data = mutated(draw, vector.data)
            try:
                check_decodes_or_is_malformed(cls, vector.version, data)
            except Exception as error:
                error.add_note(f"{vector} mutated to {data.hex()}")
                raise


@pytest.mark.parametrize("name", NAMES)
def test_random_bytes_are_malformed_or_survive_a_round_trip(name: str) -> None:
    cls = wire.message_class(name)
    draw = random.Random(f"noise {name}")
    for version in versions_of(name):
        for size in (*range(10), 30, 100):
            check_decodes_or_is_malformed(cls, version, draw.randbytes(size))
            check_decodes_or_is_malformed(cls, version, bytes(draw.choices((0, 1, 2, 3, 127, 255), k=size)))


def decode_quietly(cls: type[wire.Message], version: int, data: bytes) -> None:
    with contextlib.suppress(wire.MalformedError):
        wire.decode(cls, version, data)


def check_memory(cls: type[wire.Message], version: int, inputs: list[bytes]) -> None:
    decode_quietly(cls, version, b"")  # compiles the reader
    tracemalloc.start()
    try:
        for data in inputs:
            tracemalloc.reset_peak()
            before = tracemalloc.get_traced_memory()[0]
            decode_quietly(cls, version, data)
            used = tracemalloc.get_traced_memory()[1] - before
            assert used < BYTES_AT_ALL + BYTES_PER_BYTE * len(data), data[:100].hex()
    finally:
        tracemalloc.stop()


def newest(name: str) -> int:
    return versions_of(name)[-1]


@pytest.mark.parametrize("name", NAMES)
def test_huge_counts_anywhere_cost_no_memory(name: str) -> None:
    cls, version = wire.message_class(name), newest(name)
    data = max((v.data for v in vectors_of(name) if v.version == version and v.case in ("random", "full")), key=len)
    draw = random.Random(f"count {name}")
    positions = range(len(data)) if len(data) <= 12 else draw.sample(range(len(data)), 12)
    check_memory(cls, version, [data[:at] + n + data[at + 1 :] for at in positions for n in HUGE_COUNTS.values()])


def crowded(name: str, version: int, place: Place, count: int) -> bytes:
    """A message with as many elements in one array as fit into its bytes."""
    message, holder = message_around(name, version, place)
    element = smallest_element(type(message), place.field, version)
    setattr(holder, place.field.name, [element] * count)
    return wire.encode(message, version)


@pytest.mark.parametrize("name", NAMES)
def test_the_smallest_elements_cost_no_more_memory_than_the_bound(name: str) -> None:
    cls, version = wire.message_class(name), newest(name)
    places = [p for p in places_in(name, version) if p.field.is_array and version in p.field.versions]
    check_memory(cls, version, [crowded(name, version, place, 150) for place in places])


@pytest.mark.parametrize("name", NAMES)
def test_no_array_of_any_version_has_elements_without_bytes(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            if place.field.is_array and version in place.field.versions:
                grown = len(crowded(name, version, place, 3)) - len(crowded(name, version, place, 2))
                assert grown > 0, place.path(name)


def test_tags_without_content_cost_no_more_memory_than_the_bound() -> None:
    head = wire.encode(ApiVersionsRequest(), 3)[:-1]
    count = 16_000
    data = head + b"\x80\x7d" + b"".join(bytes((0x80 | n & 0x7F, 0x80 | n >> 7, 1, 0)) for n in range(count))
    assert len(wire.decode(ApiVersionsRequest, 3, data).unknown_tagged_fields or {}) == count
    check_memory(ApiVersionsRequest, 3, [data])


@pytest.mark.parametrize("count", HUGE_COUNTS.values(), ids=HUGE_COUNTS)
def test_a_count_that_nothing_stands_behind_is_malformed_or_null(count: bytes) -> None:
    for version in versions_of("CreateTopicsRequest"):  # its array may never be null
        with pytest.raises(wire.MalformedError):
            wire.decode(CreateTopicsRequest, version, count)
        with pytest.raises(wire.MalformedError):
            wire.decode(CreateTopicsRequest, version, count + bytes(64))
    for version in versions_of("MetadataRequest"):  # its array may be null: then a negative count means null
        decode_quietly(MetadataRequest, version, count + bytes(64))


@pytest.mark.parametrize(
    "tags", [b"\xff\xff\xff\xff\x07", b"\x01\x05\xff\xff\xff\xff\x07", b"\x01\xff\xff\xff\xff\x0f\0"]
)
def test_tagged_fields_that_lie_are_malformed(tags: bytes) -> None:
    head = wire.encode(ApiVersionsRequest(), 3)[:-1]
    with pytest.raises(wire.MalformedError):
        wire.decode(ApiVersionsRequest, 3, head + tags)


def test_a_varint_has_at_most_five_bytes() -> None:
    assert decode_unsigned_varint(b"\xff\xff\xff\xff\x07", 0) == (2**31 - 1, 5)
    assert decode_unsigned_varint(b"\x80\x80\x80\x80\x00", 0) == (0, 5)
    with pytest.raises(wire.MalformedError, match="longer than five bytes"):
        decode_unsigned_varint(b"\x80\x80\x80\x80\x80\x00", 0)


@pytest.mark.parametrize("text", [b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xc0\x80", b"\xf5\x80\x80\x80"])
def test_strings_that_are_not_utf_8_are_malformed(text: bytes) -> None:
    with pytest.raises(wire.MalformedError, match="not UTF-8"):
        wire.decode(ApiVersionsRequest, 3, bytes((len(text) + 1,)) + text + b"\x01\x00")


def test_a_string_of_more_than_32767_bytes_is_malformed() -> None:
    for size, is_malformed in ((32767, False), (32768, True)):
        data = encode_unsigned_varint(size + 1) + b"x" * size + b"\x01\x00"
        if not is_malformed:
            assert len(wire.decode(ApiVersionsRequest, 3, data).client_software_name) == size
            continue
        with pytest.raises(wire.MalformedError, match="invalid length of 32768"):
            wire.decode(ApiVersionsRequest, 3, data)


def test_the_fault_says_which_message_and_field() -> None:
    with pytest.raises(
        wire.MalformedError, match=r"CreateTopicsRequest v7: topics has more elements than remaining bytes"
    ):
        wire.decode(CreateTopicsRequest, 7, b"\xff\xff\xff\xff\x07" + bytes(100))
    with pytest.raises(wire.MalformedError, match=r"CreateTopicsRequest v7: topics must not be null"):
        wire.decode(CreateTopicsRequest, 7, b"\x00\x00\x00\x00\x00\x00\x00")
    with pytest.raises(wire.MalformedError, match=r"CreateTopicsRequest v7: truncated after 3 bytes"):
        wire.decode(CreateTopicsRequest, 7, b"\x01\x00\x00")
    with pytest.raises(wire.MalformedError, match=r"CreateTopicsRequest v7: a varint is longer than five bytes"):
        wire.decode(CreateTopicsRequest, 7, b"\xff" * 6)


def test_other_buffers_are_read_as_bytes() -> None:
    data = wire.encode(ApiVersionsRequest(client_software_name="me"), 3)
    for buffer in (bytearray(data), memoryview(data)):
        assert wire.decode(ApiVersionsRequest, 3, buffer).client_software_name == "me"  # type: ignore[call-overload]


def framed(vector: Vector) -> bytes:
    return bytes.fromhex(vector.facts.get("frame", vector.facts["hex"]))


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith(("Record", "Key", "Value"))])
def test_framed_records_that_are_cut_or_mutated_are_refused_by_name(name: str) -> None:
    draw = random.Random(f"frame {name}")
    for vector in vectors_of(name):
        frame = framed(vector)
        for attack in [frame[:cut] for cut in range(min(len(frame), 12))] + [mutated(draw, frame) for _ in range(8)]:
            try:
                record, version = wire.decode_record(attack, name)
            except (wire.MalformedError, wire.UnsupportedVersionError):
                continue
            assert wire.decode_record(wire.encode_record(record, version), name).version == version
