"""Kafka's messages and records: bytes to typed objects and back, in every version. No I/O.

>>> from barnabas import wire
>>> from barnabas.wire.messages.api_versions import ApiVersionsRequest
>>> data = wire.encode(ApiVersionsRequest(client_software_name="me", client_software_version="1"), 3)
>>> data.hex(" ")
'03 6d 65 02 31 00'
>>> wire.decode("ApiVersionsRequest", 3, data)
ApiVersionsRequest(client_software_name='me', client_software_version='1')
"""

from __future__ import annotations

import struct
from importlib import import_module
from typing import Any, NamedTuple, TypeVar, cast, overload

from barnabas.wire.api import Api
from barnabas.wire.apis import APIS, MODULES, RECORD_NAMES, ApiKey
from barnabas.wire.codec import Writer, reader, takes_views, writer
from barnabas.wire.errors import EncodeError, ErrorCode, KafkaError, MalformedError, UnsupportedVersionError
from barnabas.wire.message import Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid, decode_unsigned_varint, encode_unsigned_varint, random_uuid
from barnabas.wire.schema import MessageSchema

__all__ = [
    "APIS",
    "ZERO_UUID",
    "Api",
    "ApiKey",
    "DecodedRecord",
    "EncodeError",
    "ErrorCode",
    "KafkaError",
    "MalformedError",
    "Message",
    "Struct",
    "UnsupportedVersionError",
    "Uuid",
    "decode",
    "decode_from",
    "decode_record",
    "encode",
    "encode_record",
    "message_class",
    "message_names",
    "random_uuid",
]

M = TypeVar("M", bound=Message)

_METADATA_FRAME_VERSION = 1
_FRAMED_GROUPS = ("metadata", "storage")
_INT16 = struct.Struct(">h")


def message_names() -> list[str]:
    """Return the names of all messages and records."""
    return list(MODULES)


def message_class(name: str) -> type[Message]:
    """Return the class of a message or record. Its module is imported on first use."""
    found = _CLASSES.get(name)
    if found is None:
        found = _CLASSES[name] = _import_class(name)
    return found


_CLASSES: dict[str, type[Message]] = {}


def _import_class(name: str) -> type[Message]:
    module = MODULES.get(name)
    if module is None:
        raise UnsupportedVersionError(f"there is no message or record named {name!r}")
    return cast("type[Message]", getattr(import_module(f"barnabas.wire.{module}"), name))


def encode(message: Message, version: int) -> bytes:
    """Encode the body alone, without size, header or frame. Raises EncodeError."""
    pieces: list[bytes] = []
    write = writer(type(message), version)
    try:
        write(message, pieces.append)
        return b"".join(pieces)
    except _UNWRITABLE as error:
        raise _fault(message, version, error) from error


_UNWRITABLE = (struct.error, TypeError, AttributeError, UnicodeEncodeError, OverflowError, LookupError)


def _fault(message: Message, version: int, error: Exception) -> EncodeError:
    from barnabas.wire.faults import explain  # noqa: PLC0415  (only when something is wrong)

    return EncodeError(explain(message, version) or f"{type(message).__name__} v{version}: {error}")


@overload
def decode(name_or_class: type[M], version: int, data: bytes) -> M: ...
@overload
def decode(name_or_class: str, version: int, data: bytes) -> Any: ...
def decode(name_or_class: type[Message] | str, version: int, data: bytes) -> Any:
    """Decode a message from its body. Remaining bytes raise MalformedError."""
    message, end = decode_from(name_or_class, version, data, 0)
    if end != len(data):
        raise MalformedError(f"{type(message).__name__} v{version}: {len(data) - end} bytes follow the message")
    return message


@overload
def decode_from(name_or_class: type[M], version: int, data: bytes | memoryview, position: int) -> tuple[M, int]: ...
@overload
def decode_from(name_or_class: str, version: int, data: bytes | memoryview, position: int) -> tuple[Any, int]: ...
def decode_from(
    name_or_class: type[Message] | str, version: int, data: bytes | memoryview, position: int
) -> tuple[Any, int]:
    """Decode a message at `position`, and return it with the position after it.

    Records in a memoryview become views of it. They are not copied, and keep the whole buffer in memory.
    """
    cls = message_class(name_or_class) if isinstance(name_or_class, str) else name_or_class
    read = reader(cls, version)
    try:
        return read(data if isinstance(data, bytes) or takes_views(cls) else bytes(data), position)
    except MalformedError as error:
        if str(error).startswith(cls.__name__):
            raise
        raise MalformedError(f"{cls.__name__} v{version}: {error}") from error
    except (struct.error, IndexError) as error:
        raise MalformedError(f"{cls.__name__} v{version}: truncated after {len(data)} bytes") from error
    except UnicodeDecodeError as error:
        raise MalformedError(f"{cls.__name__} v{version}: a string is not UTF-8: {error.reason}") from error


class DecodedRecord(NamedTuple):
    """A record, and the version in which it was encoded."""

    record: Any
    version: int


def encode_record(record: Message, version: int) -> bytes:
    """Encode a record as in a log: its frame, then its body.

    Metadata and remote log records start with frame version, record type and record version. The coordinators' keys
    start with their type. Their values, and the data messages of clients, start with their version. Other control
    records have no frame.
    """
    framed = _FRAMED.get((type(record), version))
    if framed is None:
        framed = _FRAMED[type(record), version] = _frame(record.schema(), version), writer(type(record), version)
    frame, write = framed
    pieces = [frame]
    try:
        write(record, pieces.append)
        return b"".join(pieces)
    except _UNWRITABLE as error:
        raise _fault(record, version, error) from error


_FRAMED: dict[tuple[type[Message], int], tuple[bytes, Writer]] = {}


def _frame(schema: MessageSchema, version: int) -> bytes:
    """Return the bytes before the body of a record."""
    if schema.group in _FRAMED_GROUPS and schema.key is not None:
        return b"".join(map(encode_unsigned_varint, (_METADATA_FRAME_VERSION, schema.key, version)))
    if not _has_int16_frame(schema.name, schema.kind, schema.group):
        return b""
    return _INT16.pack(schema.key if _is_key(schema.name, schema.group) else version)


def decode_record(data: bytes, name_or_group: str | type[Message] = "metadata") -> DecodedRecord:
    """Decode a framed record.

    The frame identifies records of "metadata" and "storage", and keys of "group", "transaction" and "share". For
    anything else, pass the name or class of the record (that of a value is known from its key).
    """
    if isinstance(name_or_group, str) and name_or_group in RECORD_NAMES:
        return _decode_by_group(name_or_group, data)
    cls = message_class(name_or_group) if isinstance(name_or_group, str) else name_or_group
    schema = cls.schema()
    if schema.group in _FRAMED_GROUPS and schema.key is not None:
        found = _decode_by_group(schema.group, data)
        if not isinstance(found.record, cls):
            raise MalformedError(f"the frame is that of a {type(found.record).__name__}, not a {cls.__name__}")
        return found
    if not _has_int16_frame(schema.name, schema.kind, schema.group):
        # The version is the first field of the body. An unknown newer one is read like the newest known one.
        version = min(_int16(data), schema.versions.last) if schema.group == "control" else schema.versions.last
        version = max(version, schema.versions.first)
        return DecodedRecord(decode(cls, version, data), version)
    if _is_key(schema.name, schema.group):
        return _decode_by_group(str(schema.group), data)
    version = _int16(data)
    return DecodedRecord(_decode_rest(cls, version, data, 2), version)


def _int16(data: bytes) -> int:
    if len(data) < 2:
        raise MalformedError(f"{len(data)} bytes are too few for a record")
    return cast(int, _INT16.unpack_from(data)[0])


def _is_key(name: str, group: str | None) -> bool:
    return name.endswith("Key") and group in ("group", "transaction", "share")


def _has_int16_frame(name: str, kind: str, group: str | None) -> bool:
    return (
        kind == "data"
        or group in ("group", "transaction", "share")
        or name in ("EndTxnMarker", "ControlRecordTypeSchema")
    )


def _decode_by_group(group: str, data: bytes) -> DecodedRecord:
    try:
        if group in _FRAMED_GROUPS:
            frame_version, position = decode_unsigned_varint(data, 0)
            if frame_version != _METADATA_FRAME_VERSION:
                raise MalformedError(
                    f"a {group} record has frame version {frame_version}, not {_METADATA_FRAME_VERSION}"
                )
            key, position = decode_unsigned_varint(data, position)
            version, position = decode_unsigned_varint(data, position)
        else:
            key, version, position = _int16(data), 0, 2
    except IndexError as error:
        raise MalformedError(f"a {group} record is truncated in its frame") from error
    name = RECORD_NAMES[group].get(key)
    if name is None:
        raise UnsupportedVersionError(f"there is no {group} record of type {key}")
    return DecodedRecord(_decode_rest(message_class(name), version, data, position), version)


def _decode_rest(cls: type[Message], version: int, data: bytes, position: int) -> Message:
    record, end = decode_from(cls, version, data, position)
    if end != len(data):
        raise MalformedError(f"{cls.__name__} v{version}: {len(data) - end} bytes follow the record")
    return record
