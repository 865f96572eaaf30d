"""Records of Kafka's internal topics in clear, as Kafka's message formatters write them. Pure.

Its one rule: a record that cannot be decoded is None, so that its bytes are shown instead.
"""

from __future__ import annotations

from typing import NamedTuple

from barnabas.operations.records.log_records import COORDINATORS, TOPICS, decode_entry, decode_framed
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.json_text import JsonText


class InternalRecord(NamedTuple):
    """The name of a record; its key and value as Kafka's formatters write them; and the data in them, for tables."""

    type: str
    key: JsonText | None
    value: JsonText | None
    key_data: JsonText | None
    value_data: JsonText | None


def is_decodable(topic: str) -> bool:
    """Return whether the records of a topic are Kafka's own."""
    return topic in TOPICS


def decode_internal(topic: str, key: bytes | None, value: bytes | None) -> InternalRecord | None:
    """Decode a record of an internal topic. Returns None for other topics, and if the record cannot be decoded.

    >>> found = decode_internal("__consumer_offsets", bytes.fromhex("0002000161"), None)
    >>> found.type, found.key, found.value
    ('GroupMetadata', '{"type":2,"data":{"group":"a"}}', None)
    """
    kind = TOPICS.get(topic)
    if kind is None:
        return None
    try:
        if kind not in COORDINATORS:
            name, version, data = decode_framed(value, kind.value)
            whole = JsonText(f'{{"type":"{name}","version":{version},"data":{data}}}')
            return InternalRecord(name, None, whole, None, data)
        entry = decode_entry(key, value, kind)
    except (MalformedError, UnsupportedVersionError):
        return None
    return InternalRecord(
        entry.type,
        JsonText(f'{{"type":{entry.number},"data":{entry.key}}}'),
        None if entry.value is None else JsonText(f'{{"version":{entry.version},"data":{entry.value}}}'),
        entry.key,
        entry.value,
    )
