"""Decoding of the records in Kafka's own logs: metadata, groups, transactions, share groups, and control records in any log.

Its one rule: the kind of the log determines the type of its records. `kind_of` derives the kind from the names of files and
directories. Records of all other logs belong to users, and their bytes are not decoded.
"""

from __future__ import annotations

import base64
import re
import struct
from collections.abc import Callable
from enum import Enum
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.batches import BatchError, ControlType, Record, decode_control_key, decode_end_txn_marker
from barnabas.config.internal_topics import (
    CLUSTER_METADATA_TOPIC,
    GROUP_METADATA_TOPIC,
    SHARE_GROUP_STATE_TOPIC,
    TRANSACTION_STATE_TOPIC,
)
from barnabas.metadata.masking import MASK, SECRET_TYPES, masked
from barnabas.wire.apis import RECORD_NAMES
from barnabas.wire.codec import Reader, reader
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.json_text import JsonText, TextWriter, json_text, quote, text_writer

_INT16 = struct.Struct(">h")
_PARTITION_DIRECTORY = re.compile(r"(.+)-\d+(?:\.[0-9a-f]{32}-(?:future|delete|stray))?")


class LogKind(Enum):
    """The kind of a log; the value is the group of its records in `wire`."""

    DATA = "data"
    METADATA = "metadata"
    OFFSETS = "group"
    TRANSACTIONS = "transaction"
    SHARE_GROUPS = "share"
    REMOTE_LOGS = "storage"


TOPICS = {
    CLUSTER_METADATA_TOPIC: LogKind.METADATA,
    GROUP_METADATA_TOPIC: LogKind.OFFSETS,
    TRANSACTION_STATE_TOPIC: LogKind.TRANSACTIONS,
    SHARE_GROUP_STATE_TOPIC: LogKind.SHARE_GROUPS,
    "__remote_log_metadata": LogKind.REMOTE_LOGS,
}
COORDINATORS = (LogKind.OFFSETS, LogKind.TRANSACTIONS, LogKind.SHARE_GROUPS)


def kind_of(path: Path) -> LogKind:
    """Return the kind of a log, by the directory of the partition or by the name of a snapshot."""
    if ".checkpoint" in path.name:
        return LogKind.METADATA
    found = _PARTITION_DIRECTORY.fullmatch(path.absolute().parent.name)
    return TOPICS.get(found[1], LogKind.DATA) if found else LogKind.DATA


class UnknownRecordTypeError(MalformedError):
    """A key in a coordinator's log with an unknown type."""

    def __init__(self, type: int) -> None:
        super().__init__(f"there is no record of type {type}")
        self.type = type


class Framed(NamedTuple):
    """A record whose frame has its type and version."""

    type: str
    version: int
    data: JsonText


class Entry(NamedTuple):
    """A record of a coordinator: its key and its value. None as a value deletes the key."""

    type: str
    number: int
    key: JsonText
    version: int | None
    value: JsonText | None


# --- metadata --------------------------------------------------------------------------------------------------------


_FRAMED: dict[tuple[str, int, int], tuple[str, Reader, TextWriter]] = {}


def decode_framed(data: bytes | None, group: str = "metadata") -> Framed:
    """Decode a record of the metadata log or of __remote_log_metadata. Raises MalformedError and UnsupportedVersionError."""
    if data is None or len(data) < 3:
        raise MalformedError(
            "the record has no value" if data is None else f"{len(data)} bytes are too few for a record"
        )
    # Frame version, type and version are varints: one byte each, as long as they are below 128.
    known = _FRAMED.get((group, data[1], data[2])) if data[0] == 1 else None
    if known is None:
        record, version = wire.decode_record(data, group)
        name = type(record).__name__
        if data[1] < 0x80 and data[2] < 0x80:
            tools = (name, reader(type(record), version), text_writer(type(record), version))
            _FRAMED[group, data[1], data[2]] = tools
        return Framed(name, version, json_text(record, version))
    name, read, write = known
    try:
        record, end = read(data, 3)
    except (struct.error, IndexError, UnicodeDecodeError):
        record, end = None, -1
    if end != len(data):
        wire.decode_record(data, group)  # raises the error
    return Framed(name, data[2], JsonText(write(record)))


def upper_name(name: str) -> str:
    """Return the name of a metadata record in Kafka's enum."""
    return re.sub("(?<=[a-z])(?=[A-Z])", "_", name).upper()


# --- coordinators ----------------------------------------------------------------------------------------------------


def decode_entry(key: bytes | None, value: bytes | None, kind: LogKind) -> Entry:
    """Decode a record of a coordinator's log. Raises MalformedError (UnknownRecordTypeError), UnsupportedVersionError."""
    if key is None or len(key) < 2:
        raise MalformedError("the record has no key")
    number = _INT16.unpack_from(key)[0]
    name = RECORD_NAMES[kind.value].get(number)
    if name is None:
        raise UnknownRecordTypeError(number)
    decoded_key = wire.decode_record(key, name)
    about = json_text(decoded_key.record, decoded_key.version)
    type_name = name.removesuffix("Key")
    if value is None:
        return Entry(type_name, number, about, None, None)
    decoded = wire.decode_record(value, f"{type_name}Value")
    if type_name == "GroupMetadata" and decoded.record.protocol_type == "consumer":
        text = _open_members(decoded.record, decoded.version)
    else:
        text = json_text(decoded.record, decoded.version)
    return Entry(type_name, number, about, decoded.version, text)


def _open_members(group: Any, version: int) -> JsonText:
    """Return a classic group as JSON, with the subscription and the assignment of each member decoded."""
    text = json_text(group, version)
    for member in group.members or ():
        for field, name in (("subscription", "Subscription"), ("assignment", "Assignment")):
            data = getattr(member, field)
            try:
                opened, opened_version = wire.decode_record(data, f"ConsumerProtocol{name}")
            except (MalformedError, UnsupportedVersionError):
                continue
            was = f"{quote(field)}:{_base64_text(data)}"
            text = JsonText(text.replace(was, f"{quote(field)}:{json_text(opened, opened_version)}", 1))
    return text


def _base64_text(data: bytes) -> str:
    return f'"{base64.b64encode(data).decode()}"'


# --- control records -------------------------------------------------------------------------------------------------


_CONTROL_VALUES = {
    ControlType.LEADER_CHANGE: "LeaderChangeMessage",
    ControlType.SNAPSHOT_HEADER: "SnapshotHeaderRecord",
    ControlType.SNAPSHOT_FOOTER: "SnapshotFooterRecord",
    ControlType.KRAFT_VERSION: "KRaftVersionRecord",
    ControlType.KRAFT_VOTERS: "VotersRecord",
}


def decode_control(record: Record) -> tuple[ControlType, JsonText]:
    """Decode the type and the value of a control record. Raises BatchError, MalformedError, UnsupportedVersionError."""
    control_type = decode_control_key(record.key)
    if control_type in (ControlType.ABORT, ControlType.COMMIT):
        marker = decode_end_txn_marker(record)
        text = f'{{"endTxnMarker":"{control_type.name}","coordinatorEpoch":{marker.coordinator_epoch}}}'
        return control_type, JsonText(text)
    name = _CONTROL_VALUES.get(control_type)
    if name is None:
        return control_type, JsonText("{}")
    decoded = wire.decode_record(record.value or b"", name)
    return control_type, json_text(decoded.record, decoded.version)


# --- any record, as fields -------------------------------------------------------------------------------------------


Fields = dict[str, Any]


def describe(kind: LogKind, record: Record, *, with_secrets: bool = False) -> Fields:
    """Return `type`, `key`, `version` and `value` of a record, as far as it has them; `error` if it cannot be decoded.

    Without secrets, passwords in settings and keys of users are hidden, and so is metadata that cannot be decoded.
    """
    is_masked = kind is LogKind.METADATA and not with_secrets
    try:
        return _without_secrets(record) if is_masked else _DESCRIBED[kind](record)
    except (BatchError, MalformedError, UnsupportedVersionError) as error:
        return {**_plain(record), **({"value": MASK} if is_masked else {}), "error": str(error)}


def describe_control(record: Record) -> Fields:
    try:
        control_type, text = decode_control(record)
    except (BatchError, MalformedError, UnsupportedVersionError) as error:
        return {**_plain(record), "error": str(error)}
    return {"type": control_type.name, "value": text}


def show_bytes(data: bytes | None) -> Any:
    """Return bytes as text if they are UTF-8."""
    if data is None:
        return None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return JsonText(f'{{"base64":{_base64_text(data)}}}')


def _plain(record: Record) -> Fields:
    return {"key": show_bytes(record.key), "value": show_bytes(record.value)}


def _framed(group: str) -> Callable[[Record], Fields]:
    def fields(record: Record) -> Fields:
        type_name, version, data = decode_framed(record.value, group)
        return {"type": type_name, "version": version, "value": data}

    return fields


def _without_secrets(record: Record) -> Fields:
    type_name, version, data = decode_framed(record.value)
    if type_name in SECRET_TYPES:
        data = decode_framed(masked(record.value or b"")).data
    return {"type": type_name, "version": version, "value": data}


def _entry(kind: LogKind) -> Callable[[Record], Fields]:
    def fields(record: Record) -> Fields:
        entry = decode_entry(record.key, record.value, kind)
        return {"type": entry.type, "key": entry.key, "version": entry.version, "value": entry.value}

    return fields


_DESCRIBED: dict[LogKind, Callable[[Record], Fields]] = {
    LogKind.DATA: _plain,
    LogKind.METADATA: _framed("metadata"),
    LogKind.REMOTE_LOGS: _framed("storage"),
    **{kind: _entry(kind) for kind in COORDINATORS},
}
