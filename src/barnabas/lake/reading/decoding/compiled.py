"""A compiler of functions that turn the bytes of many records of one type and version into JSON, from their schema.

Its one rule: the text is that of Kafka's own JSON converters, without spaces. A function loops over the positions of records in
one buffer, so there is no object per record except its text and its keys. A record that does not match its schema, or its
length, yields None, and others are not affected.

Arrays of numbers, ids and short texts are often repeated: their JSON is cached by their bytes.
"""

from __future__ import annotations

import binascii
import struct
from collections.abc import Callable, Sequence
from typing import Any

from barnabas.wire.errors import MalformedError
from barnabas.wire.json_text import java_double, quote
from barnabas.wire.message import Message
from barnabas.wire.primitives import Uuid, decode_unsigned_varint
from barnabas.wire.schema import FIXED_FORMATS, FIXED_SIZES, FieldSchema, MessageSchema, StructSchema, is_tagged

Run = Callable[..., None]
"""`run(buf, rows, starts, ends, texts, hide, *keys)` appends a text or None to `texts` for each record, and each of its
keys to one of `keys`; it calls `hide` with the row of a record in which something was masked."""

Hide = dict[str, str]
"""Fields whose value is hidden: the JSON text in its place, or an expression of `value` and other fields."""

CACHED = 1 << 16
_ERRORS = (struct.error, IndexError, UnicodeDecodeError, MalformedError, OverflowError)


class _Cache(dict[bytes, Any]):
    """A cache of texts by their bytes; cleared when it gets too large."""

    def __init__(self, make: Callable[[bytes], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, data: bytes) -> Any:
        text = self._make(data)
        if len(self) >= CACHED:
            self.clear()
        self[data] = text
        return text


def _numbers(fmt: str) -> Callable[[bytes], str]:
    size = FIXED_SIZES[fmt]

    def make(data: bytes) -> str:
        return f"[{','.join(map(str, struct.unpack(f'>{len(data) // size}{fmt}', data)))}]"

    return make


def _uuids(data: bytes) -> str:
    if len(data) % 16:
        raise MalformedError("an array of ids has an incomplete id")
    return f"[{','.join(_UUIDS[data[at : at + 16]] for at in range(0, len(data), 16))}]"


def _uuid(data: bytes) -> str:
    if len(data) != 16:
        raise MalformedError("an id is incomplete")
    return f'"{Uuid(data)}"'


def _counted(size: int, make: Callable[[bytes], str]) -> Callable[[bytes], str]:
    """Return a function for an array after its length byte, which is the number of elements plus one."""

    def counted(data: bytes) -> str:
        if not data or len(data) != data[0] * size - size + 1:
            raise MalformedError("an array is null or incomplete")
        return make(data[1:])

    return counted


_UUIDS = _Cache(_uuid)
_CONSTANTS: dict[str, Any] = {
    "uv": decode_unsigned_varint,
    "Malformed": MalformedError,
    "ERRORS": _ERRORS,
    "UUID": _UUIDS,
    "UUIDS": _Cache(_uuids),
    "STRING": _Cache(lambda data: quote(data.decode())),
    "TEXT": _Cache(lambda data: data.decode()),
    "base64": lambda data: f'"{binascii.b2a_base64(data, newline=False).decode()}"',
    "double": java_double,
    **{f"ARRAY_{fmt}": _Cache(_numbers(fmt)) for fmt in "bhHiIqd"},
    "COUNTED_UUIDS": _Cache(_counted(16, _uuids)),
    **{f"COUNTED_ARRAY_{fmt}": _Cache(_counted(FIXED_SIZES[fmt], _numbers(fmt))) for fmt in "bhHiIqd"},
}


class Compiler:
    """Compiles one (message, version); `keys` are expressions of its fields, as `TEXT[name]` for a text."""

    def __init__(
        self, cls: type[Message], version: int, keys: Sequence[str], hide: Hide, scope: dict[str, Any]
    ) -> None:
        self.schema: MessageSchema = cls.schema()
        self.schema.check_version(version)
        self.version = version
        self.flexible = version in self.schema.flexible
        self.keys = keys
        self.hide = hide
        self.lines: list[str] = []
        self.depth = 3
        self.names = 0
        self.constants = {**_CONSTANTS, **scope}
        self.run: list[tuple[str, str]] = []

    def compile(self) -> Run:
        arguments = "".join(f", k{at}" for at in range(len(self.keys)))
        text = self.struct(self.schema.root, is_root=True)
        self.flush()
        self.line("if pos != end: raise Malformed('it does not end where it should')")
        self.line(f"{'; '.join(f'v{at} = {key}' for at, key in enumerate(self.keys)) or 'pass'}")
        self.line(f"texts({text})")
        added = "; ".join(f"k{at}(v{at})" for at in range(len(self.keys))) or "pass"
        nothing = "; ".join(f"k{at}(None)" for at in range(len(self.keys))) or "pass"
        source = "\n".join(
            [
                f"def run(buf, rows, starts, ends, texts, hide{arguments}):",
                "    for row, pos, end in zip(rows, starts, ends):",
                "        try:",
                *self.lines,
                "        except ERRORS:",
                f"            texts(None); {nothing}",
                f"        else: {added}",
            ]
        )
        run: Run = self.execute(source, "run")
        return run

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def flush(self) -> None:
        """Read adjacent numbers with one call."""
        if not self.run:
            return
        fmt = "".join(each for _, each in self.run)
        size = sum(FIXED_SIZES[each] for _, each in self.run)
        names = ", ".join(name for name, _ in self.run)
        if fmt == "B":
            self.line(f"{names} = buf[pos]; pos += 1")
        else:
            unpack = "U_" + fmt.replace("?", "o")
            self.constants[unpack] = struct.Struct(">" + fmt).unpack_from
            self.line(f"{names}{',' if len(self.run) == 1 else ''} = {unpack}(buf, pos); pos += {size}")
        self.run = []

    def struct(self, schema: StructSchema, is_root: bool = False) -> str:
        """Read a struct, and return the expression of its text."""
        runs = self.runs(schema)
        if not is_root:
            self.empty(runs)
        plain = {
            field.name: self.field(field, field.name if is_root else self.name("f"), in_tag=False)
            for field in schema.fields_in(self.version)
        }
        if self.flexible and is_root and any(isinstance(run, list) for run in runs):
            self.cached_tags(schema, runs)
        elif self.flexible:
            self.tags(schema)
        inside = ""
        for run in runs:
            if isinstance(run, FieldSchema):
                inside += f',"{run.json_name}":{plain[run.name]}'
            else:
                inside += f"{{x_{run[0].name}}}" if is_root else "".join(f"{{x_{field.name}}}" for field in run)
        if not runs:
            return "'{}'"
        if isinstance(runs[0], FieldSchema):
            return f"f'{{{{{inside[1:]}}}}}'"
        self.flush()
        joined = self.name("j")
        self.line(f"{joined} = f'{inside}'")
        return f"f'{{{{{{{joined}[1:]}}}}}}'"

    def runs(self, schema: StructSchema) -> list[FieldSchema | list[FieldSchema]]:
        """Return the fields in the order of the JSON, with adjacent tagged fields together."""
        found: list[FieldSchema | list[FieldSchema]] = []
        for field in schema.fields:
            if self.version not in field.versions:
                continue
            if not is_tagged(field, self.version):
                found.append(field)
            elif found and isinstance(found[-1], list):
                found[-1].append(field)
            else:
                found.append([field])
        return found

    def empty(self, runs: list[FieldSchema | list[FieldSchema]]) -> None:
        """Give absent tagged fields an empty text."""
        for run in runs:
            for field in run if isinstance(run, list) else ():
                self.line(f"x_{field.name} = ''")

    def cached_tags(self, schema: StructSchema, runs: list[FieldSchema | list[FieldSchema]]) -> None:
        """Cache the texts of tagged fields by their bytes: they end a record, and are often repeated."""
        self.flush()
        outer, self.lines, depth, self.depth = self.lines, [], self.depth, 1
        self.empty(runs)
        self.tags(schema)
        tagged = [run for run in runs if isinstance(run, list)]
        texts = ["f'" + "".join(f"{{x_{field.name}}}" for field in run) + "'" for run in tagged]
        source = "\n".join(
            [
                "def tags(buf):",
                "    pos = 0; end = len(buf)",
                *self.lines,
                "    if pos != end: raise Malformed('it does not end where it should')",
                f"    return {', '.join(texts)}{',' if len(texts) == 1 else ''}",
            ]
        )
        self.lines, self.depth = outer, depth
        self.constants["TAGS"] = _Cache(self.execute(source, "tags"))
        self.line(f"{', '.join(f'x_{run[0].name}' for run in tagged)}, = TAGS[buf[pos:end]]; pos = end")

    def execute(self, source: str, name: str) -> Any:
        code = compile(source, f"<{self.schema.name} v{self.version} to JSON>", "exec")
        exec(code, self.constants)  # the source is generated only from this project's schema
        return self.constants[name]

    def tags(self, schema: StructSchema) -> None:
        count, tag, size, stop = self.name("t"), self.name("g"), self.name("z"), self.name("e")
        self.run.append((count, "B"))
        self.flush()
        self.line(f"if {count}:")
        self.depth += 1
        self.line(f"if {count} > 127: {count}, pos = uv(buf, pos - 1)")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag} = buf[pos]; {size} = buf[pos + 1]; pos += 2")
        self.line(f"if {tag} > 127 or {size} > 127:")
        self.line(f"    {tag}, pos = uv(buf, pos - 2); {size}, pos = uv(buf, pos)")
        self.line(f"{stop} = pos + {size}")
        self.line(f"if {size} < 0 or {stop} > end: raise Malformed('a tagged field is cut off')")
        for index, field in enumerate(schema.tagged_in(self.version)):
            self.line(f"{'el' if index else ''}if {tag} == {field.tag}:")
            self.depth += 1
            target = f"x_{field.name}"
            text = self.field(field, self.name("f"), in_tag=True)
            self.flush()
            value = self.name("y")
            self.line(f"{value} = f'{text}'")
            default = "null" if field.default is None else "[]" if field.is_array else _default_text(field)
            self.line(f"if {value} != {default!r}: {target} = f',\"{field.json_name}\":{{{value}}}'")
            self.depth -= 1
        self.line(f"pos = {stop}")
        self.depth -= 2

    def field(self, field: FieldSchema, name: str, in_tag: bool) -> str:
        """Read a field, and return the expression of its text in an f-string."""
        if field.is_array:
            return self.array(field, name)
        if field.is_struct:
            return self.struct_field(field, in_tag)
        if field.type in ("string", "bytes", "records"):
            return self.sized(field, name)
        fmt = FIXED_FORMATS[field.type]
        if fmt == "16s":
            self.run.append((name, fmt))
            return f"{{UUID[{name}]}}"
        self.run.append((name, fmt))
        if fmt == "?":
            return f'{{"true" if {name} else "false"}}'
        return f"{{double({name})}}" if fmt == "d" else f"{{{name}}}"

    def struct_field(self, field: FieldSchema, in_tag: bool) -> str:
        if self.version not in field.nullable:
            self.flush()
            text, made = self.name("j"), self.struct(self.schema.structs[field.type])
            self.flush()
            self.line(f"{text} = {made}")
            return f"{{{text}}}"
        mark, text = self.name("n"), self.name("j")
        self.run.append((mark, "B" if in_tag else "b"))
        self.flush()
        self.line(f"if {mark} {'<= 0' if in_tag else '< 0'}: {text} = 'null'")
        self.line("else:")
        self.depth += 1
        made = self.struct(self.schema.structs[field.type])
        self.flush()
        self.line(f"{text} = {made}")
        self.depth -= 1
        return f"{{{text}}}"

    def length(self, field: FieldSchema, is_string: bool) -> tuple[str, str]:
        """Read a length at the end of the run; return expressions for whether it is null, and for the length."""
        count = self.name("n")
        compact = self.flexible if field.flexible is None else self.version in field.flexible
        if compact:
            self.run.append((count, "B"))
            self.flush()
            self.line(f"if {count} > 127: {count}, pos = uv(buf, pos - 1)")
            null, length = f"{count} < 1", f"{count} - 1"
        else:
            self.run.append((count, "h" if is_string else "i"))
            self.flush()
            null, length = f"{count} < 0", count
        if self.version not in field.nullable:
            self.line(f"if {null}: raise Malformed('a null')")
        return null, length

    def sized(self, field: FieldSchema, name: str) -> str:
        is_string = field.type == "string"
        null, length = self.length(field, is_string)
        text, stop = self.name("s"), self.name("e")
        nullable = self.version in field.nullable
        if nullable:
            self.line(f"if {null}: {name} = None; {text} = 'null'")
            self.line("else:")
            self.depth += 1
        self.line(f"{stop} = pos + {length}")
        self.line(f"if {stop} > end: raise Malformed('it is cut off')")
        self.line(f"{name} = buf[pos:{stop}]; pos = {stop}")
        hidden = self.hide.get(field.name)
        self.line(f"{text} = {'STRING[' + name + ']' if is_string else 'base64(' + name + ')'}")
        if hidden is not None:
            condition, _, shown = hidden.partition(" => ")
            self.line(f"if hide is not None and ({condition}): {text} = {shown!r}; hide(row)")
        if nullable:
            self.depth -= 1
        return f"{{{text}}}"

    def array(self, field: FieldSchema, name: str) -> str:
        fmt = FIXED_FORMATS.get(field.type)
        nullable = self.version in field.nullable
        text, stop = self.name("a"), self.name("e")
        if fmt is not None and fmt != "?" and not nullable and self.flexible and field.flexible is None:
            return self.compact_array(fmt, text, stop)
        null, length = self.length(field, is_string=False)
        if nullable:
            self.line(f"if {null}: {text} = 'null'")
            self.line("else:")
            self.depth += 1
        if fmt is not None and fmt != "?":
            self.line(f"{stop} = pos + ({length}) * {FIXED_SIZES[fmt]}")
            self.line(f"if {stop} > end: raise Malformed('it is cut off')")
            cache = "UUIDS" if fmt == "16s" else f"ARRAY_{fmt}"
            self.line(f"{text} = {cache}[buf[pos:{stop}]]; pos = {stop}")
        else:
            self.elements(field, text, length)
        if nullable:
            self.depth -= 1
        return f"{{{text}}}"

    def compact_array(self, fmt: str, text: str, stop: str) -> str:
        """Cache a compact array with a length of one byte by its bytes, including that one."""
        self.flush()
        size = FIXED_SIZES[fmt]
        cache = "UUIDS" if fmt == "16s" else f"ARRAY_{fmt}"
        self.line("if buf[pos] < 128:")
        self.line(f"    {stop} = pos + buf[pos] * {size} - {size - 1}; {text} = COUNTED_{cache}[buf[pos:{stop}]]")
        self.line("else:")
        self.line(f"    {stop}, pos = uv(buf, pos); {stop} = pos + ({stop} - 1) * {size}")
        self.line(f"    if {stop} > end: raise Malformed('it is cut off')")
        self.line(f"    {text} = {cache}[buf[pos:{stop}]]")
        self.line(f"pos = {stop}")
        return f"{{{text}}}"

    def elements(self, field: FieldSchema, text: str, length: str) -> None:
        out = self.name("l")
        self.line(f"if {length} > end - pos: raise Malformed('it has more elements than bytes')")
        self.line(f"{out} = []")
        self.line(f"for _ in range({length}):")
        self.depth += 1
        if field.is_struct:
            made = self.struct(self.schema.structs[field.type])
        else:
            made = f"f'{self.field(field._replace(is_array=False), self.name('f'), in_tag=False)}'"
        self.flush()
        self.line(f"{out}.append({made})")
        self.depth -= 1
        self.line(f"{text} = f'[{{\",\".join({out})}}]'")


def _default_text(field: FieldSchema) -> str:
    """Return the text of a tagged field's default, which converters leave out."""
    if field.type == "string":
        return quote(field.default)
    if field.type == "bool":
        return "true" if field.default else "false"
    if field.type == "uuid":
        return f'"{field.default}"'
    return java_double(field.default) if field.type == "float64" else str(field.default)
