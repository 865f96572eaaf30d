"""Tagged fields that nobody knows are kept and written back in order, in any struct, among those that are known."""

from __future__ import annotations

import re
from typing import Any

import pytest

from barnabas import wire
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from tests.wire.golden import NAMES, Vector, vectors_of, versions_of

TAGGED = [vector for name in NAMES for vector in vectors_of(name) if vector.case == "tags"]


def struct_at(message: Any, path: str) -> Any:
    """The struct at a path of JSON names, such as `topics[0].partitions[1]`."""
    for name, index in re.findall(r"(\w+)(?:\[(\d+)\])?", path):
        snake = re.sub(r"(?=[A-Z])", "_", name).lower()
        message = getattr(message, snake)
        if index:
            message = message[int(index)]
    return message


@pytest.mark.parametrize("vector", TAGGED, ids=lambda v: v.name)
def test_unknown_tags_of_kafka_are_kept_where_they_stand(vector: Vector) -> None:
    message = wire.decode(vector.name, vector.version, vector.data)
    assert vector.facts["unknownTags"]
    for unknown in vector.facts["unknownTags"]:
        kept = struct_at(message, unknown["path"]).unknown_tagged_fields
        assert kept[unknown["tag"]] == bytes.fromhex(unknown["hex"])
    assert wire.encode(message, vector.version) == vector.data


@pytest.mark.parametrize("name", NAMES)
def test_unknown_tags_survive_a_round_trip_in_every_flexible_version_and_are_refused_in_others(name: str) -> None:
    cls = wire.message_class(name)
    for vector in vectors_of(name):
        if vector.case != "random":
            continue
        message = wire.decode(cls, vector.version, vector.data)
        message.unknown_tagged_fields = {70_000: b"", 200: b"later", 100: b"x" * 300}
        if vector.version not in cls.schema().flexible:
            with pytest.raises(
                wire.EncodeError, match=f"{name} cannot carry tagged fields in version {vector.version}"
            ):
                wire.encode(message, vector.version)
            continue
        encoded = wire.encode(message, vector.version)
        again = wire.decode(cls, vector.version, encoded)
        assert again == message
        assert list(again.unknown_tagged_fields or {}) == [100, 200, 70_000]


def test_known_and_unknown_tags_are_written_in_the_order_of_their_numbers() -> None:
    response = ApiVersionsResponse(finalized_features_epoch=7, zk_migration_ready=True)  # tags 1 and 3
    response.unknown_tagged_fields = {10: b"ten", 4: b"four", 2_000: b""}
    encoded = wire.encode(response, 4)
    tags = wire.encode(ApiVersionsResponse(), 4)[:-1]
    assert encoded == tags + bytes.fromhex("05 01 08 0000000000000007 03 01 01 04 04") + b"four" + bytes.fromhex(
        "0a 03"
    ) + b"ten" + bytes.fromhex("d0 0f 00")
    assert wire.decode(ApiVersionsResponse, 4, encoded) == response


def test_unknown_tags_between_known_ones_are_kept_whatever_the_order() -> None:
    head = wire.encode(ApiVersionsResponse(), 4)[:-1]
    known, unknown = bytes.fromhex("01 08 0000000000000007"), bytes.fromhex("07 02 beef")
    for body in (known + unknown, unknown + known):
        decoded = wire.decode(ApiVersionsResponse, 4, head + b"\x02" + body)
        assert decoded.finalized_features_epoch == 7
        assert decoded.unknown_tagged_fields == {7: b"\xbe\xef"}
        assert wire.encode(decoded, 4) == head + b"\x02" + known + unknown


def test_nested_unknown_tags_stay_in_their_struct() -> None:
    first, second = MetadataRequest.MetadataRequestTopic(name="a"), MetadataRequest.MetadataRequestTopic(name="b")
    second.unknown_tagged_fields = {5: b"here"}
    decoded = wire.decode(MetadataRequest, 12, wire.encode(MetadataRequest(topics=[first, second]), 12))
    assert decoded.unknown_tagged_fields is None
    assert decoded.topics is not None
    assert [topic.unknown_tagged_fields for topic in decoded.topics] == [None, {5: b"here"}]


def test_a_tag_that_is_known_in_a_later_version_is_unknown_before() -> None:
    request = FetchRequest(cluster_id="c")
    encoded = wire.encode(request, 12)
    assert wire.decode(FetchRequest, 12, encoded).cluster_id == "c"
    later = FetchRequest(replica_state=FetchRequest.ReplicaState(replica_id=3, replica_epoch=4))
    tags = wire.encode(later, 15)[-len(b"\x01\x01\x0d") - 13 :]
    assert tags[:3] == b"\x01\x01\x0d"
    decoded = wire.decode(FetchRequest, 12, wire.encode(FetchRequest(), 12)[:-1] + tags)
    assert decoded.unknown_tagged_fields == {1: tags[3:]}


@pytest.mark.parametrize(
    ("tags", "words"),
    [
        ({-1: b""}, "cannot have the tag -1"),
        ({1 << 31: b""}, "cannot have the tag 2147483648"),
        ({"1": b""}, "must map numbers to bytes"),
        ({1: "text"}, "must map numbers to bytes"),
        ([1], "must be a dict"),
    ],
)
def test_tags_that_cannot_be_written_are_refused(tags: Any, words: str) -> None:
    request = ApiVersionsRequest()
    request.unknown_tagged_fields = tags
    with pytest.raises(wire.EncodeError, match=words):
        wire.encode(request, 3)


def test_no_tags_and_an_empty_dict_of_tags_are_the_same() -> None:
    empty, none = ApiVersionsRequest(), ApiVersionsRequest()
    empty.unknown_tagged_fields = {}
    assert empty == none
    for version in versions_of("ApiVersionsRequest"):
        assert wire.encode(empty, version) == wire.encode(none, version)
