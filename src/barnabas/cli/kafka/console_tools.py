"""The input lines of Kafka's console producer and the output lines of its console consumer. Pure: text and bytes in and out.

Its one rule: the bytes are Kafka's. Properties have the names and the defaults of `LineMessageReader` and
`DefaultMessageFormatter`. Java classes of users cannot be run here: they are rejected by name.
"""

from __future__ import annotations

import re
import struct
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from barnabas import wire
from barnabas.cli.records.input import NewRecord
from barnabas.operations.records.filters import Shown
from barnabas.wire.apis import RECORD_NAMES
from barnabas.wire.errors import MalformedError
from barnabas.wire.json_text import json_text

Properties = Mapping[str, str]


class ToolError(ValueError):
    """An error of Kafka's tool, with its message."""


def parse_properties(pairs: Iterable[str]) -> dict[str, str]:
    """Parse KEY=VALUE. A key alone has an empty value."""
    return {name: value for name, _, value in (pair.partition("=") for pair in pairs) if name}


def is_true(properties: Properties, name: str, default: bool = False) -> bool:
    return properties[name].strip().lower() == "true" if name in properties else default


# --- the producer's side


class LineReader:
    """Parser of lines to records, with the properties of `LineMessageReader`. Raises `ToolError` if properties conflict."""

    def __init__(self, properties: Properties) -> None:
        self._parse_key = is_true(properties, "parse.key")
        self._parse_headers = is_true(properties, "parse.headers")
        self._ignore_error = is_true(properties, "ignore.error")
        self._key_separator = properties.get("key.separator", "\t")
        self._delimiter = properties.get("headers.delimiter", "\t")
        self._separator = properties.get("headers.separator", ",")
        self._header_key_separator = properties.get("headers.key.separator", ":")
        self._null = properties.get("null.marker")
        self._check()

    def _check(self) -> None:
        named = {
            "headers.delimiter": self._delimiter,
            "headers.separator": self._separator,
            "headers.key.separator": self._header_key_separator,
        }
        pairs = [
            ("headers.delimiter", "headers.separator"),
            ("headers.delimiter", "headers.key.separator"),
            ("headers.separator", "headers.key.separator"),
        ]
        for one, other in pairs:
            if named[one] == named[other]:
                raise ToolError(f"{one} and {other} may not be equal")
        order = ("key.separator", "headers.separator", "headers.delimiter", "headers.key.separator")
        for name in order:
            if {**named, "key.separator": self._key_separator}[name] == self._null:
                raise ToolError(f"null.marker and {name} may not be equal")

    def records(self, lines: Iterable[str]) -> Iterator[NewRecord]:
        for number, line in enumerate(lines, 1):
            yield self._parse(line, number)

    def _parse(self, line: str, number: int) -> NewRecord:
        start = 0
        headers: str | None = None
        if self._parse_headers and (end := self._find(line, 0, self._delimiter, "headers delimiter", number)) >= 0:
            headers, start = line[:end], end + len(self._delimiter)
        key: str | None = None
        if self._parse_key and (end := self._find(line, start, self._key_separator, "key separator", number)) >= 0:
            key, start = line[start:end], end + len(self._key_separator)
        rows: list[tuple[str, bytes | None]] = []
        if headers is not None and headers != self._null:
            rows = [self._header(pair, number) for pair in _java_split(self._separator, headers)]
        return NewRecord(self._bytes(key), self._bytes(line[start:]), tuple(rows))

    def _find(self, line: str, start: int, text: str, name: str, number: int) -> int:
        found = line.find(text, start)
        if found < 0 and not self._ignore_error:
            raise ToolError(f"No {name} found on line number {number}: '{line}'")
        return found

    def _header(self, pair: str, number: int) -> tuple[str, bytes | None]:
        name, found, value = pair.partition(self._header_key_separator)
        if not found:
            if self._ignore_error:
                return pair, None
            raise ToolError(f"No header key separator found in pair '{pair}' on line number {number}")
        if name == self._null:
            text = f"Header keys should not be equal to the null marker '{self._null}' as they can't be null"
            raise ToolError(text)
        return name, self._bytes(value)

    def _bytes(self, text: str | None) -> bytes | None:
        return None if text is None or text == self._null else text.encode("utf-8", "surrogatepass")


def _java_split(pattern: str, text: str) -> list[str]:
    """Split as Java's `Pattern.split` does, which drops empty pieces at the end."""
    pieces = re.split(pattern, text)
    while len(pieces) > 1 and not pieces[-1]:
        pieces.pop()
    return pieces


# --- the consumer's side


Formatter = Callable[[Shown, str], bytes]
"""Formats a record and its timestamp type as bytes for the standard output."""


def _fixed(form: str, name: str) -> Callable[[bytes], str]:
    layout = struct.Struct(form)

    def decode(data: bytes) -> str:
        if len(data) != layout.size:
            raise ToolError(f"Size of data received by {name} is not {layout.size}")
        return str(layout.unpack(data)[0])

    return decode


def _uuid(data: bytes) -> str:
    try:
        return str(uuid.UUID(data.decode()))
    except ValueError:
        raise ToolError("Error parsing data into UUID") from None


_DESERIALIZERS: dict[str, Callable[[bytes], str]] = {
    "StringDeserializer": lambda data: data.decode("utf-8", "replace"),
    "IntegerDeserializer": _fixed(">i", "IntegerDeserializer"),
    "LongDeserializer": _fixed(">q", "LongDeserializer"),
    "ShortDeserializer": _fixed(">h", "ShortDeserializer"),
    "DoubleDeserializer": _fixed(">d", "DoubleDeserializer"),
    "FloatDeserializer": _fixed(">f", "FloatDeserializer"),
    "UUIDDeserializer": _uuid,
}
_SERIALIZATION = "org.apache.kafka.common.serialization."


def deserializer(name: str | None) -> Callable[[bytes], bytes]:
    """Return the formatting of Kafka's deserializer class; without a class, bytes are written unchanged."""
    if name is None:
        return lambda data: data
    found = _DESERIALIZERS.get(name.removeprefix(_SERIALIZATION))
    if found is None or not name.startswith(_SERIALIZATION):
        return lambda data: data  # Kafka's tool logs that it cannot create one, and continues
    show = found
    return lambda data: show(data).encode()


class _Columns(NamedTuple):
    timestamp: bool
    partition: bool
    offset: bool
    delivery: bool
    epoch: bool
    headers: bool
    key: bool
    value: bool


def default_formatter(properties: Properties) -> Formatter:
    """`DefaultMessageFormatter`."""
    wanted = _Columns(*(is_true(properties, f"print.{name}", name == "value") for name in _Columns._fields))
    between = properties.get("key.separator", "\t").encode()
    end = properties.get("line.separator", "\n").encode()
    between_headers = properties.get("headers.separator", ",").encode()
    null = properties.get("null.literal", "null").encode()
    show_key, show_value, show_header = (
        deserializer(properties.get(f"{each}.deserializer")) for each in ("key", "value", "headers")
    )

    def headers_of(record: Shown) -> bytes:
        if not record.headers:
            return b"NO_HEADERS"
        pairs = (
            name.encode("utf-8", "surrogateescape") + b":" + show_header(null if value is None else value)
            for name, value in record.headers
        )
        return between_headers.join(pairs)

    def write(record: Shown, timestamp_type: str) -> bytes:
        cells: list[bytes] = []
        if wanted.timestamp:
            cells.append(f"{timestamp_type}:{record.timestamp}".encode() if record.timestamp >= 0 else b"NO_TIMESTAMP")
        if wanted.partition:
            cells.append(b"Partition:%d" % record.partition)
        if wanted.offset:
            cells.append(b"Offset:%d" % record.offset)
        if wanted.delivery:
            count = getattr(record, "delivery_count", None)  # of share groups
            cells.append(b"Delivery:NOT_PRESENT" if count is None else b"Delivery:%d" % count)
        if wanted.epoch:
            cells.append(b"Epoch:NOT_PRESENT")
        if wanted.headers:
            cells.append(headers_of(record))
        if wanted.key:
            cells.append(show_key(null if record.key is None else record.key))
        if wanted.value:
            cells.append(show_value(null if record.value is None else record.value))
        return between.join(cells) + end if cells else b""

    return write


def coordinator_formatter(group: str, allowed: Iterable[int] | None) -> Callable[[Properties], Formatter]:
    """Return a factory of formatters for Kafka's own topics. They write JSON without line ends, as Kafka's tool does."""
    wanted = None if allowed is None else frozenset(allowed)

    def write(record: Shown, timestamp_type: str) -> bytes:
        if record.key is None or len(record.key) < 2:
            return b""
        number = int.from_bytes(record.key[:2], "big", signed=True)
        name = RECORD_NAMES[group].get(number)
        if name is None or (wanted is not None and number not in wanted):
            return b""
        try:
            key = wire.decode_record(record.key, name)
            value = "null"
            if record.value is not None:
                found = wire.decode_record(record.value, f"{name.removesuffix('Key')}Value")
                value = f'{{"version":{found.version},"data":{json_text(found.record, found.version)}}}'
        except MalformedError as error:
            raise ToolError(f"Could not read record at offset {record.offset} due to: {error}") from None
        data = json_text(key.record, key.version)
        return f'{{"key":{{"type":{number},"data":{data}}},"value":{value}}}'.encode()

    return lambda properties: write


_PACKAGE = "org.apache.kafka.tools.consumer."
_FORMATTERS: dict[str, Callable[[Properties], Formatter]] = {
    "DefaultMessageFormatter": default_formatter,
    "LoggingMessageFormatter": default_formatter,
    "NoOpMessageFormatter": lambda properties: lambda record, timestamp_type: b"",
    "OffsetsMessageFormatter": coordinator_formatter("group", (0, 1)),
    "GroupMetadataMessageFormatter": coordinator_formatter("group", (2,)),
    "TransactionLogMessageFormatter": coordinator_formatter("transaction", None),
}


def formatter(name: str, properties: Properties) -> Formatter:
    """Return the formatter of a Java class name. Raises `ToolError` with the name, as Java does."""
    found = _FORMATTERS.get(name.removeprefix(_PACKAGE)) if name.startswith(_PACKAGE) else None
    if found is None:
        raise ToolError(name)
    return found(properties)


TIMESTAMP_TYPES: dict[Any, str] = {0: "CreateTime", 1: "LogAppendTime"}
