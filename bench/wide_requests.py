"""Requests in which one array has very many rows, made from the schema: for each array of each API, also of inner ones.

A client decides how many rows each array has, so each of them has to be walked in slices. The rows differ in their names
and ids; everything else has its default. Around the array, each array has one row.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

from barnabas.broker.served import served_apis, served_versions
from barnabas.wire import Message, Struct, Uuid, message_class
from barnabas.wire.schema import FieldSchema, StructSchema

LOGIN = frozenset({"SaslHandshake", "SaslAuthenticate"})  # refused on listeners without SASL
NAMES = frozenset({"string", "uuid"})
NUMBERS = {  # of fields with which a request gets further than its first check
    "acks": 1,
    "timeout_ms": 30_000,
    "session_timeout_ms": 10_000,
    "rebalance_timeout_ms": 10_000,
    "generation_id": 1,
    "generation_id_or_member_epoch": -1,
    "replica_id": -1,
}


class WideArray(NamedTuple):
    """An array of an API's request: the fields that lead to it, and the newest version that has them all."""

    api: str
    message: type[Message]
    version: int
    path: tuple[FieldSchema, ...]

    def __str__(self) -> str:
        return f"{self.api}.{'.'.join(field.name for field in self.path)} v{self.version}"

    def request(self, rows: int, as_list: Callable[[Sequence[Any]], list[Any]] = list) -> Message:
        """A request whose array has so many rows, in a list that `as_list` makes."""
        message = self.message()
        _name(message, self.message.schema().root, 0, self.version)
        target: Any = message
        for field in self.path[:-1]:
            inner = getattr(self.message, field.type)()
            _name(inner, self.message.schema().structs[field.type], 0, self.version)
            setattr(target, field.name, [inner] if field.is_array else inner)
            target = inner
        last = self.path[-1]
        setattr(target, last.name, as_list([self._row(last, number) for number in range(rows)]))
        return message

    def _row(self, field: FieldSchema, number: int) -> Any:
        if not field.is_struct:
            return value_of(field, number)
        row = getattr(self.message, field.type)()
        _name(row, self.message.schema().structs[field.type], number, self.version)
        return row


def wide_arrays(kind: str) -> Iterator[WideArray]:
    """All arrays of the requests that a listener of this kind serves."""
    for key, api in sorted(served_apis(kind).items()):
        if api.name in LOGIN:
            continue
        message = message_class(api.request)
        for path in _paths(message, message.schema().root):
            versions = [each for each in served_versions(key) if all(each in field.versions for field in path)]
            if versions:
                yield WideArray(api.name, message, max(versions), path)


def value_of(field: FieldSchema, number: int) -> Any:
    """A value of the field's type that differs for each number, as far as the type has that many."""
    match field.type:
        case "string":
            return f"name-{number}"
        case "uuid":
            return Uuid(number.to_bytes(16, "big"))
        case "bytes" | "records":
            return b"%d" % number
        case "bool":
            return number % 2 == 1
        case "float64":
            return float(number)
        case "int8" | "int16" | "int32" | "int64" | "uint16" | "uint32":
            return number % (1 << int(field.type.lstrip("uint")) - 1)
        case _:
            raise ValueError(f"a field of type {field.type} is not known here")


def _paths(
    message: type[Message], struct: StructSchema, before: tuple[FieldSchema, ...] = ()
) -> Iterator[tuple[FieldSchema, ...]]:
    for field in struct.fields:
        path = (*before, field)
        if field.is_array:
            yield path
        if field.is_struct:
            yield from _paths(message, message.schema().structs[field.type], path)


def _name(row: Struct, struct: StructSchema, number: int, version: int) -> None:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if field.name in NUMBERS and not field.is_array:
            setattr(row, field.name, NUMBERS[field.name])
        elif field.type in NAMES and not field.is_array and field.tag is None:
            setattr(row, field.name, value_of(field, number))
