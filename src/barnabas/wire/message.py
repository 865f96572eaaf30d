"""The base of all generated classes: plain slotted objects with `==`, a readable repr, and a JSON form.

A class represents a message in all its versions. Nothing here knows bytes: `wire.codec` compiles readers and writers on
first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from barnabas.wire.schema import MessageSchema, parse

EMPTY: Final[list[Any]] = []
"""Default of an array parameter, meaning empty. None would be the null of the protocol."""


_SCHEMAS: dict[str, MessageSchema] = {}

LAZY_DEFAULTS: dict[tuple[type[Struct], str], type[Struct]] = {}
"""Structs that readers leave out at their default. They are created when they are first read."""


class Struct:
    """Named fields. Tagged fields that the schema does not know are kept by tag."""

    __slots__ = ("unknown_tagged_fields",)

    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__slots__) and (
            (self.unknown_tagged_fields or None) == (getattr(other, "unknown_tagged_fields", None) or None)
        )

    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:  # a type checker would accept any name as a field

        def __getattr__(self, name: str) -> Any:
            default = LAZY_DEFAULTS.get((type(self), name))
            if default is None:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            value = default()
            setattr(self, name, value)
            return value

    def __repr__(self) -> str:
        fields = [f"{name}={getattr(self, name)!r}" for name in type(self).__slots__]
        if self.unknown_tagged_fields:
            fields.append(f"unknown_tagged_fields={self.unknown_tagged_fields!r}")
        return f"{type(self).__name__}({', '.join(fields)})"


class Message(Struct):
    """A request, a response, a header, a data message or a record, for all versions."""

    __slots__ = ()

    SCHEMA: ClassVar[str]

    @classmethod
    def schema(cls) -> MessageSchema:
        found = _SCHEMAS.get(cls.__name__)
        if found is None:
            found = _SCHEMAS[cls.__name__] = parse(cls.SCHEMA)[0]
        return found

    def to_json(self, version: int) -> dict[str, Any]:
        """Return the content in the form of Kafka's JSON converters."""
        from barnabas.wire import json_form  # noqa: PLC0415  (the JSON form is rarely needed)

        return json_form.to_json(self, version)

    @classmethod
    def from_json(cls, content: dict[str, Any], version: int) -> Self:
        """Create a message from the form of Kafka's JSON converters. Missing fields get their default.

        Raises MalformedError for an unknown name or an invalid value.
        """
        from barnabas.wire import json_form  # noqa: PLC0415

        return json_form.from_json(cls, content, version)
