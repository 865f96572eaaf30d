"""ApiVersions of barnabas and of Apache Kafka, asked the same and compared."""

from __future__ import annotations

import struct

import pytest
from tools.apache_kafka import HOST, ApacheKafka, Barnabas, api_versions_request, exchange

from barnabas import wire
from barnabas.wire.messages.api_versions import ApiVersionsResponse

pytestmark = pytest.mark.interop

LISTENERS = ["broker", "controller"]
BAD_CLIENT_NAME = struct.pack(">ihhih", 22, 18, 3, 7, -1) + b"\x00\x06!bad!\x041.0\x00"


def address(node: ApacheKafka | Barnabas, listener: str) -> tuple[str, int]:
    return node.address if listener == "broker" else (HOST, int(node.controller.rpartition(":")[2]))


def ask(node: ApacheKafka | Barnabas, version: int, listener: str = "broker") -> ApiVersionsResponse:
    answer = exchange(address(node, listener), api_versions_request(version, correlation_id=version + 1))
    assert struct.unpack(">i", answer[:4]) == (version + 1,)  # header 0, whatever the version
    return wire.decode(ApiVersionsResponse, version, answer[4:])


def ranges(response: ApiVersionsResponse) -> dict[int, tuple[int, int]]:
    return {each.api_key: (each.min_version, each.max_version) for each in response.api_keys}


def supported(response: ApiVersionsResponse) -> set[tuple[str, int, int]]:
    return {(each.name, each.min_version, each.max_version) for each in response.supported_features}


def finalized(response: ApiVersionsResponse) -> set[tuple[str, int, int]]:
    return {(each.name, each.min_version_level, each.max_version_level) for each in response.finalized_features}


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("version", range(5))
def test_every_api_that_barnabas_serves_has_kafkas_versions_or_older_ones_too(
    kafka: ApacheKafka, barnabas_node: Barnabas, version: int, listener: str
) -> None:
    theirs, ours = ask(kafka, version, listener), ask(barnabas_node, version, listener)
    assert (ours.error_code, ours.throttle_time_ms) == (theirs.error_code, theirs.throttle_time_ms)
    kafka_ranges, barnabas_ranges = ranges(theirs), ranges(ours)
    assert 18 in barnabas_ranges
    narrower = {
        key: (first, last, kafka_ranges.get(key))
        for key, (first, last) in barnabas_ranges.items()
        if key not in kafka_ranges or first > kafka_ranges[key][0] or last != kafka_ranges[key][1]
    }
    assert narrower == {}


@pytest.mark.parametrize("version", range(5))
def test_apis_are_listed_in_the_order_of_their_keys(kafka: ApacheKafka, barnabas_node: Barnabas, version: int) -> None:
    for node in (kafka, barnabas_node):
        keys = [each.api_key for each in ask(node, version).api_keys]
        assert keys == sorted(keys)


@pytest.mark.parametrize("node_name", ["kafka", "barnabas_node"])
def test_version_3_leaves_out_features_that_may_be_zero(node_name: str, request: pytest.FixtureRequest) -> None:
    node = request.getfixturevalue(node_name)
    three, four = ask(node, 3), ask(node, 4)
    assert min(each.min_version for each in four.supported_features) == 0
    assert supported(three) == {feature for feature in supported(four) if feature[1] > 0}


@pytest.mark.parametrize("version", [3, 4])
def test_features_are_those_of_kafka(kafka: ApacheKafka, barnabas_node: Barnabas, version: int) -> None:
    theirs, ours = ask(kafka, version), ask(barnabas_node, version)
    assert supported(ours) == supported(theirs)
    assert finalized(ours) == finalized(theirs)
    assert ours.finalized_features_epoch >= 0
    assert ours.zk_migration_ready == theirs.zk_migration_ready


@pytest.mark.parametrize("listener", LISTENERS)
@pytest.mark.parametrize("version", [5, 99, 32767])
def test_an_unsupported_version_is_answered_in_version_0_with_error_35(
    kafka: ApacheKafka, barnabas_node: Barnabas, version: int, listener: str
) -> None:
    request = api_versions_request(version, correlation_id=77)
    expected = struct.pack(">ihihhh", 77, 35, 1, 18, 0, 4)
    assert exchange(address(kafka, listener), request) == expected
    assert exchange(address(barnabas_node, listener), request) == expected


def test_a_bad_client_name_is_an_invalid_request(kafka: ApacheKafka, barnabas_node: Barnabas) -> None:
    theirs, ours = exchange(kafka.address, BAD_CLIENT_NAME), exchange(barnabas_node.address, BAD_CLIENT_NAME)
    assert theirs[4:6] == struct.pack(">h", 42)
    assert ours == theirs
