"""Parsing of the lines that `barnabas records produce` reads. Pure: text in, records out.

Its one rule: the output of `barnabas records consume --output jsonl` can be read back as `json`. A line that cannot be parsed
is an error with the number of the line.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
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


def parse_lines(lines: Iterable[bytes], parse: Parser, file: str | None = None) -> Iterator[NewRecord]:
    """Yield the record of each line. Raises `BadLineError`, which names the line and, if given, the file."""
    for number, line in enumerate(lines, 1):
        text = line.removesuffix(b"\n").removesuffix(b"\r")
        try:
            yield parse(text)
        except ValueError as error:
            shown = text[:80].decode("utf-8", "backslashreplace")
            where = f"line {number}" if file is None else f"{file}, line {number}"
            raise BadLineError(f"{where}: {error}: {shown!r}") from None


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
            if not name:
                raise ValueError("a header is NAME=VALUE, or NAME for a null value")
            rows.append((name.decode(), content if sign else None))
        return NewRecord(key, value, tuple(rows))

    return parse


_MEMBERS = ("key", "value", "headers", "partition", "timestamp")
_IGNORED = ("topic", "offset")
"""Members that the output of `consume` has and that `produce` does not need."""
_MAX_INT32, _MAX_INT64 = 2**31 - 1, 2**63 - 1
_NO_TIMESTAMP = -1


def parse_json(line: bytes) -> NewRecord:
    """Parse an object with `value` and, if wanted, `key`, `headers`, `partition` and `timestamp`. Raises ValueError.

    Strings become UTF-8, {"base64": ...} becomes bytes, and anything else is written as JSON. Null is a tombstone. `topic` and
    `offset` are ignored; any other member is an error.

    >>> parse_json(b'{"key": "alice", "value": {"apples": 2}, "headers": {"source": "web"}}')
    NewRecord(key=b'alice', value=b'{"apples":2}', headers=(('source', b'web'),), partition=None, timestamp_ms=None)
    """
    try:
        found = json.loads(line, object_pairs_hook=_object, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        raise ValueError(f"this is not JSON ({error.msg})") from None
    if not isinstance(found, dict):
        raise ValueError("an object is needed")
    _check_members(found, _MEMBERS, _IGNORED)
    if "value" not in found:
        raise ValueError('the member "value" is missing; null as its value is a tombstone')
    partition = _whole_number(found, "partition", 0, _MAX_INT32)
    timestamp_ms = _whole_number(found, "timestamp", _NO_TIMESTAMP, _MAX_INT64)
    return NewRecord(
        _bytes(found.get("key")),
        _bytes(found["value"]),
        _headers(found.get("headers")),
        partition,
        None if timestamp_ms == _NO_TIMESTAMP else timestamp_ms,
    )


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        raise ValueError(f"the member {next(name for name in names if names.count(name) > 1)!r} is given twice")
    return found


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"this is not JSON ({name} is not a number)")


def _check_members(found: Mapping[str, Any], known: Iterable[str], ignored: Iterable[str] = ()) -> None:
    for name in found:
        if name not in known and name not in ignored:
            from difflib import get_close_matches  # needed only for typing errors

            close = get_close_matches(name.lower(), known, 1)
            hint = f"did you mean {close[0]!r}?" if close else f"the members are {', '.join(known)}"
            raise ValueError(f"unknown member {name!r}; {hint}")


def _whole_number(found: Mapping[str, Any], name: str, least: int, largest: int) -> int | None:
    number = found.get(name)
    if number is None:
        return None
    if isinstance(number, bool) or not isinstance(number, int):
        raise ValueError(f"{name} must be a whole number")
    if not least <= number <= largest:
        raise ValueError(f"{name} must be between {least} and {largest}")
    return number


def _headers(found: Any) -> Headers:
    if found is None:
        return ()
    if isinstance(found, dict):
        pairs: list[tuple[Any, Any]] = list(found.items())
    elif isinstance(found, list):
        pairs = [_pair(each) for each in found]
    else:
        raise ValueError("headers must be an object, or a list of pairs")
    for name, _ in pairs:
        if not isinstance(name, str):
            raise ValueError(f"the name of a header must be a string, not {json.dumps(name)}")
    return tuple((name, _bytes(value)) for name, value in pairs)


def _pair(entry: Any) -> tuple[Any, Any]:
    if isinstance(entry, dict):
        _check_members(entry, ("key", "value"))
        if len(entry) < 2:
            raise ValueError("a header needs the members key and value")
        return entry["key"], entry["value"]
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
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode(
        "utf-8", "surrogatepass"
    )


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
