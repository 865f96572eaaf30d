"""Tables of facts: error codes as Kafka has them, and which header goes before which message."""

from __future__ import annotations

import gzip
import json
from typing import Any

import pytest

from barnabas import wire
from barnabas.wire.apis import RECORD_NAMES
from tests.wire.golden import DATA, NAMES, vectors_of, versions_of


def error_facts() -> list[dict[str, Any]]:
    with gzip.open(DATA / "errors.json.gz", "rt") as file:
        return list(json.load(file)["errors"])


def test_the_error_codes_are_those_of_kafka() -> None:
    assert {code.name: int(code) for code in wire.ErrorCode} == {f["name"]: f["code"] for f in error_facts()}


@pytest.mark.parametrize("fact", error_facts(), ids=lambda f: f["name"])
def test_an_error_is_retriable_and_asks_for_metadata_as_in_kafka(fact: dict[str, Any]) -> None:
    code = wire.ErrorCode(fact["code"])
    assert code.retriable == fact["retriable"]
    assert code.refresh_metadata == fact.get("refreshMetadata", False)


def test_a_kafka_error_says_its_name_and_why() -> None:
    error = wire.KafkaError(wire.ErrorCode.INVALID_REQUEST, "no topics")
    assert (error.code, error.message, str(error)) == (42, "no topics", "INVALID_REQUEST: no topics")
    assert str(wire.KafkaError(wire.ErrorCode.NOT_CONTROLLER)) == "NOT_CONTROLLER"


@pytest.mark.parametrize("name", [n for n in NAMES if n.endswith(("Request", "Response"))])
def test_the_header_before_a_message_is_that_of_kafka(name: str) -> None:
    for vector in vectors_of(name):
        api = wire.APIS[vector.facts["apiKey"]]
        header_version = api.request_header_version if name.endswith("Request") else api.response_header_version
        assert header_version(vector.version) == vector.facts["header"], vector
        assert name in (api.request, api.response)


def test_every_api_has_a_key_a_request_and_a_response() -> None:
    assert {key.value: key.name for key in wire.ApiKey}.keys() == wire.APIS.keys()
    for key, api in wire.APIS.items():
        assert wire.ApiKey(key).name.replace("_", "") == api.name.upper()
        for name in (api.request, api.response):
            schema = wire.message_class(name).schema()
            assert (schema.key, schema.versions, schema.kafka) == (key, api.versions, api.kafka)
            for version in versions_of(name):
                assert api.is_flexible(version) == (version in schema.flexible)


def test_records_are_found_by_the_number_in_their_frame() -> None:
    for name in NAMES:
        for vector in vectors_of(name):
            if "group" in vector.facts and "apiKey" in vector.facts and not name.endswith("Value"):
                assert RECORD_NAMES[vector.facts["group"]][vector.facts["apiKey"]] == name
