"""Messages read from a view of a large frame: records stay views, everything else is copied, and nothing else differs."""

from __future__ import annotations

import random
import struct
from typing import Any, ClassVar

import pytest

from barnabas import wire
from barnabas.wire.codec import reader, takes_views
from barnabas.wire.message import Message, Struct
from barnabas.wire.messages.produce import ProduceRequest
from tests.wire.golden import NAMES, vectors_of
from tests.wire.test_hostile_input import cuts, mutated

WITH_VIEWS = [name for name in NAMES if takes_views(wire.message_class(name))]
UNREADABLE = (wire.MalformedError, struct.error, IndexError, UnicodeDecodeError)
MUTATIONS_PER_VECTOR = 30


def test_messages_with_records_and_headers_take_views() -> None:
    assert {name for name in WITH_VIEWS if name.endswith("Request")} == {"ProduceRequest"}
    assert {name for name in WITH_VIEWS if name.endswith("Response")} == {
        "FetchResponse",
        "FetchSnapshotResponse",
        "ShareFetchResponse",
    }
    assert {"RequestHeader", "ResponseHeader"} <= set(WITH_VIEWS)


def outcome(name: str, version: int, data: bytes | memoryview) -> tuple[Any, ...]:
    """The message and where it ends, or the error that reading it raised."""
    try:
        return reader(wire.message_class(name), version)(data, 0)
    except UNREADABLE as error:
        return type(error), str(error) if isinstance(error, wire.MalformedError) else ""


def views_in(value: Any, path: str = "") -> list[str]:
    """Where a message holds views."""
    if isinstance(value, memoryview):
        return [path]
    if isinstance(value, list):
        return [found for each in value for found in views_in(each, path)]
    if isinstance(value, dict):
        return [found for each in value.values() for found in views_in(each, path)]
    if isinstance(value, Struct):
        names = (*type(value).__slots__, "unknown_tagged_fields")
        return [found for name in names for found in views_in(getattr(value, name), name)]
    return []


@pytest.mark.parametrize("name", WITH_VIEWS)
def test_a_view_is_read_as_its_bytes_are_and_only_records_stay_views(name: str) -> None:
    for vector in vectors_of(name):
        message, end = reader(wire.message_class(name), vector.version)(memoryview(vector.data), 0)
        assert (message, end) == (wire.decode(name, vector.version, vector.data), len(vector.data)), vector
        assert {each for each in views_in(message) if not each.endswith("records")} == set(), vector
        assert wire.encode(message, vector.version) == vector.data, vector


@pytest.mark.parametrize("name", WITH_VIEWS)
def test_a_view_that_lies_is_refused_as_its_bytes_are(name: str) -> None:
    for vector in vectors_of(name):
        draw = random.Random(f"view {vector}")
        attacks = [vector.data[:cut] for cut in cuts(vector)]
        attacks += [mutated(draw, vector.data) for _ in range(MUTATIONS_PER_VECTOR)]
        for data in attacks:
            expected = outcome(name, vector.version, data)
            found = outcome(name, vector.version, memoryview(bytearray(data)).toreadonly())
            assert found == expected, f"{vector} changed to {data.hex()}"


def test_records_share_the_memory_of_the_frame() -> None:
    rows = [ProduceRequest.PartitionProduceData(index=0, records=b"record")]
    topics = [ProduceRequest.TopicProduceData(name="t", partition_data=rows)]
    frame = bytearray(wire.encode(ProduceRequest(topic_data=topics), 9))
    request, _ = reader(ProduceRequest, 9)(memoryview(frame).toreadonly(), 0)
    records = request.topic_data[0].partition_data[0].records
    assert records.obj is frame
    frame[frame.index(b"record")] = ord("R")
    assert records == b"Record"


class Mixed(Message):
    """A message of this test, with every kind of field beside its records."""

    __slots__ = ("blob", "blobs", "ids", "name", "names", "numbers", "records", "some_id")

    SCHEMA: ClassVar[str] = """
Mixed request key=9999 versions=0-1 flexible=1+ listeners=broker
  blob bytes nullable
  blobs []bytes
  ids []uuid
  name string nullable
  names []string
  numbers []int32
  some_id uuid
  records records nullable
"""


@pytest.mark.parametrize("version", [0, 1])
def test_fields_beside_the_records_are_copied_out_of_the_view(version: int) -> None:
    message: Any = Mixed()
    message.blob, message.blobs, message.records = b"blob", [b"one", b""], b"record"
    message.name, message.names, message.numbers = "é", ["a", ""], [1, -1]
    message.some_id, message.ids = wire.Uuid(bytes(range(16))), [wire.Uuid(bytes([7]) * 16)]
    message.unknown_tagged_fields = {5: b"later"} if version else None
    data = wire.encode(message, version)
    found, end = reader(Mixed, version)(memoryview(bytearray(data)), 0)
    assert (found, end) == (message, len(data))
    assert views_in(found) == ["records"]
    assert [type(each) for each in (found.blob, *found.blobs, *found.ids, found.some_id, found.name)] == [
        bytes,
        bytes,
        bytes,
        wire.Uuid,
        wire.Uuid,
        str,
    ]
