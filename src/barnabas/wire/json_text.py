"""Formats messages directly as JSON text, for outputs of millions of records: compiled per (message, version).

Its one rule: the text equals the output of Kafka's own converters: no blanks, and numbers as Java writes them.
`Message.to_json` returns the same as values, at a tenth of the speed.
"""

from __future__ import annotations

import base64
import functools
import json
import math
import re
from collections.abc import Callable
from typing import Any

from barnabas.wire.json_form import is_default
from barnabas.wire.message import Message
from barnabas.wire.primitives import Uuid
from barnabas.wire.schema import NO_VERSIONS, FieldSchema, MessageSchema, StructSchema, is_tagged

TextWriter = Callable[[Any], str]

_WRITERS: dict[tuple[type[Message], int], TextWriter] = {}


class JsonText(str):
    """Text that is already JSON. Outputs insert it in place of a value."""

    __slots__ = ()

    def value(self) -> Any:
        return json.loads(self)


def json_text(message: Message, version: int) -> JsonText:
    """Return the JSON of a message in a version."""
    return JsonText(text_writer(type(message), version)(message))


def text_writer(cls: type[Message], version: int) -> TextWriter:
    """Return `write(message) -> text`, for messages decoded in this version."""
    found = _WRITERS.get((cls, version))
    if found is None:
        schema = cls.schema()
        schema.check_version(version)
        found = _WRITERS[cls, version] = _struct_writer(schema, schema.root, version, {})
    return found


def quote(text: str) -> str:
    """Return a text as a JSON string."""
    quoted = _quote(text)
    return quoted if text.isprintable() else _ESCAPE.sub(_java_escape, quoted)


def java_double(number: float) -> str:
    """Format a double as Java does: with an exponent from ten million on, and below a thousandth."""
    if not math.isfinite(number):
        return '"NaN"' if math.isnan(number) else '"Infinity"' if number > 0 else '"-Infinity"'
    if number == 0 or 1e-3 <= abs(number) < 1e7:
        return repr(number)
    mantissa, _, exponent = f"{number:.17e}".partition("e")
    digits = repr(number).partition("e")[0].replace(".", "").lstrip("-0").rstrip("0") or "0"
    sign = "-" if mantissa.startswith("-") else ""
    return f"{sign}{digits[0]}.{digits[1:] or '0'}E{int(exponent)}"


_quote = json.encoder.encode_basestring
_ESCAPE = re.compile(r"\\(?:u00([01][0-9a-f])|.)")


def _java_escape(found: re.Match[str]) -> str:
    return found[0] if found[1] is None else f"\\u00{found[1].upper()}"


@functools.lru_cache(maxsize=4096)
def _uuid_text(value: Uuid) -> str:
    """Format a UUID, cached because most records of a log have the same few ids."""
    return f'"{value}"'


def _struct_writer(
    schema: MessageSchema, struct: StructSchema, version: int, known: dict[str, TextWriter]
) -> TextWriter:
    """Generate source that joins the texts of the fields. A tagged field at its default is left out."""
    constants: dict[str, Any] = {
        "quote": quote,
        "base64": lambda data: base64.b64encode(data).decode(),
        "double": java_double,
        "uuid": _uuid_text,
    }
    lines = ["def run(m):"]
    text = ""
    for number, field in enumerate(field for field in struct.fields if version in field.versions):
        expression = _expression(schema, field, f"m.{field.name}", version, constants, known)
        piece = f',"{field.json_name}":{{{expression}}}'
        if is_tagged(field, version):
            shown = _unlike_default(schema, field, f"m.{field.name}", constants)
            lines.append(f"    t{number} = f'{piece}' if {shown} else ''")
            piece = f"{{t{number}}}"
        text += piece
    # Each field starts with a comma; the first one is cut off.
    lines.append(f"    return '{{' + f'{text}'[1:] + '}}'")
    # The source is generated from this project's own schema.
    exec(compile("\n".join(lines), f"<JSON of {struct.name} v{version}>", "exec"), constants)
    writer: TextWriter = constants["run"]
    return writer


def _unlike_default(schema: MessageSchema, field: FieldSchema, value: str, constants: dict[str, Any]) -> str:
    """Return an expression for whether to show the field: the negation of `is_default`, mostly without a call."""
    if field.default is None:
        return f"{value} is not None"
    if field.is_array or field.type in ("bytes", "records"):
        return f"{value} is None or len({value})"
    if not field.is_struct and field.type != "uuid":
        constants[f"default_{field.name}"] = field.default
        return f"{value} != default_{field.name}"
    constants[f"is_default_{field.name}"] = lambda value: is_default(schema, field, value)
    return f"not is_default_{field.name}({value})"


def _expression(
    schema: MessageSchema,
    field: FieldSchema,
    value: str,
    version: int,
    constants: dict[str, Any],
    known: dict[str, TextWriter],
) -> str:
    """Return an expression for the text of a field.

    It is used in an f-string with single quotes, so it contains none.
    """
    constants["null"] = "null"
    if version in field.nullable and field.type != "records":
        inner = _expression(schema, field._replace(nullable=NO_VERSIONS), value, version, constants, known)
        return f"null if {value} is None else {inner}"
    if field.is_array:
        element = field._replace(is_array=False)
        constants.update(opening="[", closing="]", comma=",", empty="[]", space=" ", nothing="")
        if element.type in ("int8", "int16", "uint16", "int32", "uint32", "int64"):
            return f"(str({value}).replace(space, nothing) if {value} else empty)"
        inner = _expression(schema, element, "e", version, constants, known)
        return f"opening + comma.join([{inner} for e in {value}]) + closing"
    if field.is_struct:
        name = f"write_{field.type}"
        if field.type not in known:
            known[field.type] = _struct_writer(schema, schema.structs[field.type], version, known)
        constants[name] = known[field.type]
        return f"{name}({value})"
    constants.update(true="true", false="false", quotation='"')
    texts = {
        "string": f"quote({value})",
        "bool": f"(true if {value} else false)",
        "uuid": f"uuid({value})",
        "bytes": f"quotation + base64({value}) + quotation",
        "records": f"(null if {value} is None else quotation + base64({value}) + quotation)",
        "float64": f"double({value})",
    }
    return texts.get(field.type, f"{value}")
