"""Records of `__consumer_offsets`, `__transaction_state` and `__share_group_state`: bytes to columns, JSON and messages. Pure.

Its one rule: unknown types and versions are not errors. A newer type or version has its number and no JSON; only bytes that do
not match their own version are malformed. The JSON is exactly that of Kafka's own tools, with subscriptions and assignments of
members of classic consumer groups decoded. Readers and writers are compiled per type and version. A log repeats few keys
often, so each is decoded once.
"""

from __future__ import annotations

import base64
import functools
import re
import struct
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.batches import BatchError, ControlType, Record, decode_control_key, decode_end_txn_marker
from barnabas.wire.apis import RECORD_NAMES
from barnabas.wire.codec import Reader, reader
from barnabas.wire.errors import MalformedError, UnsupportedVersionError
from barnabas.wire.json_text import TextWriter, text_writer

GROUPS = "group"
TRANSACTIONS = "transaction"
SHARE_STATES = "share"

_CACHED_KEYS = 1 << 16
_INT16 = struct.Struct(">h")
_MEMBER_BYTES = re.compile(r'"(subscription|assignment)":"([A-Za-z0-9+/=]*)"')
_FAULTS = (struct.error, IndexError, UnicodeDecodeError, MalformedError)


_STATES = (
    "Empty",
    "Ongoing",
    "PrepareCommit",
    "PrepareAbort",
    "CompleteCommit",
    "CompleteAbort",
    "Dead",
    "PrepareEpochFence",
)


def state_name(number: int) -> str:
    """Return the name of a transaction's state, as in Kafka's responses; the number if it is unknown."""
    return _STATES[number] if 0 <= number < len(_STATES) else str(number)


class Key(NamedTuple):
    """A decoded key. `message` and `json` are None if the type is unknown or the bytes are malformed."""

    record_type: str | None
    version: int | None
    """The number before the key, which identifies its type."""
    message: Any
    json: str | None
    group_id: str | None
    topic: str | None
    partition: int | None
    member_id: str | None
    transactional_id: str | None
    error: str | None
    topic_id: str | None = None


class Value(NamedTuple):
    """A decoded value. `message` and `json` are None in tombstones, and if type or version are unknown."""

    version: int | None
    message: Any
    json: str | None
    error: str | None


class Marker(NamedTuple):
    """A control record: the outcome of a transaction, or a record of an unknown type."""

    control_type: str | None
    version: int | None
    json: str | None
    error: str | None


NO_VALUE = Value(None, None, None, None)


# --- keys ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_CACHED_KEYS)
def decode_key(data: bytes | None, log: str) -> Key:
    """Decode the key of a record in a log of `GROUPS`, `TRANSACTIONS` or `SHARE_STATES`."""
    if data is None or len(data) < _INT16.size:
        return _unknown_key(None, "the record has no key")
    number: int = _INT16.unpack_from(data)[0]
    name = RECORD_NAMES[log].get(number)
    if name is None:
        return _unknown_key(number, None)
    record_type = name.removesuffix("Key")
    try:
        message: Any = wire.decode_record(data, name).record
    except (MalformedError, UnsupportedVersionError) as error:
        return _unknown_key(number, str(error), record_type)
    return Key(
        record_type,
        number,
        message,
        text_writer(type(message), 0)(message),
        getattr(message, "group_id", getattr(message, "group", None)),
        getattr(message, "topic", None),
        getattr(message, "partition", None),
        getattr(message, "member_id", None),
        getattr(message, "transactional_id", None),
        None,
        str(message.topic_id) if hasattr(message, "topic_id") else None,
    )


def _unknown_key(number: int | None, error: str | None, record_type: str | None = None) -> Key:
    return Key(record_type, number, None, None, None, None, None, None, None, error)


# --- values ----------------------------------------------------------------------------------------------------------


class _Tools(NamedTuple):
    read: Reader
    write: TextWriter
    cls: type[wire.Message]


@functools.cache
def _tools(record_type: str, version: int) -> _Tools | None:
    """Return reader and writer; None if the version is unknown."""
    cls = wire.message_class(f"{record_type}Value")
    if version not in cls.schema().versions:
        return None
    write = text_writer(cls, version)
    return _Tools(reader(cls, version), _open_members(write) if record_type == "GroupMetadata" else write, cls)


def decode_value(record_type: str | None, data: bytes | None, *, with_json: bool = True) -> Value:
    """Decode the value of a record of this type."""
    if data is None:
        return NO_VALUE
    if len(data) < _INT16.size:
        return Value(None, None, None, f"{len(data)} bytes are too few for a value")
    version: int = _INT16.unpack_from(data)[0]
    tools = None if record_type is None else _tools(record_type, version)
    if tools is None:
        return Value(version, None, None, None)
    try:
        message, end = tools.read(data, _INT16.size)
        if end <= len(data):  # like Kafka, ignore bytes after the value
            return Value(version, message, tools.write(message) if with_json else None, None)
    except _FAULTS:
        pass
    return Value(version, None, None, _fault(tools.cls, version, data))


def _fault(cls: type[wire.Message], version: int, data: bytes) -> str:
    try:
        wire.decode(cls, version, data[_INT16.size :])
    except MalformedError as error:
        return str(error)
    return f"the bytes are not those of {cls.__name__} version {version}"


def _open_members(write: TextWriter) -> TextWriter:
    """Return a writer that also decodes the bytes of members, if the protocol of the group is that of consumers."""

    def write_opened(group: Any) -> str:
        text = write(group)
        return _MEMBER_BYTES.sub(_opened, text) if group.protocol_type == "consumer" and group.members else text

    return write_opened


def _opened(found: re.Match[str]) -> str:
    json = _member_json(found[1], found[2])
    return found[0] if json is None else f'"{found[1]}":{json}'


@functools.lru_cache(maxsize=1024)
def _member_json(field: str, encoded: str) -> str | None:
    opened = decode_member_bytes(field, base64.b64decode(encoded))
    return None if opened is None else text_writer(type(opened.record), opened.version)(opened.record)


def decode_member_bytes(field: str, data: bytes) -> wire.DecodedRecord | None:
    """Decode the `subscription` or `assignment` of a member of a classic consumer group; None if it is malformed."""
    try:
        return wire.decode_record(data, f"ConsumerProtocol{field.title()}")
    except (MalformedError, UnsupportedVersionError):
        return None


# --- control records -------------------------------------------------------------------------------------------------


def decode_marker(key: bytes | None, value: bytes | None) -> Marker:
    """Decode a control record of such a log."""
    try:
        control_type = decode_control_key(key)
        if control_type not in (ControlType.COMMIT, ControlType.ABORT):
            return Marker(control_type.name, None, None, None)
        epoch = decode_end_txn_marker(Record(0, 0, key, value)).coordinator_epoch
    except BatchError as error:
        return Marker(None, None, None, str(error))
    return Marker(control_type.name, _INT16.unpack_from(value or b"\0\0")[0], f'{{"coordinatorEpoch":{epoch}}}', None)
