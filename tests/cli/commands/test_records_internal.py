"""`records consume` shows the records of Kafka's own topics in clear."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from typing import Any

import pytest

from barnabas import wire
from barnabas.operations.records.internal_records import decode_internal
from barnabas.testing import Broker
from barnabas.wire.records.share import ShareSnapshotKey, ShareSnapshotValue
from tests.command_line import Command, Script

run = Command("records", code=0)
tool = Script("kafka-console-consumer")
FORMATTERS = "org.apache.kafka.tools.consumer."


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(["t"], config={"group.initial.rebalance.delay.ms": 0}) as started:
        run(started, "produce", "t", "--transactional-id", "tx", stdin="a\nb\n")
        run(started, "consume", "t", "--group", "g")
        yield started


def rows(broker: Broker, *arguments: object) -> list[dict[str, Any]]:
    return [json.loads(line) for line in run(broker, "consume", *arguments, "-o", "jsonl").stdout.splitlines()]


@pytest.mark.parametrize(
    ("topic", "formatter", "types"),
    [
        ("__consumer_offsets", "OffsetsMessageFormatter", {"OffsetCommit"}),
        ("__transaction_state", "TransactionLogMessageFormatter", {"TransactionLog"}),
    ],
)
def test_keys_and_values_are_those_of_kafkas_formatters(
    broker: Broker, topic: str, formatter: str, types: set[str]
) -> None:
    found = [row for row in rows(broker, topic) if row["type"] in types]
    how = ["--topic", topic, "--from-beginning", "--timeout-ms", 1_000, "--formatter", FORMATTERS + formatter]
    text = tool(broker, *how).stdout.replace("}{", "}\n{")
    assert [{"key": row["key"], "value": row["value"]} for row in found] == list(map(json.loads, text.splitlines()))
    assert found


def test_a_table_shows_the_type_and_the_data(broker: Broker) -> None:
    text = run(broker, "consume", "__consumer_offsets", "--key", '"topic":"t"').stdout
    header, row = text.splitlines()
    assert header.split() == ["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP", "TYPE", "KEY", "VALUE", "HEADERS"]
    assert row.split()[4:6] == ["OffsetCommit", '{"group":"g","topic":"t","partition":0}']
    assert '{"offset":3,' in row


def test_filters_apply_to_the_decoded_json(broker: Broker) -> None:
    (row,) = rows(broker, "__consumer_offsets", "--where", "data.offset>=3")
    assert row["key"]["data"] == {"group": "g", "topic": "t", "partition": 0}
    assert rows(broker, "__consumer_offsets", "--where", "data.offset>3") == []


@pytest.mark.parametrize("option", [["--raw"], ["--format", "text"], ["--key-format", "text"]])
def test_bytes_are_shown_on_request(broker: Broker, option: list[str]) -> None:
    found = rows(broker, "__transaction_state", *option)
    assert found[0]["key"] == "\x00\x00\x00\x02tx"
    assert "type" not in found[0]
    assert found[0]["value"].keys() == {"base64"}


def test_a_record_that_cannot_be_decoded_is_shown_as_bytes(broker: Broker) -> None:
    broker.create_topic("__share_group_state", 1)
    known = wire.encode_record(ShareSnapshotKey(group_id="s", partition=1), 0)
    value = wire.encode_record(ShareSnapshotValue(snapshot_epoch=4), 0)
    lines = [
        json.dumps({"key": {"base64": _base64(key)}, "value": data})
        for key, data in ((known, {"base64": _base64(value)}), (b"\x00\x63", "unknown"), (b"k", "no type"))
    ]
    allowed = ["-X", "client.id=__admin_client"]  # others may not write to internal topics
    run(broker, "produce", "__share_group_state", "--format", "json", *allowed, stdin="\n".join(lines))
    first, second, third = rows(broker, "__share_group_state")
    assert (first["type"], first["key"]["type"], first["key"]["data"]["groupId"]) == ("ShareSnapshot", 0, "s")
    assert (first["value"]["version"], first["value"]["data"]["snapshotEpoch"]) == (0, 4)
    assert ("type" in second, second["key"], second["value"]) == (False, "\x00c", "unknown")
    assert ("type" in third, third["key"], third["value"]) == (False, "k", "no type")
    assert run(broker, "consume", "__share_group_state", "t").stdout.count("\n") == 6


def _base64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_records_of_the_remote_log_metadata_name_their_type() -> None:
    assert decode_internal("__remote_log_metadata", None, b"\x00\x00\x00") is None
    assert decode_internal("orders", b"k", b"v") is None


def test_the_metadata_log_is_not_on_brokers_and_the_right_command_is_named(broker: Broker) -> None:
    result = run(broker, "consume", "__cluster_metadata", code=1)
    assert "brokers do not serve the metadata log" in result.stderr
    assert "barnabas metadata" in result.stderr
