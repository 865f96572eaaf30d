"""Records of `__consumer_offsets` and `__transaction_state`: bytes to columns, JSON and messages. Pure.

Its one rule: bytes that are not known are no error. A type or a version that came after this was written has its number and no
JSON; only bytes that are not what their own version says are malformed. The JSON is that of Kafka's own tools, to the
character, with what the members of a classic group of consumers asked for and got opened. Readers and writers are compiled
per type and version; keys, of which a log has few and says them often, are decoded once.
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
    """The state of a transaction as Kafka's answers name it; the number where it is none of today's."""
    return _STATES[number] if 0 <= number < len(_STATES) else str(number)


class Key(NamedTuple):
    """What a record is about. `message` and `json` are None where the type is not known or the bytes are not of it."""

    record_type: str | None
    version: int | None
    """The number before the key, which is that of its type."""
    message: Any
    json: str | None
    group_id: str | None
    topic: str | None
    partition: int | None
    member_id: str | None
    transactional_id: str | None
    error: str | None


class Value(NamedTuple):
    """What is said. `message` and `json` are None in tombstones, and where type or version are not known."""

    version: int | None
    message: Any
    json: str | None
    error: str | None


class Marker(NamedTuple):
    """A control record: what a transaction came to, or something of a type that is not known."""

    control_type: str | None
    version: int | None
    json: str | None
    error: str | None


NO_VALUE = Value(None, None, None, None)


# --- keys ------------------------------------------------------------------------------------------------------------


@functools.lru_cache(maxsize=_CACHED_KEYS)
def decode_key(data: bytes | None, log: str) -> Key:
    """The key of a record in a log of `GROUPS` or `TRANSACTIONS`."""
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
    """None where the version is not known."""
    cls = wire.message_class(f"{record_type}Value")
    if version not in cls.schema().versions:
        return None
    write = text_writer(cls, version)
    return _Tools(reader(cls, version), _open_members(write) if record_type == "GroupMetadata" else write, cls)


def decode_value(record_type: str | None, data: bytes | None, *, with_json: bool = True) -> Value:
    """The value of a record of this type."""
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
        if end <= len(data):  # Kafka leaves what stands behind a value alone
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
    """A group whose protocol is that of consumers has in its JSON what the bytes of its members say."""

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
    """The `subscription` or `assignment` of a member of a classic group of consumers; None where it is not one."""
    try:
        return wire.decode_record(data, f"ConsumerProtocol{field.title()}")
    except (MalformedError, UnsupportedVersionError):
        return None


# --- control records -------------------------------------------------------------------------------------------------


def decode_marker(key: bytes | None, value: bytes | None) -> Marker:
    """A control record of such a log."""
    try:
        control_type = decode_control_key(key)
        if control_type not in (ControlType.COMMIT, ControlType.ABORT):
            return Marker(control_type.name, None, None, None)
        epoch = decode_end_txn_marker(Record(0, 0, key, value)).coordinator_epoch
    except BatchError as error:
        return Marker(None, None, None, str(error))
    return Marker(control_type.name, _INT16.unpack_from(value or b"\0\0")[0], f'{{"coordinatorEpoch":{epoch}}}', None)
