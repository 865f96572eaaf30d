"""Keys and values of records as text, and filters for records. Pure.

Its one rule: nothing is lost. Bytes that cannot be shown in the requested form are shown as text, or as Base64 if they are not
text.
"""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable, Iterable
from typing import Any, Protocol

from barnabas.operations.records.conditions import holds, parse_condition

FORMATS = ("text", "json", "hex", "base64")


class Shown(Protocol):
    """A record, as a consumer returns it."""

    @property
    def topic(self) -> str: ...
    @property
    def partition(self) -> int: ...
    @property
    def offset(self) -> int: ...
    @property
    def timestamp(self) -> int: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...
    @property
    def headers(self) -> tuple[tuple[str, bytes | None], ...]: ...


def show(data: bytes | None, form: str) -> Any:
    """Format a key or a value.

    >>> show(b"abc", "hex"), show(b'{"a": 1}', "json"), show(b"\\xff", "text")
    ('616263', {'a': 1}, {'base64': '/w=='})
    """
    if data is None:
        return None
    if form == "hex":
        return data.hex()
    if form == "base64":
        return base64.b64encode(data).decode()
    if form == "json":
        try:
            return json.loads(data)
        except ValueError:
            pass  # shown as text
    try:
        return data.decode()
    except UnicodeDecodeError:
        return {"base64": base64.b64encode(data).decode()}


# --- filters

Filter = Callable[[Shown], bool]


def regex_filter(field: str, pattern: str) -> Filter:
    """Return a filter for records whose key or value contains a match. Raises ValueError."""
    try:
        compiled = re.compile(pattern.encode())
    except re.error as error:
        raise ValueError(f"{pattern!r} is not a regular expression: {error}") from None

    def fits(record: Shown) -> bool:
        data = record.key if field == "key" else record.value
        return data is not None and compiled.search(data) is not None

    return fits


def header_filter(text: str) -> Filter:
    """Return a filter for records with a header NAME, or NAME=VALUE. Raises ValueError."""
    name, sign, value = text.partition("=")
    if not name:
        raise ValueError(f"{text!r} is not a header: it must be NAME or NAME=VALUE")
    wanted = value.encode() if sign else None
    return lambda record: any(key == name and (wanted is None or each == wanted) for key, each in record.headers)


def where_filter(text: str) -> Filter:
    """Return a filter for records whose value is JSON and fulfils a condition; see `conditions`. Raises ValueError.

    >>> fits = where_filter("order.items[0].count>=2")
    >>> from barnabas.client.records import ConsumerRecord
    >>> fits(ConsumerRecord("t", 0, 0, 0, None, b'{"order": {"items": [{"count": 3}]}}'))
    True
    """
    condition = parse_condition(text)

    def fits(record: Shown) -> bool:
        try:
            value = json.loads(record.value or b"")
        except ValueError:
            return False
        return holds(condition, value)

    return fits


def all_of(filters: Iterable[Filter]) -> Filter:
    wanted = list(filters)
    return lambda record: all(each(record) for each in wanted)
