"""The base of all generated classes: plain slotted values with `==`, a readable repr, and the JSON form.

A class stands for a message in all its versions. Nothing here knows bytes: `wire.codec` compiles those on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar, Final, Self

from barnabas.wire.schema import MessageSchema, parse

EMPTY: Final[list[Any]] = []
"""Stands for an empty array that was not given, where None would be the null of the protocol."""


_SCHEMAS: dict[str, MessageSchema] = {}

LAZY_DEFAULTS: dict[tuple[type[Struct], str], type[Struct]] = {}
"""Structs that readers leave out when they are at their default: made when they are first looked at."""


class Struct:
    """Named fields; tagged fields that the schema does not know are kept by tag number."""

    __slots__ = ("unknown_tagged_fields",)

    unknown_tagged_fields: dict[int, bytes] | None

    def __eq__(self, other: object) -> bool:
        if type(self) is not type(other):
            return NotImplemented
        return all(getattr(self, name) == getattr(other, name) for name in type(self).__slots__) and (
            (self.unknown_tagged_fields or None) == (getattr(other, "unknown_tagged_fields", None) or None)
        )

    __hash__ = None  # type: ignore[assignment]

    if not TYPE_CHECKING:  # a checker would take any name for a field

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
        """The content in the form of Kafka's JSON converters."""
        from barnabas.wire import json_form  # noqa: PLC0415  (the JSON form is rarely needed)

        return json_form.to_json(self, version)

    @classmethod
    def from_json(cls, content: dict[str, Any], version: int) -> Self:
        """From the form of Kafka's JSON converters; what is left out has its default, an unknown name is an error."""
        from barnabas.wire import json_form  # noqa: PLC0415

        return json_form.from_json(cls, content, version)
