"""Converts messages to JSON values and back, in the form of Kafka's own JSON converters.

Names start with a lower-case letter, `bytes` and `records` are base64, a UUID has 22 characters, and tagged fields at
their default are left out. The schema is interpreted, not compiled: this is for people and tools.
"""

from __future__ import annotations

import base64
from typing import Any, TypeVar

from barnabas.similar_names import did_you_mean
from barnabas.wire.errors import EncodeError, MalformedError
from barnabas.wire.faults import RANGES, explain
from barnabas.wire.message import Message, Struct
from barnabas.wire.primitives import Uuid
from barnabas.wire.schema import NO_VERSIONS, FieldSchema, MessageSchema, StructSchema, is_tagged

M = TypeVar("M", bound=Message)


def to_json(message: Message, version: int) -> dict[str, Any]:
    schema = message.schema()
    schema.check_version(version)
    try:
        return _struct_to_json(schema, schema.root, message, version, schema.name)
    except (TypeError, AttributeError) as error:
        raise EncodeError(explain(message, version) or f"{schema.name} v{version}: {error}") from error


def from_json(cls: type[M], content: dict[str, Any], version: int) -> M:
    schema = cls.schema()
    schema.check_version(version)
    message = cls()
    _fill(cls, schema.root, message, content, version, schema.name)
    return message


def _struct_to_json(
    schema: MessageSchema, struct: StructSchema, value: Struct, version: int, path: str
) -> dict[str, Any]:
    content: dict[str, Any] = {}
    for field in struct.fields:
        member = getattr(value, field.name)
        if version not in field.versions:
            if not field.ignorable and not is_default(schema, field, member):
                raise EncodeError(
                    f"{path} cannot carry {field.name} in version {version}: it has versions {field.versions}"
                )
        elif not (is_tagged(field, version) and is_default(schema, field, member)):
            content[field.json_name] = _field_to_json(schema, field, member, version, f"{path}.{field.name}")
    return content


def _field_to_json(schema: MessageSchema, field: FieldSchema, value: Any, version: int, path: str) -> Any:
    if value is None:
        if version not in field.nullable and field.type != "records":
            raise EncodeError(f"{path} must not be null in version {version}")
        return None
    if field.is_array:
        element = field._replace(is_array=False, nullable=NO_VERSIONS)
        return [_field_to_json(schema, element, item, version, f"{path}[{i}]") for i, item in enumerate(value)]
    if field.is_struct:
        return _struct_to_json(schema, schema.structs[field.type], value, version, path)
    if field.type in ("bytes", "records"):
        return base64.b64encode(value).decode("ascii")
    return str(value) if field.type == "uuid" else value


def is_default(schema: MessageSchema, field: FieldSchema, value: Any) -> bool:
    """Whether the value equals that of a newly created object."""
    if value is None or field.default is None:
        return value is None and field.default is None
    if field.is_array or field.type in ("bytes", "records"):
        return len(value) == 0
    if field.is_struct:
        if value.unknown_tagged_fields:
            return False
        return all(is_default(schema, f, getattr(value, f.name)) for f in schema.structs[field.type].fields)
    if field.type == "uuid":
        return not any(value)
    return bool(value == field.default)


def _fill(cls: type[Message], struct: StructSchema, target: Struct, content: Any, version: int, path: str) -> None:
    if not isinstance(content, dict):
        raise MalformedError(f"{path} must be an object, not {type(content).__name__}")
    known = {field.json_name: field for field in struct.fields if version in field.versions}
    for name, value in content.items():
        field = known.get(name)
        if field is None:
            raise MalformedError(
                f"{path} has no field {name!r} in version {version}; it has {', '.join(known) or 'none'}"
                + did_you_mean(name, known)
            )
        setattr(target, field.name, _field_from_json(cls, field, value, version, f"{path}.{name}"))


def _field_from_json(cls: type[Message], field: FieldSchema, value: Any, version: int, path: str) -> Any:
    if value is None:
        if version not in field.nullable:
            raise MalformedError(f"{path} must not be null in version {version}")
        return None
    if field.is_array:
        if not isinstance(value, list):
            raise MalformedError(f"{path} must be an array, not {type(value).__name__}")
        element = field._replace(is_array=False, nullable=NO_VERSIONS)
        return [_field_from_json(cls, element, item, version, f"{path}[{i}]") for i, item in enumerate(value)]
    if field.is_struct:
        struct: Struct = getattr(cls, field.type)()
        _fill(cls, cls.schema().structs[field.type], struct, value, version, path)
        return struct
    try:
        return _scalar_from_json(field.type, value)
    except (ValueError, TypeError, OverflowError) as error:
        raise MalformedError(f"{path} must be a {field.type}, not {value!r}: {error}") from error


def _scalar_from_json(kind: str, value: Any) -> Any:
    if kind in ("bytes", "records"):
        return base64.b64decode(value, validate=True)
    if kind == "uuid":
        return Uuid.parse(value)
    wanted = {"string": (str,), "bool": (bool,), "float64": (float, int)}.get(kind, (int,))
    if type(value) not in wanted:
        raise TypeError(f"it is a {type(value).__name__}")
    if kind in RANGES and not RANGES[kind][0] <= value <= RANGES[kind][1]:
        raise ValueError("it is out of range")
    return float(value) if kind == "float64" else value
