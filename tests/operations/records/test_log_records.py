"""Records of the metadata log as fields, without secrets."""

from __future__ import annotations

import json

import pytest

from barnabas.batches import Record
from barnabas.config.resource_type import ConfigResourceType
from barnabas.metadata.masking import MASK
from barnabas.operations.records.log_records import LogKind, describe
from barnabas.wire import Message, encode_record
from barnabas.wire.records.metadata import ConfigRecord, TopicRecord, UserScramCredentialRecord

PASSWORD = ConfigRecord(
    resource_type=ConfigResourceType.BROKER, resource_name="1", name="ssl.key.password", value="s3cret"
)
USER = UserScramCredentialRecord(name="bob", mechanism=1, salt=b"s3cret", stored_key=b"s3cret", server_key=b"s3cret")


def shown(value: bytes, *, with_secrets: bool = False) -> str:
    return json.dumps(describe(LogKind.METADATA, Record(0, 0, None, value), with_secrets=with_secrets), default=str)


@pytest.mark.parametrize("record", [PASSWORD, USER])
def test_secrets_are_hidden_unless_one_asks_for_them(record: Message) -> None:
    value = encode_record(record, 0)
    hidden, whole = shown(value), shown(value, with_secrets=True)
    assert "s3cret" not in hidden and "czNjcmV0" not in hidden and type(record).__name__ in hidden
    assert "s3cret" in whole or "czNjcmV0" in whole


def test_other_records_are_whole() -> None:
    for record in (TopicRecord(name="s3cret"), ConfigRecord(resource_type=2, name="retention.ms", value="86400000")):
        value = encode_record(record, 0)
        assert shown(value) == shown(value, with_secrets=True)


def test_metadata_that_cannot_be_decoded_is_hidden_because_it_may_be_a_secret() -> None:
    value = encode_record(PASSWORD, 0)[:-2]
    fields = describe(LogKind.METADATA, Record(0, 0, None, value))
    assert fields["value"] == MASK and "error" in fields
    assert "s3cr" in shown(value, with_secrets=True)
