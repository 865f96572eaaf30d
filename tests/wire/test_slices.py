"""Sliced readers and writers: the same result as the plain ones, with a pause every few elements."""

from __future__ import annotations

import random
import struct
from typing import Any

import pytest

from barnabas import wire
from barnabas.wire.codec import SLICE_ELEMENTS, SLICE_NUMBERS, reader, sliced_reader, sliced_writer
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.list_offsets import ListOffsetsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.counting import counted
from tests.wire.golden import NAMES, vectors_of
from tests.wire.test_hostile_input import cuts, mutated

MUTATIONS_PER_VECTOR = 10
UNREADABLE = (wire.MalformedError, struct.error, IndexError, UnicodeDecodeError)


def outcome(name: str, version: int, data: bytes, *, is_sliced: bool) -> Any:
    cls = wire.message_class(name)
    try:
        if is_sliced:
            return counted(sliced_reader(cls, version)(data, 0))[0]
        return reader(cls, version)(data, 0)
    except UNREADABLE as error:
        return type(error)


@pytest.mark.parametrize("name", NAMES)
def test_every_message_is_read_and_written_as_without_pauses(name: str) -> None:
    for vector in vectors_of(name):
        read, _ = counted(sliced_reader(wire.message_class(name), vector.version)(vector.data, 0))
        assert read == reader(wire.message_class(name), vector.version)(vector.data, 0), vector
        pieces: list[bytes] = []
        counted(sliced_writer(wire.message_class(name), vector.version)(read[0], pieces.append))
        assert b"".join(pieces) == vector.data, vector


@pytest.mark.parametrize("name", NAMES)
def test_what_cannot_be_read_is_refused_in_slices_too(name: str) -> None:
    for vector in vectors_of(name):
        drawn = random.Random(str(vector))
        changed = [mutated(drawn, vector.data) for _ in range(MUTATIONS_PER_VECTOR)]
        for data in (*(vector.data[:cut] for cut in cuts(vector)), *changed):
            plain, sliced = (outcome(name, vector.version, data, is_sliced=is_sliced) for is_sliced in (False, True))
            assert isinstance(plain, type) == isinstance(sliced, type), (vector, data)
            assert isinstance(plain, type) or plain == sliced, (vector, data)


def test_a_pause_comes_every_few_elements_at_any_depth() -> None:
    partition = ListOffsetsRequest.ListOffsetsPartition
    topic = ListOffsetsRequest.ListOffsetsTopic
    message = ListOffsetsRequest(
        topics=[topic(name="t", partitions=[partition(partition_index=i) for i in range(5000)])]
    )
    data = wire.encode(message, 7)
    (read, _), pauses = counted(sliced_reader(ListOffsetsRequest, 7)(data, 0))
    assert read == message
    assert pauses == 5001 // SLICE_ELEMENTS
    pieces: list[bytes] = []
    assert counted(sliced_writer(ListOffsetsRequest, 7)(message, pieces.append))[1] == 5001 // SLICE_ELEMENTS
    assert b"".join(pieces) == data


def test_arrays_of_numbers_and_unknown_tagged_fields_pause_too() -> None:
    assignment = CreateTopicsRequest.CreatableReplicaAssignment(
        partition_index=0, broker_ids=list(range(10 * SLICE_NUMBERS))
    )
    topic = CreateTopicsRequest.CreatableTopic(
        name="t", num_partitions=-1, replication_factor=-1, assignments=[assignment]
    )
    message = CreateTopicsRequest(topics=[topic])
    (read, _), pauses = counted(sliced_reader(CreateTopicsRequest, 7)(wire.encode(message, 7), 0))
    assert read == message and pauses == 10

    tagged = MetadataRequest(topics=[])
    tagged.unknown_tagged_fields = dict.fromkeys(range(1000), b"x")
    (read, _), pauses = counted(sliced_reader(MetadataRequest, 12)(wire.encode(tagged, 12), 0))
    assert read == tagged and pauses == 1000 // SLICE_ELEMENTS
