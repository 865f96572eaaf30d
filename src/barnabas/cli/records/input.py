"""Parsing of the lines that `barnabas records produce` reads. Pure: text in, records out.

Its one rule: the output of `barnabas records consume --output jsonl` can be read back as `json`. A line that cannot be parsed
is an error with the number of the line.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]


class NewRecord(NamedTuple):
    """A record to write. The producer chooses a partition or timestamp that is None."""

    key: bytes | None
    value: bytes | None
    headers: Headers = ()
    partition: int | None = None
    timestamp_ms: int | None = None


class BadLineError(ValueError):
    """A line that is not a record."""


Parser = Callable[[bytes], NewRecord]


def parse_lines(lines: Iterable[bytes], parse: Parser) -> Iterator[NewRecord]:
    """Yield the record of each line. Raises `BadLineError`."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield parse(text)
        except ValueError as error:
            shown = text[:80].decode("utf-8", "backslashreplace")
            raise BadLineError(f"line {number}: {error}: {shown!r}") from None


def line_parser(key_separator: str | None, null: str | None) -> Parser:
    """Return a parser of lines that are a value or, with a separator, a key and a value. The text `null` means None.

    >>> line_parser(":", "-")(b"alice:two apples")
    NewRecord(key=b'alice', value=b'two apples', headers=(), partition=None, timestamp_ms=None)
    """
    separator = None if key_separator is None else key_separator.encode()
    nothing = None if null is None else null.encode()

    def parse(line: bytes) -> NewRecord:
        key: bytes | None = None
        if separator is not None:
            key, found, line = line.partition(separator)
            if not found:
                raise ValueError(f"no key separator {key_separator!r}")
        return NewRecord(None if key == nothing else key, None if line == nothing else line)

    return parse


def tsv_parser(null: str | None) -> Parser:
    """Return a parser of key, value and headers (name=value), separated by tabs. Backslash-t, -n and -r are escapes.

    >>> tsv_parser(None)(b"alice\\ttwo apples\\tsource=web")
    NewRecord(key=b'alice', value=b'two apples', headers=(('source', b'web'),), partition=None, timestamp_ms=None)
    """

    def parse(line: bytes) -> NewRecord:
        cells = line.decode().split("\t")
        if len(cells) < 2:
            raise ValueError("a key, a tab and a value are needed")
        key, value, *headers = (None if cell == null else _unescape(cell) for cell in cells)
        rows = []
        for header in headers:
            name, sign, content = (header or b"").partition(b"=")
            rows.append((name.decode(), content if sign else None))
        return NewRecord(key, value, tuple(rows))

    return parse


def parse_json(line: bytes) -> NewRecord:
    """Parse an object with `key`, `value`, `headers`, `partition` and `timestamp`, all of which are optional.

    Strings become UTF-8, {"base64": ...} becomes bytes, and anything else is written as JSON.

    >>> parse_json(b'{"key": "alice", "value": {"apples": 2}, "headers": {"source": "web"}}')
    NewRecord(key=b'alice', value=b'{"apples":2}', headers=(('source', b'web'),), partition=None, timestamp_ms=None)
    """
    try:
        found = json.loads(line)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg})") from None
    if not isinstance(found, dict):
        raise ValueError("an object is needed")
    headers = found.get("headers") or {}
    pairs = headers.items() if isinstance(headers, dict) else [_pair(each) for each in headers]
    partition, timestamp_ms = found.get("partition"), found.get("timestamp")
    for name, number in (("partition", partition), ("timestamp", timestamp_ms)):
        if number is not None and (isinstance(number, bool) or not isinstance(number, int)):
            raise ValueError(f"{name} must be a whole number")
    rows = tuple((str(name), _bytes(value)) for name, value in pairs)
    return NewRecord(_bytes(found.get("key")), _bytes(found.get("value")), rows, partition, timestamp_ms)


def _pair(entry: Any) -> tuple[str, Any]:
    if isinstance(entry, dict) and "key" in entry:
        return entry["key"], entry.get("value")
    if isinstance(entry, list) and len(entry) == 2:
        return entry[0], entry[1]
    raise ValueError("headers must be an object, or a list of pairs")


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    if isinstance(value, str):
        return value.encode("utf-8", "surrogatepass")
    if isinstance(value, dict) and list(value) == ["base64"]:
        try:
            return base64.b64decode(value["base64"], validate=True)
        except (binascii.Error, TypeError, ValueError):
            raise ValueError("the value of base64 is not Base64") from None
    return json.dumps(value, ensure_ascii=False, separators=(",", ":")).encode()


_ESCAPES = {"t": "\t", "n": "\n", "r": "\r", "\\": "\\"}


def _unescape(text: str) -> bytes:
    if "\\" not in text:
        return text.encode()
    out, rest = [], iter(text)
    for char in rest:
        if char != "\\":
            out.append(char)
            continue
        after = next(rest, "")
        out.append(_ESCAPES.get(after, "\\" + after))
    return "".join(out).encode()
