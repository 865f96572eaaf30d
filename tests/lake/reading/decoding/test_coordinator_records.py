"""Decoding the records of the coordinators' logs, against what Kafka's own tool printed, and with bytes that nobody knows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas import wire
from barnabas.batches import ControlType, encode_control_key
from barnabas.lake.reading.coordinator_rows import LOGS
from barnabas.lake.reading.decoding.coordinator_records import (
    GROUPS,
    TRANSACTIONS,
    decode_key,
    decode_marker,
    decode_value,
    state_name,
)
from barnabas.wire.apis import RECORD_NAMES
from barnabas.wire.records.group import (
    ConsumerGroupMemberMetadataKey,
    GroupMetadataKey,
    OffsetCommitKey,
    OffsetCommitValue,
)
from tests.lake.coordinator_histories import DATA, read_lines
from tests.storage.golden import extract_node

KEY = wire.encode_record(OffsetCommitKey(group="g", topic="t", partition=3), 0)


def printed() -> dict[tuple[str, int], dict[str, Any]]:
    """What kafka-dump-log said of each record of node 1."""
    with gzip.open(DATA / "coordinator_records.jsonl.gz", "rt") as lines:
        records = [line for line in map(json.loads, lines) if line["type"] == "record"]
    return {(record["file"], record["offset"]): record for record in records}


def test_keys_and_values_are_what_kafkas_tool_prints(tmp_path: Path) -> None:
    node, expected = extract_node(tmp_path), printed()
    assert len(expected) == 64
    for file in sorted({file for file, _ in expected}):
        log = next(log for topic, log in LOGS.items() if topic in file)
        for line in read_lines(node / file):
            key = decode_key(line.key, log)
            value = decode_value(key.record_type, line.value)
            assert (key.error, value.error) == (None, None)
            payload = "<DELETE>" if line.value is None else f'{{"version":"{value.version}","data":{value.json}}}'
            text = f'key: {{"type":"{key.version}","data":{key.json}}} payload: {payload}'
            assert text == expected.pop((file, line.offset))["text"]
    assert not expected


@pytest.mark.parametrize("log", [GROUPS, TRANSACTIONS])
def test_every_type_and_version_that_can_be_written_can_be_read(log: str) -> None:
    for number, name in RECORD_NAMES[log].items():
        about: Any = wire.message_class(name)()
        key = decode_key(wire.encode_record(about, 0), log)
        assert (key.record_type, key.version, key.message) == (name.removesuffix("Key"), number, about)
        assert json.loads(key.json or "") == about.to_json(0)
        cls = wire.message_class(f"{key.record_type}Value")
        for version in range(cls.schema().versions.first, cls.schema().versions.last + 1):
            value = decode_value(key.record_type, wire.encode_record(cls(), version))
            assert (value.version, value.error) == (version, None)
            assert json.loads(value.json or "") == cls().to_json(version)


def test_key_columns_are_those_of_the_key() -> None:
    key = decode_key(KEY, GROUPS)
    assert (key.group_id, key.topic, key.partition, key.member_id) == ("g", "t", 3, None)
    member = decode_key(wire.encode_record(ConsumerGroupMemberMetadataKey(group_id="", member_id="m"), 0), GROUPS)
    assert (member.group_id, member.member_id) == ("", "m")
    assert decode_key(wire.encode_record(GroupMetadataKey(group=""), 0), GROUPS).group_id == ""


def test_an_unknown_type_and_a_newer_version_are_no_errors() -> None:
    key = decode_key(b"\x03\xe7something", GROUPS)
    assert (key.record_type, key.version, key.json, key.error) == (None, 999, None, None)
    value = decode_value(key.record_type, b"\0\1whatever")
    assert (value.version, value.json, value.error) == (1, None, None)
    newer = decode_value("OffsetCommit", b"\0\x63whatever")
    assert (newer.version, newer.json, newer.error) == (99, None, None)


def test_bytes_that_are_not_of_their_version_say_so_without_showing_them() -> None:
    value = decode_value("OffsetCommit", b"\0\4cut off")
    assert value.json is None
    assert value.error is not None and "OffsetCommitValue" in value.error and "cut" not in value.error
    assert decode_key(KEY[:-2], GROUPS).error is not None
    assert decode_key(None, GROUPS).error == "the record has no key"
    assert decode_value("OffsetCommit", b"\0").error is not None


@given(st.binary(max_size=60), st.sampled_from((*RECORD_NAMES[GROUPS].values(), None)))
def test_no_bytes_raise(data: bytes, name: str | None) -> None:
    decode_value(None if name is None else name.removesuffix("Key"), data)
    decode_value(None if name is None else name.removesuffix("Key"), b"\0\0" + data)
    decode_key(data, GROUPS)
    decode_key(b"\0\2" + data, GROUPS)
    decode_key(data, TRANSACTIONS)
    decode_marker(data, data)


def test_markers_say_what_a_transaction_came_to() -> None:
    marker = decode_marker(encode_control_key(ControlType.COMMIT), b"\0\0\0\0\0\7")
    assert (marker.control_type, marker.version, marker.json) == ("COMMIT", 0, '{"coordinatorEpoch":7}')
    assert decode_marker(encode_control_key(ControlType.ABORT), b"\0\0\0\0\0\0").control_type == "ABORT"
    assert decode_marker(b"\0", b"").error is not None


def test_states_are_named_as_in_answers_and_a_new_one_by_its_number() -> None:
    assert [state_name(number) for number in (0, 2, 5, 44)] == ["Empty", "PrepareCommit", "CompleteAbort", "44"]


def test_text_that_json_has_to_escape_is_escaped() -> None:
    key = decode_key(wire.encode_record(GroupMetadataKey(group='a"\\\n\u00e9\U0001f600'), 0), GROUPS)
    assert json.loads(key.json or "")["group"] == 'a"\\\n\u00e9\U0001f600'
    value = decode_value("OffsetCommit", wire.encode_record(OffsetCommitValue(metadata='"subscription":"AAAA"'), 3))
    assert json.loads(value.json or "")["metadata"] == '"subscription":"AAAA"'
