"""What a version has no room for, and what is no value of a field: EncodeError names the field and the version."""

from __future__ import annotations

import re
from typing import Any

import pytest

from barnabas import wire
from barnabas.wire.faults import RANGES
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.produce import ProduceRequest
from barnabas.wire.messages.vote import VoteRequest
from barnabas.wire.schema import FieldSchema
from tests.wire.golden import NAMES, Place, message_around, places_in, smallest_element, versions_of

WRONG: dict[str, list[Any]] = {
    "string": [5, b"bytes", "\ud800"],
    "bytes": ["text", 5],
    "records": ["text", 5],
    "bool": ["yes", 1.5],
    "uuid": [b"short", bytes(17), "AAAAAAAAAAAAAAAA", 5],
    "float64": ["1.5", 10**400],
}
WRONG_INTEGERS: list[Any] = ["5", 1.5, b"5"]


def not_default(cls: type[wire.Message], field: FieldSchema) -> Any:
    if field.is_array:
        return [not_default(cls, field._replace(is_array=False, default=None))]
    if field.is_struct:
        value = getattr(cls, field.type)()
        if field.default is not None:
            first = cls.schema().structs[field.type].fields[0]
            setattr(value, first.name, not_default(cls, first))
        return value
    if field.type == "bool":
        return not field.default
    others: dict[str, Any] = {"string": "other", "bytes": b"x", "records": b"x", "uuid": wire.Uuid(b"x" * 16)}
    return others.get(field.type, 1 if field.default == 0 else 0)


def absent_values(cls: type[wire.Message], field: FieldSchema) -> list[Any]:
    may_be_null = field.nullable.first <= field.nullable.last and field.default is not None
    return [not_default(cls, field), *([None] if may_be_null else [])]


@pytest.mark.parametrize("name", NAMES)
def test_a_value_without_room_is_refused_or_dropped_as_the_schema_says(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            field = place.field
            if version in field.versions:
                continue
            plain = wire.encode(message_around(name, version, place)[0], version)
            for value in absent_values(wire.message_class(name), field):
                message, holder = message_around(name, version, place)
                setattr(holder, field.name, value)
                if field.ignorable:
                    assert wire.encode(message, version) == plain
                    assert message.to_json(version) == wire.decode(name, version, plain).to_json(version)
                    continue
                words = re.escape(f"{field.name} in version {version}: it has versions {field.versions}")
                for write in (wire.encode, type(message).to_json):
                    with pytest.raises(wire.EncodeError, match=words):
                        write(message, version)


def refuse(name: str, version: int, place: Place, value: Any, words: str) -> None:
    message, holder = message_around(name, version, place)
    setattr(holder, place.field.name, value)
    with pytest.raises(wire.EncodeError) as caught:
        wire.encode(message, version)
        pytest.fail(f"{place.path(name)} = {value!r} was written in version {version}")
    text = str(caught.value)
    assert place.path(name) in text
    assert words in text
    assert f"version {version}" in text


@pytest.mark.parametrize("name", NAMES)
def test_null_is_refused_where_it_may_not_be(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            field = place.field
            if version not in field.versions or version in field.nullable:
                continue
            refuse(name, version, place, None, "must not be null")


@pytest.mark.parametrize("name", NAMES)
def test_null_elements_are_refused_also_where_the_array_may_be_null(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            if place.field.is_array and version in place.field.versions:
                refuse(name, version, place, [None], f"{place.field.name}[0]")


@pytest.mark.parametrize("name", NAMES)
def test_integers_out_of_range_are_refused(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            field = place.field
            if version in field.versions and field.type in RANGES:
                first, last = RANGES[field.type]
                for value in (first - 1, last + 1):
                    refuse(name, version, place, [value] if field.is_array else value, f"{value} is out of range")


@pytest.mark.parametrize("name", NAMES)
def test_values_of_another_type_are_refused(name: str) -> None:
    for version in versions_of(name):
        for place in places_in(name, version):
            field = place.field
            if version not in field.versions:
                continue
            wrong = [5] if field.is_struct else WRONG.get(field.type, WRONG_INTEGERS)
            for value in wrong:
                refuse(name, version, place, [value] if field.is_array else value, "")
            if field.is_array:
                refuse(name, version, place, 5, "must be a list")
                if field.type == "string":
                    refuse(name, version, place, "a string, not a list of strings", "must be a list")


def test_the_message_says_where_and_why() -> None:
    topic = CreateTopicsRequest.CreatableTopic(name="a", num_partitions=1 << 31)
    with pytest.raises(wire.EncodeError) as caught:
        wire.encode(CreateTopicsRequest(topics=[CreateTopicsRequest.CreatableTopic(name="b"), topic]), 7)
    assert str(caught.value) == (
        "CreateTopicsRequest.topics[1].num_partitions must be an int32: 2147483648 is out of range (version 7)"
    )
    with pytest.raises(wire.EncodeError) as caught:
        wire.encode(ProduceRequest(transactional_id="t"), 2)
    assert "ProduceRequest cannot carry transactional_id in version 2" in str(caught.value)


@pytest.mark.parametrize("version", [1, 12])
def test_strings_end_at_32767_bytes(version: int) -> None:
    def request(name: str) -> MetadataRequest:
        return MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)])

    longest = request("é" * 16383 + "x")
    assert wire.decode(MetadataRequest, version, wire.encode(longest, version)) == longest
    with pytest.raises(wire.EncodeError, match=r"topics\[0\].name has 32768 bytes, more than 32767"):
        wire.encode(request("é" * 16384), version)


def test_a_name_that_is_not_of_the_schema_is_no_attribute() -> None:
    with pytest.raises(AttributeError):
        ApiVersionsRequest().client_name = "misspelt"  # type: ignore[attr-defined]
    with pytest.raises(TypeError):
        ApiVersionsRequest(client_name="misspelt")  # type: ignore[call-arg]


def test_versions_and_names_that_do_not_exist_are_refused() -> None:
    with pytest.raises(wire.UnsupportedVersionError, match=r"ApiVersionsRequest has versions .*, not 99"):
        wire.encode(ApiVersionsRequest(), 99)
    with pytest.raises(wire.UnsupportedVersionError, match="not -1"):
        wire.decode(ApiVersionsRequest, -1, b"")
    with pytest.raises(wire.UnsupportedVersionError, match="no message or record named 'Nothing'"):
        wire.decode("Nothing", 0, b"")
    with pytest.raises(wire.UnsupportedVersionError, match="no metadata record of type 99"):
        wire.decode_record(b"\x01\x63\x00")


def test_a_missing_struct_is_named() -> None:
    request = VoteRequest(topics=[VoteRequest.TopicData(topic_name="t", partitions=[object()])])  # type: ignore[list-item]
    with pytest.raises(
        wire.EncodeError, match=r"VoteRequest.topics\[0\].partitions\[0\].* is missing: .* is of type object"
    ):
        wire.encode(request, 2)


def test_the_smallest_values_of_every_message_can_be_written() -> None:
    # What the tests above change one field of is itself no reason to refuse.
    for name in NAMES:
        for version in versions_of(name):
            for place in places_in(name, version):
                message, holder = message_around(name, version, place)
                if version in place.field.versions and place.field.is_array:
                    setattr(holder, place.field.name, [smallest_element(type(message), place.field, version)])
                assert wire.encode(message, version) is not None
