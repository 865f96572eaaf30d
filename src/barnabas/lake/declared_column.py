"""A declared column of a data source or a table: name, type and description. The reference is generated from it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple


class Column(NamedTuple):
    name: str
    type: str
    doc: str


def ddl(columns: Iterable[Column]) -> str:
    """Return the columns as a schema in Spark's DDL."""
    return schema_of({column.name: column.type for column in columns})


def schema_of(types: Mapping[str, str]) -> str:
    """Return a schema in Spark's DDL, given the type of each column by name."""
    return ", ".join(f"`{name}` {kind}" for name, kind in types.items())


class Nested(NamedTuple):
    """A type of Spark's DDL that has others inside: array, map or struct."""

    name: str
    members: tuple[tuple[str, str | Nested], ...]
    """The fields of a struct; the elements of an array, or the keys and values of a map, without names."""

    def __str__(self) -> str:
        return f"{self.name}<{', '.join(f'{name}: {inner}' if name else str(inner) for name, inner in self.members)}>"


def parse_type(text: str) -> str | Nested:
    """Parse a type of Spark's DDL: a simple one is its name. Raises ValueError."""
    text = text.strip()
    name, bracket, rest = text.partition("<")
    if not bracket:
        return text
    if name not in _NUMBER_OF_MEMBERS or not rest.endswith(">"):
        raise ValueError(f"{text!r} is not a type of Spark")
    inner = list(_split(rest[:-1]))
    if name == "struct":
        fields = (part.partition(":") for part in inner)
        return Nested(name, tuple((field.strip(), parse_type(kind)) for field, _, kind in fields))
    if len(inner) != _NUMBER_OF_MEMBERS[name]:
        raise ValueError(f"{text!r} is not a type of Spark")
    return Nested(name, tuple(("", parse_type(part)) for part in inner))


_NUMBER_OF_MEMBERS = {"array": 1, "map": 2, "struct": None}


def _split(text: str) -> Iterator[str]:
    """Split at commas that are not inside of angle brackets."""
    depth = start = 0
    for position, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            yield text[start:position]
            start = position + 1
    yield text[start:]
