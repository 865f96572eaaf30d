"""`barnabas raw`: any request as JSON, in the best version or a chosen one, to a chosen node."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from barnabas import wire
from barnabas.cli.protocol.raw_requests import (
    RawError,
    best_request,
    example,
    parse_body,
    parse_destination,
    request_in,
)
from barnabas.client.routing import AnyBroker, Controller, Coordinator, CoordinatorType, Leader, NodeId
from barnabas.testing import Broker
from barnabas.wire.schema import Versions
from tests.command_line import Command, Done


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"orders": 2}) as broker:
        yield broker


raw = Command("raw")


def body(done: Done) -> Any:
    assert done.exit_code == 0, done.output
    return done.json["body"]


def test_a_request_goes_out_in_the_newest_common_version(broker: Broker) -> None:
    result = raw(broker, "metadata", '{"topics": [{"name": "orders"}]}')
    found = json.loads(result.stdout)
    assert (found["message"], found["version"]) == ("MetadataResponse", 13)
    assert [row["name"] for row in found["body"]["topics"]] == ["orders"]
    assert result.stderr == "sending MetadataRequest v13\n"


def test_the_version_is_older_where_a_field_asks_for_it(broker: Broker) -> None:
    content = '{"topics": [], "includeClusterAuthorizedOperations": true}'
    assert json.loads(raw(broker, "Metadata", content).stdout)["version"] == 10


def test_a_version_can_be_chosen(broker: Broker) -> None:
    found = json.loads(raw(broker, "3", "--version", "1", "--compact").stdout)
    assert (found["version"], "clusterId" in found["body"]) == (1, False)


def test_the_request_comes_from_a_file_or_the_standard_input(broker: Broker, tmp_path: Path) -> None:
    content = '{"groups": ["g"]}'
    (tmp_path / "request.json").write_text(content)
    from_file = body(
        raw(broker, "DescribeGroups", "-f", str(tmp_path / "request.json"), "--version", "5", "--to", "group:g")
    )
    assert from_file["groups"][0]["groupState"] == "Dead"
    assert body(raw(broker, "DescribeGroups", "-", "--version", "5", "--to", "group:g", stdin=content)) == from_file
    both = raw(broker, "DescribeGroups", content, "-f", str(tmp_path / "request.json"))
    assert (both.exit_code, "JSON and --file cannot both be given" in both.stderr) == (2, True)


def test_a_document_of_decode_is_taken_with_its_version(broker: Broker) -> None:
    document = {"message": "MetadataRequest", "version": 4, "header": {}, "body": {"topics": []}}
    assert json.loads(raw(broker, "Metadata", json.dumps(document)).stdout)["version"] == 4


def test_bytes_are_base64_and_records_are_opened(broker: Broker) -> None:
    from barnabas.batches import Record, build_batch

    batch = base64.b64encode(build_batch([Record(0, 1, b"key", b"value")])).decode()
    rows = [{"name": "orders", "partitionData": [{"index": 1, "records": batch}]}]
    topic_id = body(raw(broker, "Metadata", '{"topics": [{"name": "orders"}]}'))["topics"][0]["topicId"]
    produce = json.dumps({"acks": -1, "timeoutMs": 5000, "topicData": rows})
    assert body(raw(broker, "Produce", produce, "--version", "9", "--to", "leader:orders:1"))
    partition = {"partition": 1, "fetchOffset": 0, "partitionMaxBytes": 10000}
    fetch = json.dumps({"maxWaitMs": 100, "topics": [{"topicId": topic_id, "partitions": [partition]}]})
    fetched = body(raw(broker, "Fetch", fetch, "--to", "leader:orders:1", "--records"))
    assert "value" in json.dumps(fetched["responses"][0]["partitions"][0]["records"])
    silent = raw(broker, "Produce", produce.replace("-1", "0", 1), "--version", "9", "--to", "leader:orders:1")
    assert (silent.exit_code, silent.stdout) == (0, "")


def test_error_codes_in_the_answer_are_named_and_fail(broker: Broker) -> None:
    result = raw(broker, "Metadata", '{"topics": [{"name": "no-such"}], "allowAutoTopicCreation": false}')
    assert result.exit_code == 1
    assert json.loads(result.stdout)["errors"] == {"body.topics[0].errorCode": "UNKNOWN_TOPIC_OR_PARTITION"}


def test_a_dry_run_shows_the_bytes(broker: Broker) -> None:
    found = json.loads(raw(broker, "Metadata", '{"topics": []}', "--version", "1", "--dry-run").stdout)
    assert bytes.fromhex(found["hex"]) == bytes(4)


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("Nonsense",), 1, "there is no API 'Nonsense'"),
        (("Metadata", "{"), 1, "the request is not JSON: "),
        (("Metadata", "[]"), 1, "a request is a JSON object"),
        (("Metadata", '{"nope": 1}'), 1, "MetadataRequest has no field 'nope' in version 13"),
        (("Metadata", '{"topics": [{"name": 5}]}'), 1, "name must be a string"),
        (("Metadata", "--version", "99"), 2, "Metadata has versions 0-13, not 99"),
        (("Metadata", "--to", "moon"), 1, "'moon' is not one of any, controller"),
        (("Metadata", "--to", "node:9"), 1, "node 9 is not known"),
        (("Metadata", "--to", "leader:nowhere:0"), 1, "UNKNOWN_TOPIC_OR_PARTITION"),
        (("Vote",), 1, "serves no version of Vote"),
        (("Vote", "--version", "1"), 1, "closed the connection"),
    ],
)
def test_what_is_wrong_is_said(broker: Broker, arguments: tuple[str, ...], code: int, message: str) -> None:
    result = raw(broker, *arguments)
    assert (result.exit_code, message in result.stderr) == (code, True), result.output


def test_destinations_are_read() -> None:
    found = [parse_destination(text) for text in ("any", "controller", "node:3", "leader:a:b:2", "group:a:b")]
    group = Coordinator("a:b", CoordinatorType.GROUP)
    assert found == [AnyBroker(), Controller(), NodeId(3), Leader("a:b", 2), group]
    assert parse_destination("transaction:t") == Coordinator("t", CoordinatorType.TRANSACTION)
    for wrong in ("node:x", "leader:a", "group:", ""):
        with pytest.raises(RawError):
            parse_destination(wrong)


def test_every_example_is_a_request_of_its_version() -> None:
    for api in wire.APIS.values():
        for version in range(api.versions.first, api.versions.last + 1):
            request_in(api, example(api, version), version)


def test_an_empty_text_is_an_empty_request() -> None:
    assert parse_body(" ") == ({}, None)
    request, version = best_request(wire.APIS[3], {}, Versions(0, 13))
    assert (type(request).__name__, version) == ("MetadataRequest", 13)
