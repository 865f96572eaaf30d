"""Compiles a reader and a writer per (message, version) on first use: generates Python source from the schema.

One technique makes both fast: adjacent fields become one `struct` call. A reader unpacks a run of fixed-width fields
together with the length of the next field, and an array of integers together with the run after it. A writer packs a
run with its integer arrays, and at most one string, with one format that is cached by their lengths.

Readers check lengths against the available bytes and never trust them: an array's count is limited by the size of its
smallest elements, and a read beyond the end either raises in `struct` or is detected at the end of the message. The
caller decides whether bytes may follow the message.
"""

from __future__ import annotations

import codecs
import struct
from collections.abc import Callable, Generator
from typing import Any

from barnabas.wire.errors import EncodeError, MalformedError, TooLongError
from barnabas.wire.message import LAZY_DEFAULTS, Message, Struct
from barnabas.wire.primitives import ZERO_UUID, Uuid, decode_unsigned_varint, encode_unsigned_varint
from barnabas.wire.schema import FIXED_FORMATS, FIXED_SIZES, FieldSchema, MessageSchema, StructSchema

Reader = Callable[[bytes | memoryview, int], tuple[Any, int]]
SlicedReader = Callable[[bytes | memoryview, int], Generator[None, None, tuple[Any, int]]]
Writer = Callable[[Any, Callable[[bytes], None]], None]
SlicedWriter = Callable[[Any, Callable[[bytes], None]], Generator[None, None, None]]

# A bool is written as an integer, because the format of a bool accepts any object, including None.
PACK_FORMATS = {**FIXED_FORMATS, "bool": "B"}
MAX_STRING_LENGTH = 32767
MAX_TAG = 2**31 - 1
CACHED_FORMATS = 4096
CACHED_LENGTH = 1024
SLICE_ELEMENTS = 64  # array elements between two pauses of a sliced reader or writer
SLICE_NUMBERS = 4096  # the same for arrays of numbers, which are read by one call

_READERS: dict[tuple[type[Message], int], Reader] = {}
_WRITERS: dict[tuple[type[Message], int], Writer] = {}
_SLICED_READERS: dict[tuple[type[Message], int], SlicedReader] = {}
_SLICED_WRITERS: dict[tuple[type[Message], int], SlicedWriter] = {}


def reader(cls: type[Message], version: int) -> Reader:
    """Return `read(data, position) -> (message, end)`.

    The reader raises MalformedError, struct.error, IndexError or UnicodeDecodeError.
    """
    found = _READERS.get((cls, version))
    if found is None:
        found = _READERS[cls, version] = _ReaderCompiler(cls, version).compile()
    return found


def sliced_reader(cls: type[Message], version: int) -> SlicedReader:
    """Return a reader that is a generator: it pauses every few elements, for messages of any size."""
    found = _SLICED_READERS.get((cls, version))
    if found is None:
        found = _SLICED_READERS[cls, version] = _ReaderCompiler(cls, version, is_sliced=True).compile()
    return found


def takes_views(cls: type[Message]) -> bool:
    """Return True if the readers of a message accept a memoryview as well as bytes.

    They do for messages that carry records, which become views of the input and are not copied, and for headers, which
    precede such messages in a frame. Every other value is copied out of the view.
    """
    schema = cls.schema()
    structs = (schema.root, *schema.structs.values())
    return schema.kind == "header" or any(field.type == "records" for struct in structs for field in struct.fields)


def writer(cls: type[Message], version: int) -> Writer:
    """Return `write(message, append)`, which passes the pieces of the encoded message to `append`."""
    found = _WRITERS.get((cls, version))
    if found is None:
        found = _WRITERS[cls, version] = _WriterCompiler(cls, version).compile()
    return found


def sliced_writer(cls: type[Message], version: int) -> SlicedWriter:
    """Return a writer that is a generator: it pauses every few elements, for messages of any size."""
    found = _SLICED_WRITERS.get((cls, version))
    if found is None:
        found = _SLICED_WRITERS[cls, version] = _WriterCompiler(cls, version, is_sliced=True).compile()
    return found


class _Compiler:
    """The source lines of a function, and the constants they use. A sliced function is a generator that pauses."""

    def __init__(self, cls: type[Message], version: int, *, is_sliced: bool = False) -> None:
        self.cls = cls
        self.version = version
        self.is_sliced = is_sliced
        self.schema: MessageSchema = cls.schema()
        self.schema.check_version(version)
        self.flexible = version in self.schema.flexible
        self.lines: list[str] = []
        self.depth = 1
        self.names = 0
        self.constants: dict[str, Any] = {}

    def line(self, text: str) -> None:
        self.lines.append("    " * self.depth + text)

    def name(self, prefix: str) -> str:
        self.names += 1
        return f"{prefix}{self.names}"

    def constant(self, prefix: str, value: Any) -> str:
        for name, known in self.constants.items():
            if known is value:
                return name
        name = self.name(prefix)
        self.constants[name] = value
        return name

    def pause(self) -> None:
        """Count an element, and pause after every few of them."""
        if self.is_sliced:
            self.line("left -= 1")
            self.line(f"if left <= 0: left = {SLICE_ELEMENTS}; yield")

    def finish(self, head: str) -> Any:
        if self.is_sliced:
            self.lines[:0] = [f"    left = {SLICE_ELEMENTS}", "    if left < 0: yield"]  # a generator in any case
        source = head + "\n" + "\n".join(self.lines) + "\n"
        code = compile(source, f"<{self.cls.__name__} v{self.version}>", "exec")
        scope = dict(self.constants)
        exec(code, scope)  # the source is generated from this project's own schema
        return scope["run"]

    def is_compact(self, field: FieldSchema) -> bool:
        return self.flexible if field.flexible is None else self.version in field.flexible

    def is_nullable(self, field: FieldSchema) -> bool:
        return self.version in field.nullable

    def struct_of(self, field: FieldSchema) -> StructSchema:
        return self.schema.structs[field.type]

    def class_of(self, field: FieldSchema) -> str:
        return self.constant("C", getattr(self.cls, field.type))


def _fault(cls: type[Message], version: int, field: str, what: str) -> Callable[[], MalformedError]:
    return lambda: MalformedError(f"{cls.__name__} v{version}: {field} {what}")


# --- reading ---------------------------------------------------------------------------------------------------------


class _UnpackFormats(dict[int, Callable[[bytes, int], tuple[Any, ...]]]):
    """Unpackers of `count` fixed-width values and the run after them, by count."""

    def __init__(self, element: str, rest: str) -> None:
        super().__init__()
        self.element = element
        self.rest = rest

    def __missing__(self, count: int) -> Callable[[bytes, int], tuple[Any, ...]]:
        unpack = struct.Struct(f">{count}{self.element}{self.rest}").unpack_from
        if count <= CACHED_LENGTH:
            self[count] = unpack
        return unpack


def _read_tags(data: bytes | memoryview, position: int, count: int) -> tuple[dict[int, bytes], int]:
    if count > 127:
        count, position = decode_unsigned_varint(data, position - 1)
    tags: dict[int, bytes] = {}
    return tags, _read_some_tags(data, position, count, tags)


def _read_tags_in_slices(
    data: bytes | memoryview, position: int, count: int
) -> Generator[None, None, tuple[dict[int, bytes], int]]:
    if count > 127:
        count, position = decode_unsigned_varint(data, position - 1)
    tags: dict[int, bytes] = {}
    while count > SLICE_ELEMENTS:
        position = _read_some_tags(data, position, SLICE_ELEMENTS, tags)
        count -= SLICE_ELEMENTS
        yield
    return tags, _read_some_tags(data, position, count, tags)


def _read_some_tags(data: bytes | memoryview, position: int, count: int, tags: dict[int, bytes]) -> int:
    """Add the next tagged fields to `tags`, and return the position after them."""
    for _ in range(count):
        tag, position = decode_unsigned_varint(data, position)
        size, position = decode_unsigned_varint(data, position)
        tags[tag], position = _read_tag(data, position, tag, size)
    return position


def _read_tag(data: bytes | memoryview, position: int, tag: int, size: int) -> tuple[bytes, int]:
    end = position + size
    if tag < 0 or size < 0 or end > len(data):
        raise MalformedError("a tagged field has a negative tag or size, or is longer than the remaining bytes")
    return bytes(data[position:end]), end  # not a view, which would keep the whole frame in memory


def _read_string_length(data: bytes | memoryview, position: int) -> tuple[int, int]:
    length, position = decode_unsigned_varint(data, position)
    if length > MAX_STRING_LENGTH + 1:
        raise MalformedError(f"a string has an invalid length of {length - 1}")
    return length, position


class _ReaderCompiler(_Compiler):
    def __init__(self, cls: type[Message], version: int, *, is_sliced: bool = False) -> None:
        super().__init__(cls, version, is_sliced=is_sliced)
        self.constants.update(
            new=object.__new__,
            Uuid=Uuid,
            ZERO_UUID=ZERO_UUID,
            uv=decode_unsigned_varint,
            uvs=_read_string_length,
            read_tags=_read_tags_in_slices if is_sliced else _read_tags,
            read_tag=_read_tag,
            Malformed=MalformedError,
            utf8=codecs.utf_8_decode,
        )
        self.takes_views = takes_views(cls)
        self.targets: list[tuple[str, str]] = []  # the current run: the target of each value, and its format
        self.after: list[str] = []  # statements that need the run's values
        self.lead: tuple[str, str, str] | None = None  # an array before the run: target, count, format

    def compile(self) -> Any:
        self.constants["ROOT"] = self.cls
        self.line("end = len(buf)")
        self.line("o = new(ROOT)")
        self.read_struct(self.schema.root, "o")
        self.flush()
        self.line("if pos > end: raise Malformed('truncated')")
        self.line("return o, pos")
        return self.finish("def run(buf, pos):")

    def fault(self, field: FieldSchema, what: str) -> str:
        return f"raise {self.constant('E', _fault(self.cls, self.version, field.name, what))}()"

    def take(self, target: str, fmt: str) -> None:
        self.targets.append((target, fmt))

    def flush(self) -> None:
        fmt = "".join(f for _, f in self.targets)
        size = sum(FIXED_SIZES[f] for _, f in self.targets)
        names = ", ".join(t for t, _ in self.targets)
        if self.lead is not None:
            target, count, element = self.lead
            formats = self.constant("F", _UnpackFormats(element, fmt))
            self.line(
                f"*{target}, {names} = {formats}[{count}](buf, pos)"
                if names
                else f"{target} = list({formats}[{count}](buf, pos))"
            )
            width = FIXED_SIZES[element]
            self.line(f"pos += {count} * {width} + {size}" if width > 1 else f"pos += {count} + {size}")
        elif fmt == "B":
            self.line(f"{names} = buf[pos]; pos += 1")
        elif fmt == "?":
            self.line(f"{names} = buf[pos] != 0; pos += 1")
        elif fmt:
            unpack = self.unpacker(fmt)
            self.line(f"{names}{',' if len(self.targets) == 1 else ''} = {unpack}(buf, pos); pos += {size}")
        for statement in self.after:
            self.line(statement)
        self.targets, self.after, self.lead = [], [], None

    def unpacker(self, fmt: str) -> str:
        name = "U_" + fmt.replace("?", "o")
        self.constants[name] = struct.Struct(">" + fmt).unpack_from
        return name

    def read_struct(self, schema: StructSchema, var: str) -> None:
        owner = self.cls if schema is self.schema.root else getattr(self.cls, schema.name)
        for field in schema.absent_in(self.version):
            self.default(owner, field, f"{var}.{field.name}")
        for field in schema.fields_in(self.version):
            self.read_field(field, f"{var}.{field.name}", in_tag=False)
        if not self.flexible:
            self.line(f"{var}.unknown_tagged_fields = None")
            return
        count = self.name("t")
        self.take(count, "B")
        self.flush()
        tagged = schema.tagged_in(self.version)
        for field in tagged:
            self.default(owner, field, f"{var}.{field.name}")
        if not tagged:
            read = "yield from read_tags" if self.is_sliced else "read_tags"
            self.line(f"if {count}: {var}.unknown_tagged_fields, pos = {read}(buf, pos, {count})")
            self.line(f"else: {var}.unknown_tagged_fields = None")
            return
        self.line(f"{var}.unknown_tagged_fields = None")
        self.line(f"if {count}:")
        self.depth += 1
        self.read_known_tags(tagged, var, count)
        self.depth -= 1

    def read_known_tags(self, tagged: list[FieldSchema], var: str, count: str) -> None:
        tag, size, value = self.name("g"), self.name("z"), self.name("b")
        self.line(f"if {count} > 127: {count}, pos = uv(buf, pos - 1)")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        self.line(f"{tag}, pos = uv(buf, pos)")
        self.line(f"{size}, pos = uv(buf, pos)")
        for index, field in enumerate(tagged):
            self.line(f"{'el' if index else ''}if {tag} == {field.tag}:")
            self.depth += 1
            self.read_field(field, f"{var}.{field.name}", in_tag=True)
            self.flush()
            self.depth -= 1
        self.line("else:")
        self.line(f"    {value}, pos = read_tag(buf, pos, {tag}, {size})")
        self.line(f"    if {var}.unknown_tagged_fields is None: {var}.unknown_tagged_fields = {{}}")
        self.line(f"    {var}.unknown_tagged_fields[{tag}] = {value}")
        self.pause()
        self.depth -= 1

    def default(self, owner: type[Struct], field: FieldSchema, target: str) -> None:
        if field.default is None:
            self.line(f"{target} = None")
        elif field.is_array:
            self.line(f"{target} = []")
        elif field.default is ...:
            LAZY_DEFAULTS[owner, field.name] = getattr(self.cls, field.type)
        elif field.type == "uuid":
            self.line(f"{target} = ZERO_UUID")
        elif field.type in ("bytes", "records"):
            self.line(f"{target} = b''")
        else:
            self.line(f"{target} = {field.default!r}")

    def read_field(self, field: FieldSchema, target: str, in_tag: bool) -> None:
        if field.is_array:
            self.read_array(field, target)
        elif field.type in ("string", "bytes", "records"):
            self.read_sized(field, target, field.type, self.is_nullable(field))
        elif field.type == "uuid":
            self.read_uuid(target)
        elif field.is_struct:
            self.read_struct_field(field, target, in_tag)
        else:
            self.take(target, FIXED_FORMATS[field.type])

    def read_uuid(self, target: str) -> None:
        raw = self.name("u")
        self.take(raw, "16s")
        self.after.append(f"{target} = Uuid({raw})")

    def read_struct_field(self, field: FieldSchema, target: str, in_tag: bool) -> None:
        var = self.name("o")
        make = f"{var} = {target} = new({self.class_of(field)})"
        if not self.is_nullable(field):
            self.line(make)  # at once, because the current run will assign to its fields
            self.read_struct(self.struct_of(field), var)
            return
        mark = self.name("n")
        self.take(mark, "B" if in_tag else "b")
        self.flush()
        self.line(f"if {mark} <= 0: {target} = None" if in_tag else f"if {mark} < 0: {target} = None")
        self.line("else:")
        self.depth += 1
        self.line(make)
        self.read_struct(self.struct_of(field), var)
        self.flush()
        self.depth -= 1

    def read_length(self, field: FieldSchema, is_string: bool, nullable: bool) -> tuple[str, str]:
        """End the run with a length. Return expressions for whether it is null, and for its value."""
        count = self.name("n")
        if self.is_compact(field):
            self.take(count, "B")
            self.flush()
            self.line(f"if {count} > 127: {count}, pos = {'uvs' if is_string else 'uv'}(buf, pos - 1)")
            null, length = f"{count} < 1", f"{count} - 1"
        else:
            self.take(count, "h" if is_string else "i")
            self.flush()
            null, length = f"{count} < 0", count
        if not nullable:
            self.line(f"if {null}: {self.fault(field, 'must not be null')}")
        return null, length

    def read_sized(self, field: FieldSchema, target: str, kind: str, nullable: bool) -> None:
        null, length = self.read_length(field, kind == "string", nullable)
        stop = self.name("e")
        if nullable:
            self.line(f"if {null}: {target} = None")
            self.line("else:")
            self.depth += 1
        self.line(f"{stop} = pos + {length}")
        if kind == "bytes" and self.takes_views:
            self.line(f"{target} = bytes(buf[pos:{stop}])")
        elif kind != "string":
            self.line(f"{target} = buf[pos:{stop}]")
        elif self.takes_views:
            self.line(f"{target} = utf8(buf[pos:{stop}], None, True)[0]")
        else:
            self.line(f"{target} = buf[pos:{stop}].decode()")
        self.line(f"pos = {stop}")
        if nullable:
            self.depth -= 1

    def read_array(self, field: FieldSchema, target: str) -> None:
        nullable = self.is_nullable(field)
        null, length = self.read_length(field, is_string=False, nullable=nullable)
        if nullable:
            self.line(f"if {null}: {target} = None")
            self.line("else:")
            self.depth += 1
        fmt = FIXED_FORMATS.get(field.type)
        if fmt is not None and fmt != "16s" and not nullable and not self.is_sliced:
            count = self.name("n")
            self.line(f"{count} = {length}")
            self.lead = (target, count, fmt)
            return
        self.read_elements(field, target, length, fmt)
        if nullable:
            self.depth -= 1

    def read_elements(self, field: FieldSchema, target: str, length: str, fmt: str | None) -> None:
        smallest = self.smallest_element(field)
        count, out, append = self.name("n"), self.name("l"), self.name("a")
        self.line(f"{count} = {length}")
        self.line(f"if {count} * {smallest} > end - pos: {self.fault(field, 'has more elements than remaining bytes')}")
        if fmt is not None and self.is_sliced:
            self.read_numbers_in_slices(target, count, fmt)
            return
        if fmt == "16s":
            start = self.name("p")
            self.line(
                f"{target} = [Uuid(buf[{start}:{start} + 16]) "
                f"for {start} in range(pos, pos + {count} * 16, 16)]; pos += {count} * 16"
            )
            return
        if fmt is not None:
            formats = self.constant("F", _UnpackFormats(fmt, ""))
            self.line(f"{target} = list({formats}[{count}](buf, pos)); pos += {count} * {FIXED_SIZES[fmt]}")
            return
        self.line(f"{out} = []; {append} = {out}.append")
        self.line(f"for _ in range({count}):")
        self.depth += 1
        var = self.name("o")
        if field.is_struct:
            self.line(f"{var} = new({self.class_of(field)})")
            self.read_struct(self.struct_of(field), var)
        else:
            self.read_sized(field, var, field.type, nullable=False)
        self.flush()
        self.line(f"{append}({var})")
        self.pause()
        self.depth -= 1
        self.line(f"{target} = {out}")

    def read_numbers_in_slices(self, target: str, count: str, fmt: str) -> None:
        """Read an array of fixed-width values, a few thousand at a time."""
        out, taken, start = self.name("l"), self.name("k"), self.name("p")
        if fmt == "16s":
            values = f"[Uuid(buf[{start}:{start} + 16]) for {start} in range(pos, pos + {taken} * 16, 16)]"
        else:
            values = f"{self.constant('F', _UnpackFormats(fmt, ''))}[{taken}](buf, pos)"
        self.line(f"{out} = []")
        self.line(f"while {count} > 0:")
        self.depth += 1
        self.line(f"{taken} = min({count}, {SLICE_NUMBERS}); {count} -= {taken}")
        self.line(f"{out} += {values}; pos += {taken} * {FIXED_SIZES[fmt]}")
        self.line("left -= 1")
        self.line(f"if {taken} == {SLICE_NUMBERS} or left <= 0: left = {SLICE_ELEMENTS}; yield")
        self.depth -= 1
        self.line(f"{target} = {out}")

    def smallest_element(self, field: FieldSchema) -> int:
        if not field.is_struct:
            return self.smallest(field._replace(is_array=False))
        return max(1, self.smallest_struct(self.struct_of(field)))

    def smallest_struct(self, schema: StructSchema) -> int:
        return sum(self.smallest(f) for f in schema.fields_in(self.version)) + self.flexible

    def smallest(self, field: FieldSchema) -> int:
        if field.is_array or field.type in ("bytes", "records"):
            return 1 if self.is_compact(field) else 4
        if field.type == "string":
            return 1 if self.is_compact(field) else 2
        if field.is_struct:
            return 1 if self.is_nullable(field) else self.smallest_struct(self.struct_of(field))
        return FIXED_SIZES[FIXED_FORMATS[field.type]]


# --- writing ---------------------------------------------------------------------------------------------------------


class _PackFormats(dict[Any, Callable[..., bytes]]):
    """Packers of a run with arrays and strings in it, by their lengths.

    `parts` are plain formats, or pairs of element format and length format, which is None for a compact length.
    """

    def __init__(self, parts: list[str | tuple[str, str | None]]) -> None:
        super().__init__()
        self.parts = parts

    def __missing__(self, key: Any) -> Callable[..., bytes]:
        lengths = iter(key if isinstance(key, tuple) else (key,))
        fmt = [">"]
        for part in self.parts:
            if isinstance(part, str):
                fmt.append(part)
                continue
            element, prefix = part
            length = next(lengths)
            if element == "s" and length > MAX_STRING_LENGTH:
                raise TooLongError(f"a string of {length} bytes is too long")
            if prefix is None:
                prefix = "B" if length < 127 else f"{len(encode_unsigned_varint(length + 1))}s"
            fmt.append(f"{prefix}{16 * length}s" if element == "16s" else f"{prefix}{length}{element}")
        pack = struct.Struct("".join(fmt)).pack
        if len(self) < CACHED_FORMATS:
            self[key] = pack
        return pack


def _write_tags(append: Callable[[bytes], None], tags: dict[int, bytes]) -> None:
    append(encode_unsigned_varint(len(tags)))
    for tag in sorted(tags):
        if not 0 <= tag <= MAX_TAG:
            raise EncodeError(f"a tagged field cannot have the tag {tag}")
        append(encode_unsigned_varint(tag))
        append(encode_unsigned_varint(len(tags[tag])))
        append(tags[tag])


class _WriterCompiler(_Compiler):
    def __init__(self, cls: type[Message], version: int, *, is_sliced: bool = False) -> None:
        super().__init__(cls, version, is_sliced=is_sliced)
        self.constants.update(ZERO_UUID=ZERO_UUID, uv=encode_unsigned_varint, write_tags=_write_tags)
        self.parts: list[str | tuple[str, str | None]] = []
        self.values: list[str] = []
        self.keys: list[str] = []
        self.has_string = False
        self.append = "a"

    def compile(self) -> Any:
        self.write_struct(self.schema.root, "o")
        self.flush()
        if not self.lines:
            self.line("pass")
        return self.finish("def run(o, a):")

    def put(self, fmt: str, value: str) -> None:
        self.parts.append(fmt)
        self.values.append(value)

    def flush(self, last: str | None = None) -> None:
        """Pack the run.

        `last` is the variable with the tagged fields that end it; without any, a zero byte is packed too.
        """
        parts, values, keys = self.parts, self.values, self.keys
        self.parts, self.values, self.keys, self.has_string = [], [], [], False
        if last is not None:
            self.line(f"if {last} is None: {self.append}({self.packed([*parts, 'B'], [*values, '0'], keys)})")
            self.line("else:")
            self.depth += 1
        if parts:
            self.line(f"{self.append}({self.packed(parts, values, keys)})")
        if last is not None:
            self.line(f"write_tags({self.append}, {last})")
            self.depth -= 1

    def packed(self, parts: list[str | tuple[str, str | None]], values: list[str], keys: list[str]) -> str:
        arguments = ", ".join(values)
        if keys:
            key = keys[0] if len(keys) == 1 else f"({', '.join(keys)})"
            return f"{self.constant('F', _PackFormats(parts))}[{key}]({arguments})"
        fmt = "".join(str(part) for part in parts)
        if arguments == "0" and fmt == "B":
            return "b'\\0'"
        name = "P_" + fmt.replace("?", "o")
        self.constants[name] = struct.Struct(">" + fmt).pack
        return f"{name}({arguments})"

    def write_struct(self, schema: StructSchema, var: str) -> None:
        for field in schema.absent_in(self.version):
            if not field.ignorable:
                error = self.constant("E", self.unsupported(schema, field))
                self.line(f"if {self.differs(field, f'{var}.{field.name}')}: raise {error}()")
        for field in schema.fields_in(self.version):
            self.write_field(field, f"{var}.{field.name}", in_tag=False)
        if not self.flexible:
            error = self.constant("E", self.untagged(schema))
            self.line(f"if {var}.unknown_tagged_fields: raise {error}()")
            return
        tags = self.name("t")
        self.line(f"{tags} = {var}.unknown_tagged_fields or None")
        for field in schema.tagged_in(self.version):
            self.write_tagged(field, f"{var}.{field.name}", tags)
        self.flush(last=tags)

    def unsupported(self, schema: StructSchema, field: FieldSchema) -> Callable[[], EncodeError]:
        text = f"cannot carry {field.name} in version {self.version}: it has versions {field.versions}"
        return lambda: EncodeError(f"{self.owner(schema)} {text}")

    def untagged(self, schema: StructSchema) -> Callable[[], EncodeError]:
        return lambda: EncodeError(f"{self.owner(schema)} cannot carry tagged fields in version {self.version}")

    def owner(self, schema: StructSchema) -> str:
        return self.cls.__name__ if schema.name == self.cls.__name__ else f"{self.cls.__name__}.{schema.name}"

    def differs(self, field: FieldSchema, value: str) -> str:
        """Return an expression for whether the value differs from the field's default."""
        nullable = field.nullable.last >= field.nullable.first
        if field.default is None:
            return f"{value} is not None"
        if field.is_array or field.type in ("bytes", "records"):
            return f"({value} is None or {value})"  # null is not empty, and is rejected where it is not allowed
        if field.default is ...:
            inner = [self.differs(f, f"{value}.{f.name}") for f in self.struct_of(field).fields]
            text = " or ".join([*inner, f"{value}.unknown_tagged_fields"])
            return f"({value} is None or {text})" if nullable else f"({text})"
        return f"{value} != ZERO_UUID" if field.type == "uuid" else f"{value} != {field.default!r}"

    def write_tagged(self, field: FieldSchema, value: str, tags: str) -> None:
        outer = (self.append, self.parts, self.values, self.keys, self.has_string)
        pieces, append = self.name("w"), self.name("a")
        self.line(f"if {self.differs(field, value)}:")
        self.depth += 1
        self.line(f"{pieces} = []; {append} = {pieces}.append")
        self.append, self.parts, self.values, self.keys, self.has_string = append, [], [], [], False
        self.write_field(field, value, in_tag=True)
        self.flush()
        self.append, self.parts, self.values, self.keys, self.has_string = outer
        self.line(f"{tags} = {{**({tags} or {{}}), {field.tag}: b''.join({pieces})}}")
        self.depth -= 1

    def write_field(self, field: FieldSchema, value: str, in_tag: bool) -> None:
        if field.is_array:
            self.write_array(field, value)
        elif field.type == "string":
            self.write_string(field, value, self.is_nullable(field))
        elif field.type in ("bytes", "records"):
            self.write_bytes(field, value, self.is_nullable(field))
        elif field.is_struct:
            self.write_struct_field(field, value, in_tag)
        elif field.type == "uuid":
            var = self.name("u")
            self.line(f"{var} = {value}")
            self.line(f"if len({var}) != 16: raise TypeError")  # the pack would truncate or pad it
            self.put("16s", var)
        else:
            self.put(PACK_FORMATS[field.type], value)

    def write_struct_field(self, field: FieldSchema, value: str, in_tag: bool) -> None:
        var = self.name("o")
        self.line(f"{var} = {value}")
        if not self.is_nullable(field):
            self.write_struct(self.struct_of(field), var)
            return
        if in_tag:
            self.put("B", f"0 if {var} is None else 1")
        else:
            self.put("b", f"-1 if {var} is None else 1")
        self.flush()
        self.line(f"if {var} is not None:")
        self.depth += 1
        before = len(self.lines)
        self.write_struct(self.struct_of(field), var)
        self.flush()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def length(self, field: FieldSchema, count: str) -> str:
        return f"{count} + 1 if {count} < 127 else uv({count} + 1)" if self.is_compact(field) else count

    def write_string(self, field: FieldSchema, value: str, nullable: bool) -> None:
        if self.has_string:  # a second string would need too many formats
            self.flush()
        text, count = self.name("s"), self.name("n")
        length = self.length(field, count)
        if nullable:
            length = f"{0 if self.is_compact(field) else -1} if {text} is None else {length}"
            self.line(f"{text} = {value}")
            self.line(f"{text}b = b'' if {text} is None else {text}.encode()")
            self.line(f"{count} = len({text}b)")
            self.values += [length, f"{text}b"]
        else:
            self.line(f"{text} = {value}.encode(); {count} = len({text})")
            self.values += [length, text]
        self.parts.append(("s", None if self.is_compact(field) else "h"))
        self.keys.append(count)
        self.has_string = True

    def write_count(self, field: FieldSchema, count: str, null: str | None) -> None:
        """Write the length of pieces that are appended separately, and end the run."""
        if self.is_compact(field):
            self.flush()
            length = f"uv({count} + 1)" if null is None else f"uv(0 if {null} else {count} + 1)"
            self.line(f"{self.append}({length})")
        else:
            self.put("i", count if null is None else f"-1 if {null} else {count}")
            self.flush()

    def write_bytes(self, field: FieldSchema, value: str, nullable: bool) -> None:
        data = self.name("b")
        self.line(f"{data} = {value}")
        if nullable:
            self.write_count(field, f"len({data})", f"{data} is None")
            self.line(f"if {data} is not None: {self.append}({data})")
        else:
            self.write_count(field, f"len({data})", None)
            self.line(f"{self.append}({data})")

    def write_array(self, field: FieldSchema, value: str) -> None:
        array, count = self.name("l"), self.name("n")
        nullable = self.is_nullable(field)
        fmt = PACK_FORMATS.get(field.type)
        self.line(f"{array} = {value}")
        if fmt is not None:
            self.write_fixed_array(field, array, count, fmt, nullable)
            return
        self.write_count(field, f"len({array})", f"{array} is None" if nullable else None)
        if field.type == "string":
            self.line(f"if {array}.__class__ is str: raise TypeError")  # a string is a sequence of strings
        if field.is_struct and self.depth > 1 and not self.has_bytes(self.struct_of(field)):
            self.write_shared_elements(field, array)
        else:
            self.write_elements(field, f"{array} or ()" if nullable else array)

    def write_elements(self, field: FieldSchema, elements: str) -> None:
        var = self.name("o")
        self.line(f"for {var} in {elements}:")
        self.depth += 1
        before = len(self.lines)
        if field.is_struct:
            self.write_struct(self.struct_of(field), var)
        elif field.type == "string":
            self.write_string(field, var, nullable=False)
        else:
            self.write_bytes(field, var, nullable=False)
        self.flush()
        self.pause()
        if len(self.lines) == before:
            self.line("pass")
        self.depth -= 1

    def write_shared_elements(self, field: FieldSchema, array: str) -> None:
        """Write an array of structs.

        If it is the same list object as in the previous row, its encoded bytes are reused.
        """
        last, written, pieces, append = (self.name(prefix) for prefix in "mbwa")
        self.lines.insert(0, f"    {last} = None")
        self.line(f"if {array}:")
        self.line(f"    if {array} is not {last}:")
        self.depth += 2
        self.line(f"{pieces} = []; {append} = {pieces}.append")
        outer, self.append = self.append, append
        self.write_elements(field, array)
        self.append = outer
        self.line(f"{last} = {array}; {written} = b''.join({pieces})")
        self.depth -= 2
        self.line(f"    {self.append}({written})")

    def has_bytes(self, schema: StructSchema) -> bool:
        """Whether it may contain fields that are too large to be copied again."""
        return any(
            self.has_bytes(self.struct_of(field)) if field.is_struct else field.type in ("bytes", "records")
            for field in schema.fields
        )

    def write_fixed_array(self, field: FieldSchema, array: str, count: str, fmt: str, nullable: bool) -> None:
        length, elements = self.length(field, count), array
        if nullable:
            self.line(f"{count} = 0 if {array} is None else len({array})")
            length = f"{0 if self.is_compact(field) else -1} if {array} is None else {length}"
            elements = f"({array} or ())"
        else:
            self.line(f"{count} = len({array})")
        if fmt == "16s":
            joined = self.name("b")
            self.line(f"{joined} = b''.join({elements})")
            self.line(f"if len({joined}) != 16 * {count}: raise TypeError")
            self.values += [length, joined]
        else:
            self.values += [length, f"*{elements}"]
        self.parts.append((fmt, None if self.is_compact(field) else "i"))
        self.keys.append(count)
