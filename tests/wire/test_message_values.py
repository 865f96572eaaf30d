"""Messages as values: equality, repr, defaults that nobody shares, and the JSON form's refusals."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest

from barnabas import wire
from barnabas.wire.messages.api_versions import ApiVersionsRequest
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from tests.wire.golden import NAMES, vectors_of


def mutable_parts(value: Any) -> list[Any]:
    found: list[Any] = []
    if isinstance(value, list):
        found.append(value)
        for item in value:
            found += mutable_parts(item)
    elif isinstance(value, wire.Struct):
        found.append(value)
        for name in type(value).__slots__:
            found += mutable_parts(getattr(value, name))
    return found


@pytest.mark.parametrize("name", NAMES)
def test_no_two_messages_share_a_default(name: str) -> None:
    cls = wire.message_class(name)
    vectors = [v for v in vectors_of(name) if v.case == "default"]
    messages = [cls(), cls()] + [wire.decode(cls, v.version, v.data) for v in vectors for _ in range(2)]
    parts = [part for message in messages for part in mutable_parts(message)]
    assert len({id(part) for part in parts}) == len(parts)
    assert messages[0] == messages[1]


def test_filling_a_default_list_leaves_the_next_message_empty() -> None:
    CreateTopicsRequest().topics.append(CreateTopicsRequest.CreatableTopic(name="a"))
    assert CreateTopicsRequest().topics == []


@pytest.mark.parametrize("name", NAMES)
def test_a_message_equals_its_copies_and_differs_by_a_tag(name: str) -> None:
    for vector in vectors_of(name):
        message = wire.decode(name, vector.version, vector.data)
        if vector.case == "full":
            assert message == copy.deepcopy(message)
        assert message == pickle.loads(pickle.dumps(message))
        assert not message != wire.decode(name, vector.version, vector.data)  # noqa: SIM202  (`!=` is what is meant)
        message.unknown_tagged_fields = {9999: b"one more"}
        assert message != wire.decode(name, vector.version, vector.data)


def test_equality_looks_at_every_field_and_at_the_type() -> None:
    assert ApiVersionsRequest(client_software_name="a") == ApiVersionsRequest(client_software_name="a")
    assert ApiVersionsRequest(client_software_name="a") != ApiVersionsRequest(client_software_name="b")
    assert MetadataRequest() != FetchRequest()
    assert MetadataRequest() != "MetadataRequest()"


def test_messages_cannot_be_hashed() -> None:
    with pytest.raises(TypeError, match="unhashable"):
        hash(ApiVersionsRequest())
    with pytest.raises(TypeError, match="unhashable"):
        {MetadataRequest.MetadataRequestTopic()}


def test_a_repr_shows_all_fields_and_unknown_tags() -> None:
    request = ApiVersionsRequest(client_software_name="me")
    assert repr(request) == ("ApiVersionsRequest(client_software_name='me', client_software_version='')")
    request.unknown_tagged_fields = {5: b"x"}
    assert repr(request).endswith("unknown_tagged_fields={5: b'x'})")


def test_a_uuid_shows_itself_as_kafka_does() -> None:
    uuid = wire.Uuid.parse("AAAAAAAAAAAAAAAAAAAAAQ")
    assert uuid == bytes(15) + b"\x01"
    assert str(uuid) == "AAAAAAAAAAAAAAAAAAAAAQ"
    assert repr(uuid) == "Uuid('AAAAAAAAAAAAAAAAAAAAAQ')"
    assert wire.Uuid.parse("-_-_-_-_-_-_-_-_-_-_-w") == wire.Uuid.parse("+/+/+/+/+/+/+/+/+/+/+w==")
    for text in ("", "AAAA", "AAAAAAAAAAAAAAAAAAAAAAA", "A!AAAAAAAAAAAAAAAAAAAA", "é" * 22):
        with pytest.raises(ValueError, match="not a uuid"):
            wire.Uuid.parse(text)


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ([], "CreateTopicsRequest must be an object, not list"),
        (
            {"topic": []},
            "CreateTopicsRequest has no field 'topic' in version 7; it has topics, timeoutMs, validateOnly",
        ),
        ({"topics": None}, "CreateTopicsRequest.topics must not be null in version 7"),
        ({"topics": {}}, "CreateTopicsRequest.topics must be an array, not dict"),
        ({"topics": [None]}, "CreateTopicsRequest.topics[0] must not be null in version 7"),
        ({"topics": [5]}, "CreateTopicsRequest.topics[0] must be an object, not int"),
        ({"topics": [{"name": 5}]}, "CreateTopicsRequest.topics[0].name must be a string, not 5"),
        ({"timeoutMs": "5"}, "CreateTopicsRequest.timeoutMs must be a int32, not '5'"),
        ({"timeoutMs": True}, "CreateTopicsRequest.timeoutMs must be a int32, not True"),
        ({"timeoutMs": 1 << 31}, "CreateTopicsRequest.timeoutMs must be a int32, not 2147483648: it is out of range"),
        ({"validateOnly": 0}, "CreateTopicsRequest.validateOnly must be a bool, not 0"),
    ],
)
def test_json_that_is_not_the_message_is_malformed(content: Any, words: str) -> None:
    with pytest.raises(wire.MalformedError) as caught:
        CreateTopicsRequest.from_json(content, 7)
    assert words in str(caught.value)


@pytest.mark.parametrize("value", [5, "short", "!" * 22, None])
def test_json_that_is_no_uuid_is_malformed(value: Any) -> None:
    with pytest.raises(wire.MalformedError, match=r"MetadataRequest.topics\[0\].topicId"):
        MetadataRequest.from_json({"topics": [{"topicId": value, "name": None}]}, 12)


@pytest.mark.parametrize("value", [5, "not base64!", ["eA=="]])
def test_json_that_is_no_base64_is_malformed(value: Any) -> None:
    with pytest.raises(wire.MalformedError, match=r"SaslAuthenticateRequest.authBytes"):
        wire.message_class("SaslAuthenticateRequest").from_json({"authBytes": value}, 2)


@pytest.mark.parametrize("value", ["1.5", True, 10**400])
def test_json_that_is_no_number_is_malformed(value: Any) -> None:
    content = {"entries": [{"entity": [], "ops": [{"key": "k", "value": value, "remove": False}]}]}
    with pytest.raises(wire.MalformedError, match=r"ops\[0\].value must be a float64"):
        wire.message_class("AlterClientQuotasRequest").from_json(content, 1)


def test_what_json_leaves_out_has_its_default() -> None:
    assert MetadataResponse.from_json({}, 12) == MetadataResponse()


def test_to_json_refuses_what_encode_refuses() -> None:
    with pytest.raises(wire.EncodeError, match=r"CreateTopicsRequest.topics must be a list"):
        CreateTopicsRequest(topics=5).to_json(7)  # type: ignore[arg-type]
    with pytest.raises(wire.EncodeError, match=r"CreateTopicsRequest.topics\[0\].* is missing"):
        CreateTopicsRequest(topics=[object()]).to_json(7)  # type: ignore[list-item]
    with pytest.raises(wire.EncodeError, match=r"CreateTopicsRequest.topics must not be null in version 7"):
        CreateTopicsRequest(topics=None).to_json(7)  # type: ignore[arg-type]
    with pytest.raises(wire.EncodeError, match=r"MetadataRequest.topics\[0\] must not be null in version 12"):
        MetadataRequest(topics=[None]).to_json(12)  # type: ignore[list-item]
    with pytest.raises(wire.UnsupportedVersionError):
        MetadataRequest().to_json(99)
    with pytest.raises(wire.UnsupportedVersionError):
        MetadataRequest.from_json({}, 99)
