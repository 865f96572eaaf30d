"""Finds the field of a message that cannot be written, after a compiled writer has failed."""

from __future__ import annotations

from typing import Any

from barnabas.wire.codec import MAX_STRING_LENGTH
from barnabas.wire.message import Message, Struct
from barnabas.wire.schema import FieldSchema, MessageSchema, StructSchema, is_tagged

RANGES = {
    "int8": (-(1 << 7), (1 << 7) - 1),
    "int16": (-(1 << 15), (1 << 15) - 1),
    "uint16": (0, (1 << 16) - 1),
    "int32": (-(1 << 31), (1 << 31) - 1),
    "uint32": (0, (1 << 32) - 1),
    "int64": (-(1 << 63), (1 << 63) - 1),
}
_BUFFERS = (bytes, bytearray, memoryview)


def explain(message: Message, version: int) -> str | None:
    """Describe the first invalid field: its name, its version and what is wrong with it."""
    schema = message.schema()
    fault = _in_struct(schema, schema.root, message, version, schema.name)
    return f"{fault} (version {version})" if fault else None


def _in_struct(schema: MessageSchema, struct: StructSchema, value: Struct, version: int, path: str) -> str | None:
    for field in struct.fields:
        if version not in field.versions:
            continue
        where = f"{path}.{field.name}"
        if not hasattr(value, field.name):
            return f"{where} is missing: {path} is of type {type(value).__name__}"
        member = getattr(value, field.name)
        if member is None:
            if version in field.nullable or (field.default is None and is_tagged(field, version)):
                continue
            return f"{where} must not be null"
        if field.is_array and not isinstance(member, list | tuple):
            return f"{where} must be a list, not {type(member).__name__}"
        items = enumerate(member) if field.is_array else [(None, member)]
        for index, item in items:
            fault = _in_value(schema, field, item, version, where if index is None else f"{where}[{index}]")
            if fault:
                return fault
    return _in_tags(value, path)


def _in_value(schema: MessageSchema, field: FieldSchema, value: Any, version: int, path: str) -> str | None:
    if field.is_struct:
        return _in_struct(schema, schema.structs[field.type], value, version, path)
    if field.type in RANGES:
        first, last = RANGES[field.type]
        if not isinstance(value, int):
            return f"{path} must be an {field.type}, not {value!r}"
        return None if first <= value <= last else f"{path} must be an {field.type}: {value} is out of range"
    if field.type == "string":
        return _in_string(value, path)
    if field.type == "bool":
        return None if isinstance(value, bool) else f"{path} must be a bool, not {value!r}"
    if field.type in ("bytes", "records"):
        return None if isinstance(value, _BUFFERS) else f"{path} must be bytes, not {type(value).__name__}"
    if field.type == "uuid":
        ok = isinstance(value, bytes) and len(value) == 16
        return None if ok else f"{path} must be a uuid of 16 bytes, not {value!r}"
    if field.type == "float64":
        return _in_float(value, path)
    return None


def _in_string(value: Any, path: str) -> str | None:
    if not isinstance(value, str):
        return f"{path} must be a string, not {type(value).__name__}"
    try:
        length = len(value.encode())
    except UnicodeEncodeError as error:
        return f"{path} cannot be encoded as UTF-8: {error.reason}"
    return None if length <= MAX_STRING_LENGTH else f"{path} has {length} bytes, more than {MAX_STRING_LENGTH}"


def _in_float(value: Any, path: str) -> str | None:
    if not isinstance(value, int | float):
        return f"{path} must be a number, not {value!r}"
    try:
        float(value)
    except OverflowError:
        return f"{path} must be a float64: the number is out of range"
    return None


def _in_tags(value: Struct, path: str) -> str | None:
    tags = value.unknown_tagged_fields
    if not tags:
        return None
    if not isinstance(tags, dict):
        return f"{path}.unknown_tagged_fields must be a dict, not {type(tags).__name__}"
    for tag, data in tags.items():
        if not isinstance(tag, int) or not isinstance(data, _BUFFERS):
            return f"{path}.unknown_tagged_fields must map numbers to bytes, not {tag!r} to {type(data).__name__}"
    return None
