"""Records of the metadata log become the JSON of Kafka's own converters, and secrets do not."""

from __future__ import annotations

import base64
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.lake.reading.decoding import metadata_records
from barnabas.lake.reading.decoding.metadata_records import (
    KEY_COLUMNS,
    RECORD_TYPES,
    TYPES,
    Values,
    classify,
    decode,
    type_name,
)
from barnabas.metadata.masking import MASK, is_hidden, masked
from barnabas.wire import Uuid, decode_record, encode_record, message_class
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.message import Message, Struct
from barnabas.wire.records.metadata import (
    ConfigRecord,
    NoOpRecord,
    PartitionChangeRecord,
    TopicRecord,
    UserScramCredentialRecord,
)
from barnabas.wire.schema import FieldSchema, StructSchema
from tests.lake.metadata_golden import data_of, dumped, name_of, values_of

ALL = {*KEY_COLUMNS, "payload"}
SCRAM = UserScramCredentialRecord(
    name="u", salt=b"salty", stored_key=b"stored!", server_key=b"served!", iterations=4096
)


def rows(values: Values, *, include_secrets: bool = True) -> list[dict[str, Any]]:
    types, versions = classify(values)
    decoded = decode(values, types, versions, ALL, include_secrets=include_secrets)
    return [
        {
            "type": type_name(int(types[row])),
            "version": int(versions[row]),
            "payload": decoded.payload[row],
            "raw": decoded.masked.get(row, values.value(row)),
            **{name: column[row] for name, column in decoded.keys.items()},
        }
        for row in range(len(types))
    ]


def one(record: Message, version: int = 0, **options: bool) -> dict[str, Any]:
    return rows(values_of([encode_record(record, version)]), **options)[0]


def test_every_record_of_a_real_log_is_the_text_that_kafka_prints() -> None:
    records = [record for record in dumped() if not record["control"]]
    encoded = []
    for record in records:
        version = record["payload"]["version"]
        encoded.append(encode_record(message_class(name_of(record)).from_json(data_of(record), version), version))
    found = rows(values_of(encoded))
    for record, row in zip(records, found, strict=True):
        assert (row["type"], row["version"]) == (name_of(record), record["payload"]["version"])
        assert json.loads(row["payload"]) == data_of(record)
        if row["type"] != "ClientQuotaRecord":  # the one type with numbers that Java writes in another way
            assert row["payload"] == json.dumps(data_of(record), separators=(",", ":"), ensure_ascii=False)


def fields(cls: type[Message], schema: StructSchema, version: int) -> st.SearchStrategy[Any]:
    made: dict[str, Any] = {}
    for each in schema.fields:
        if version in each.versions:
            values = field(cls, each, version)
            made[each.name] = st.none() | values if version in each.nullable else values
    owner: type[Struct] = cls if schema is cls.schema().root else getattr(cls, schema.name)
    return st.builds(owner, **made)


RANGES = {"int8": 7, "int16": 15, "int32": 31, "int64": 63}


def field(cls: type[Message], each: FieldSchema, version: int) -> st.SearchStrategy[Any]:
    if each.is_array:
        return st.lists(field(cls, each._replace(is_array=False), version), max_size=130 if each.type in RANGES else 4)
    if each.is_struct:
        return fields(cls, cls.schema().structs[each.type], version)
    if each.type in RANGES:
        return st.integers(-(1 << RANGES[each.type]), (1 << RANGES[each.type]) - 1)
    return {
        "bool": st.booleans(),
        "uint16": st.integers(0, 65535),
        "float64": st.floats(allow_nan=False, allow_infinity=False),
        "uuid": st.binary(min_size=16, max_size=16).map(Uuid),
        "string": st.text(max_size=200),
        "bytes": st.binary(max_size=200),
    }[each.type]


@pytest.mark.parametrize("name", RECORD_TYPES)
@settings(max_examples=25, deadline=None)
@given(data=st.data())
def test_any_record_is_its_json_form(name: str, data: st.DataObject) -> None:
    cls = message_class(name)
    versions = cls.schema().versions
    version = data.draw(st.integers(versions.first, versions.last))
    records = data.draw(st.lists(fields(cls, cls.schema().root, version), min_size=1, max_size=3))
    if name not in TYPES.values():  # in the log the first field of a control record is its version
        for record in records:
            record.version = version
    values = values_of([encode_record(record, version) for record in records])
    if name in TYPES.values():
        types, found = classify(values)
        assert found.tolist() == [version] * len(records)
    else:
        kinds = {each: number for number, each in metadata_records.CONTROL_TYPES.items()}
        types, found = classify(values)
        types[:], found[:] = (1 << 20) + kinds[name], version
    decoded = decode(values, types, found, ALL, include_secrets=True)
    assert [json.loads(text) for text in decoded.payload] == [record.to_json(version) for record in records]


def test_the_keys_of_records_are_columns() -> None:
    topic_id = Uuid(bytes(range(16)))
    topic = one(TopicRecord(name="orders", topic_id=topic_id))
    assert (topic["topic_id"], topic["topic_name"], topic["partition"]) == (str(topic_id), "orders", None)
    change = one(PartitionChangeRecord(partition_id=7, topic_id=topic_id, leader=3), 2)
    assert (change["topic_id"], change["partition"]) == (str(topic_id), 7)
    config = one(ConfigRecord(resource_type=2, resource_name="orders", name="retention.ms", value="1"))
    assert (config["resource_type"], config["resource_name"], config["topic_name"]) == ("TOPIC", "orders", "orders")


def test_what_is_not_known_keeps_its_bytes() -> None:
    newer = b"\x01\x02\x07" + b"whatever"
    strange = b"\x01\x63\x00abc"
    long_type = b"\x01\xac\x02\x00abc"
    no_frame, too_short = b"\x05\x02\x00", b"\x01"
    found = rows(values_of([newer, strange, long_type, no_frame, too_short]))
    assert [row["type"] for row in found] == ["TopicRecord", "UnknownRecord99", "UnknownRecord300", None, None]
    assert [row["payload"] for row in found] == [None] * 5
    assert [row["raw"] for row in found] == [newer, strange, long_type, no_frame, too_short]


@given(st.data())
@settings(max_examples=200, deadline=None)
def test_a_damaged_record_has_no_payload_and_harms_no_other(data: st.DataObject) -> None:
    good = encode_record(TopicRecord(name="orders"), 0)
    bad = bytearray(encode_record(PartitionChangeRecord(partition_id=1, isr=[1, 2, 3], leader=4), 1))
    at = data.draw(st.integers(3, len(bad) - 1))
    bad[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(3, len(bad)))
    found = rows(values_of([good, bytes(bad[:cut]), good]))
    assert json.loads(found[0]["payload"])["name"] == json.loads(found[2]["payload"])["name"] == "orders"
    try:
        record, version = decode_record(bytes(bad[:cut]))
        assert json.loads(found[1]["payload"]) == record.to_json(version)
    except (MalformedError, UnsupportedVersionError):
        assert found[1]["payload"] is None


# Secrets


def test_scram_credentials_are_masked_in_the_payload_and_in_the_bytes() -> None:
    row = one(SCRAM, include_secrets=False)
    assert json.loads(row["payload"]) == {
        "name": "u",
        "mechanism": 0,
        "salt": "",
        "storedKey": "",
        "serverKey": "",
        "iterations": 4096,
    }
    record = decode_record(row["raw"]).record
    assert (record.salt, record.stored_key, record.server_key, record.iterations) == (b"", b"", b"", 4096)
    shown = one(SCRAM)
    assert json.loads(shown["payload"])["salt"] == base64.b64encode(b"salty").decode()
    assert shown["raw"] == encode_record(SCRAM, 0)


@pytest.mark.parametrize(
    ("resource_type", "name"),
    [
        (4, "ssl.keystore.password"),
        (4, "listener.name.external.ssl.key.password"),
        (4, "listener.name.sasl.plain.sasl.jaas.config"),
        (4, "my.plugin.credential"),
        (2, "not.a.setting"),
        (32, "not.a.setting"),
        (16, "not.a.setting"),
        (99, "retention.ms"),
        (8, "org.example.Logger"),
    ],
)
def test_settings_that_are_sensitive_or_unknown_are_masked(resource_type: int, name: str) -> None:
    record = ConfigRecord(resource_type=resource_type, resource_name="1", name=name, value="hunter2")
    row = one(record, include_secrets=False)
    assert json.loads(row["payload"])["value"] == MASK
    assert b"hunter2" not in row["raw"]
    assert decode_record(row["raw"]).record.value == MASK
    deleted = one(
        ConfigRecord(resource_type=resource_type, resource_name="1", name=name, value=None), include_secrets=False
    )
    assert json.loads(deleted["payload"])["value"] is None


@pytest.mark.parametrize(
    ("resource_type", "name", "value"),
    [
        (2, "retention.ms", "100"),
        (4, "log.retention.ms", "100"),
        (4, "listener.name.internal.max.connections", "100"),
        (32, "consumer.session.timeout.ms", "45000"),
        (16, "interval.ms", "1000"),
        (8, "org.example.Logger", "DEBUG"),
    ],
)
def test_other_settings_are_seen(resource_type: int, name: str, value: str) -> None:
    record = ConfigRecord(resource_type=resource_type, resource_name="1", name=name, value=value)
    row = one(record, include_secrets=False)
    assert json.loads(row["payload"])["value"] == value
    assert row["raw"] == encode_record(record, 0)
    assert not is_hidden(resource_type, name, value)


def test_of_a_record_that_may_hold_a_secret_but_cannot_be_read_nothing_is_shown() -> None:
    newer = b"\x01\x0b\x05" + b"stored!"
    cut = encode_record(SCRAM, 0)[:-3]
    found = rows(values_of([newer, cut]), include_secrets=False)
    assert [(row["payload"], row["raw"]) for row in found] == [(None, None), (None, None)]
    assert [row["raw"] for row in rows(values_of([newer, cut]))] == [newer, cut]


def test_tagged_fields_of_a_later_kafka_do_not_bring_secrets_along() -> None:
    record = UserScramCredentialRecord(name="u", salt=b"salty")
    record.unknown_tagged_fields = {7: b"hunter2"}
    value = encode_record(record, 0)
    assert b"hunter2" in value
    assert b"hunter2" not in (masked(value) or b"")


def test_bytes_are_masked_when_the_payload_is_not_asked_for() -> None:
    values = values_of([encode_record(SCRAM, 0), encode_record(NoOpRecord(), 0)])
    types, versions = classify(values)
    decoded = decode(values, types, versions, {"raw"}, include_secrets=False)
    assert set(decoded.masked) == {0}
    assert b"stored!" not in (decoded.masked[0] or b"")


def test_all_names_of_records_are_known() -> None:
    assert len(RECORD_TYPES) == 26 + 5
