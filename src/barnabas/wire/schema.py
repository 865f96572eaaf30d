"""Message schemas: the compact schema text, parsed to `MessageSchema`, `StructSchema` and `FieldSchema`.

The text is in schema/*.txt for the generator, and on each generated class as `SCHEMA`, where it is parsed only when a
codec of the class is needed. This module knows versions and types; bytes are handled by the codec.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

from barnabas.wire.errors import UnsupportedVersionError

MAX_VERSION = 32767

# Fixed-width types with their struct format. All other types have a length or are structs.
FIXED_FORMATS = {
    "bool": "?",
    "int8": "b",
    "int16": "h",
    "uint16": "H",
    "int32": "i",
    "uint32": "I",
    "int64": "q",
    "float64": "d",
    "uuid": "16s",
}
FIXED_SIZES = {"?": 1, "b": 1, "B": 1, "h": 2, "H": 2, "i": 4, "I": 4, "q": 8, "d": 8, "16s": 16}
PRIMITIVES = {*FIXED_FORMATS, "string", "bytes", "records"}


class Versions(NamedTuple):
    """An inclusive range of versions. `last < first` means none."""

    first: int
    last: int

    @classmethod
    def parse(cls, text: str) -> Versions:
        if text == "none":
            return cls(0, -1)
        if text.endswith("+"):
            return cls(int(text[:-1]), MAX_VERSION)
        first, _, last = text.partition("-")
        return cls(int(first), int(last or first))

    def __contains__(self, version: object) -> bool:
        return isinstance(version, int) and self.first <= version <= self.last

    def __str__(self) -> str:
        if self.last < self.first:
            return "none"
        if self.last == MAX_VERSION:
            return f"{self.first}+"
        return str(self.first) if self.first == self.last else f"{self.first}-{self.last}"


ALL_VERSIONS = Versions(0, MAX_VERSION)
NO_VERSIONS = Versions(0, -1)


class FieldSchema(NamedTuple):
    """A field of a struct."""

    name: str
    type: str  # for an array, the type of its elements
    is_array: bool
    versions: Versions
    nullable: Versions
    tag: int | None
    tagged: Versions
    default: Any  # as JSON; `...` for a struct that is not null by default
    ignorable: bool
    is_key: bool
    flexible: Versions | None  # if it differs from the message's

    @property
    def json_name(self) -> str:
        first, *rest = self.name.split("_")
        return first + "".join(word[:1].upper() + word[1:] for word in rest)

    @property
    def is_struct(self) -> bool:
        return self.type not in PRIMITIVES


class StructSchema(NamedTuple):
    """A struct: its name, and its fields in wire order."""

    name: str
    fields: tuple[FieldSchema, ...]

    def fields_in(self, version: int) -> Iterator[FieldSchema]:
        """Return the fields of the body in order, without tagged ones."""
        return (f for f in self.fields if version in f.versions and not is_tagged(f, version))

    def tagged_in(self, version: int) -> list[FieldSchema]:
        tagged = [f for f in self.fields if version in f.versions and is_tagged(f, version)]
        return sorted(tagged, key=lambda f: f.tag or 0)

    def absent_in(self, version: int) -> Iterator[FieldSchema]:
        return (f for f in self.fields if version not in f.versions)


class MessageSchema(NamedTuple):
    """A message: its head line, its own fields, and the structs that they use."""

    name: str
    kind: str  # request, response, header, data, record
    key: int | None
    group: str | None
    versions: Versions
    kafka: Versions
    flexible: Versions
    listeners: tuple[str, ...]
    unstable: bool
    root: StructSchema
    structs: dict[str, StructSchema]

    def check_version(self, version: int) -> None:
        if version not in self.versions:
            raise UnsupportedVersionError(f"{self.name} has versions {self.versions}, not {version}")


def is_tagged(field: FieldSchema, version: int) -> bool:
    return field.tag is not None and version in field.tagged


def parse(text: str) -> list[MessageSchema]:
    """Parse the compact form. Empty lines and lines that start with # are ignored."""
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    messages: list[MessageSchema] = []
    position = 0
    while position < len(lines):
        end = position + 1
        while end < len(lines) and lines[end].startswith(" "):
            end += 1
        messages.append(_parse_message(lines[position], lines[position + 1 : end]))
        position = end
    return messages


def _parse_message(head: str, body: list[str]) -> MessageSchema:
    name, kind, *words = head.split()
    options = _options(words)
    structs: dict[str, StructSchema] = {}
    fields = _parse_fields([(_indent(line), line.split()) for line in body], structs)
    versions = Versions.parse(options["versions"])
    return MessageSchema(
        name=name,
        kind=kind,
        key=int(options["key"]) if "key" in options else None,
        group=options.get("group"),
        versions=versions,
        kafka=Versions.parse(options["kafka"]) if "kafka" in options else versions,
        flexible=Versions.parse(options["flexible"]),
        listeners=tuple(options["listeners"].split(",")) if "listeners" in options else (),
        unstable="unstable" in options,
        root=StructSchema(name, fields),
        structs=structs,
    )


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _options(words: list[str]) -> dict[str, str]:
    return {name: value for name, _, value in (word.partition("=") for word in words)}


def _parse_fields(lines: list[tuple[int, list[str]]], structs: dict[str, StructSchema]) -> tuple[FieldSchema, ...]:
    fields: list[FieldSchema] = []
    position = 0
    while position < len(lines):
        indent, words = lines[position]
        end = position + 1
        while end < len(lines) and lines[end][0] > indent:
            end += 1
        if words[0] == "struct":
            structs[words[1]] = StructSchema(words[1], _parse_fields(lines[position + 1 : end], structs))
        else:
            field = _parse_field(words)
            fields.append(field)
            if end > position + 1:
                structs[field.type] = StructSchema(field.type, _parse_fields(lines[position + 1 : end], structs))
        position = end
    return tuple(fields)


def _parse_field(words: list[str]) -> FieldSchema:
    name, type_name, *rest = words
    versions = ALL_VERSIONS
    if rest and rest[0][0].isdigit():
        versions = Versions.parse(rest.pop(0))
    options = _options(rest)
    nullable = NO_VERSIONS
    if "nullable" in options:
        nullable = Versions.parse(options["nullable"]) if options["nullable"] else versions
    tag = int(options["tag"]) if "tag" in options else None
    tagged = NO_VERSIONS
    if tag is not None:
        tagged = Versions.parse(options["tagged"]) if "tagged" in options else versions
    is_array = type_name.startswith("[]")
    element = type_name.removeprefix("[]")
    return FieldSchema(
        name=name,
        type=element,
        is_array=is_array,
        versions=versions,
        nullable=nullable,
        tag=tag,
        tagged=tagged,
        default=json.loads(options["default"]) if "default" in options else _implicit_default(element, is_array),
        ignorable="ignorable" in options,
        is_key="key" in options,
        flexible=Versions.parse(options["flexible"]) if "flexible" in options else None,
    )


def _implicit_default(element: str, is_array: bool) -> Any:
    if is_array:
        return []
    if element in ("string", "bytes"):
        return ""
    if element == "bool":
        return False
    if element == "records":
        return None
    if element == "uuid":
        return "AAAAAAAAAAAAAAAAAAAAAA"
    return 0 if element in FIXED_FORMATS else ...
