"""The golden vectors, and walks over the schema that build a message around any field of it."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.wire.schema import FieldSchema, StructSchema

DATA = Path(__file__).parent / "data"
NAMES = wire.message_names()


class Vector(NamedTuple):
    """One line of the golden data."""

    name: str
    version: int
    case: str
    data: bytes
    facts: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.name} v{self.version} {self.case}"


@cache
def _vectors_by_name() -> dict[str, list[Vector]]:
    found: dict[str, list[Vector]] = {}
    for file in ("messages.jsonl.gz", "records.jsonl.gz"):
        with gzip.open(DATA / file, "rt") as lines:
            for line in lines:
                row = json.loads(line)
                vector = Vector(row["name"], row["version"], row["case"], bytes.fromhex(row["hex"]), row)
                found.setdefault(vector.name, []).append(vector)
    return found


def vectors_of(name: str) -> list[Vector]:
    return _vectors_by_name()[name]


def versions_of(name: str) -> range:
    versions = wire.message_class(name).schema().versions
    return range(versions.first, versions.last + 1)


class Place(NamedTuple):
    """A field somewhere in a message: the fields that lead to its struct, and the field."""

    parents: tuple[FieldSchema, ...]
    field: FieldSchema

    def path(self, name: str) -> str:
        steps = [f"{f.name}[0]" if f.is_array else f.name for f in self.parents]
        return ".".join([name, *steps, self.field.name])


def places_in(name: str, version: int) -> Iterator[Place]:
    """All fields, also those that the version lacks, of all structs that the version has."""
    schema = wire.message_class(name).schema()

    def walk(struct: StructSchema, parents: tuple[FieldSchema, ...]) -> Iterator[Place]:
        for field in struct.fields:
            yield Place(parents, field)
            if field.is_struct and version in field.versions:
                yield from walk(schema.structs[field.type], (*parents, field))

    return walk(schema.root, ())


def smallest_element(cls: type[wire.Message], field: FieldSchema, version: int) -> Any:
    """The value of the field, or of one element of it, that takes the fewest bytes."""
    if field.is_struct:
        value = getattr(cls, field.type)()
        shrink(value, cls.schema().structs[field.type], version)
        return value
    empty: dict[str, Any] = {"string": "", "bytes": b"", "records": b"", "uuid": wire.ZERO_UUID, "bool": False}
    return empty.get(field.type, 0)


def shrink(value: wire.Struct, struct: StructSchema, version: int) -> None:
    for field in struct.fields:
        if version not in field.versions:
            continue
        if version in field.nullable and field.tag is None:
            setattr(value, field.name, None)
        elif field.type == "records":
            setattr(value, field.name, b"")  # its default is null, also where it may not be


def message_around(name: str, version: int, place: Place) -> tuple[wire.Message, wire.Struct]:
    """A message that can be encoded and has the struct which holds the place's field, and that struct."""
    cls = wire.message_class(name)
    message = cls()
    shrink(message, cls.schema().root, version)
    holder: wire.Struct = message
    for parent in place.parents:
        inner = smallest_element(cls, parent, version)
        setattr(holder, parent.name, [inner] if parent.is_array else inner)
        holder = inner
    return message, holder
