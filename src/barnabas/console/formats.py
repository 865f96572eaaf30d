"""Numbers, sizes and times as pages show them. Pure; the filters of the templates."""

from __future__ import annotations

import datetime
import re
from typing import Any
from urllib.parse import quote, urlencode

from barnabas.operations.quantities import bytes_text, duration_text

_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?Z")
_WHOLE = re.compile(r"-?[0-9]{1,19}")
UNKNOWN = "-"
"""What is not known, or not there."""


def count(value: float | None) -> str:
    """Format a number with separators of thousands.

    >>> count(12345), count(None)
    ('12,345', '-')
    """
    return UNKNOWN if value is None else f"{value:,}"


def size(value: int | None) -> str:
    return UNKNOWN if value is None or value < 0 else bytes_text(value)


def rate(value: float | None) -> str:
    """Format bytes per second.

    >>> rate(2048.0), rate(0.0), rate(None)
    ('2.05 kB/s', '0 B/s', '-')
    """
    return UNKNOWN if value is None else f"{bytes_text(max(round(value), 0))}/s"


def duration(value_ms: float | None) -> str:
    return UNKNOWN if value_ms is None or value_ms < 0 else duration_text(round(value_ms))


def percent(value: float | None, signed: bool = False) -> str:
    if value is None:
        return UNKNOWN
    return f"{value:+.0f}%" if signed else f"{value:.0f}%"


def utc(value_ms: float | None) -> str:
    """Format milliseconds since 1970 as a time in UTC.

    >>> utc(0), utc(None), utc(-1), utc(10**20)
    ('1970-01-01 00:00:00Z', '-', '-', '100000000000000000000 ms')
    """
    if value_ms is None or value_ms < 0:
        return UNKNOWN
    try:
        at = datetime.datetime.fromtimestamp(value_ms / 1000, datetime.UTC)
    except (ValueError, OverflowError, OSError):
        return f"{value_ms} ms"
    return at.strftime("%Y-%m-%d %H:%M:%SZ")


def clock(value_s: float) -> str:
    return datetime.datetime.fromtimestamp(value_s, datetime.UTC).strftime("%H:%M:%SZ")


def ids(values: Any) -> str:
    """Format broker ids.

    >>> ids((1, 2)), ids(()), ids(None)
    ('1, 2', 'none', '-')
    """
    if values is None:
        return UNKNOWN
    return ", ".join(map(str, values)) or "none"


def plural(number: int, word: str) -> str:
    """Format a count with its noun.

    >>> plural(1, "topic"), plural(1200, "topic"), plural(2, "query")
    ('1 topic', '1,200 topics', '2 queries')
    """
    if number == 1:
        return f"1 {word}"
    many = f"{word[:-1]}ies" if word.endswith("y") and word[-2] not in "aeiou" else f"{word}s"
    return f"{number:,} {many}"


def segment(text: str) -> str:
    """Quote a text as one part of the path of an address."""
    return quote(str(text), safe="")


def query(**values: Any) -> str:
    """Return a query string of the values that are given.

    >>> query(q="a b", page=None, sort="")
    '?q=a+b'
    """
    given = [(name, str(value)) for name, value in values.items() if value not in (None, "", False)]
    return f"?{urlencode(given)}" if given else ""


def short_time(text: str) -> str:
    """Format a time of a lake as other times are.

    >>> short_time("2026-11-18T19:00:00.241Z"), is_time("2026-11-18T19:00:00.241Z"), is_time("orders")
    ('2026-11-18 19:00:00Z', True, False)
    """
    return f"{text[:10]} {text[11:19]}Z"


def is_time(text: str) -> bool:
    return _TIME.fullmatch(text) is not None


def plain(value: float) -> str:
    """Format a number without a fraction that is zero.

    >>> plain(50000000.0), plain(0.5)
    ('50,000,000', '0.5')
    """
    return f"{value:,.0f}" if value == int(value) else f"{value:,}"


NO_LIMIT = 2**63 - 1
_MINUS_ONE_IS_NO_LIMIT = ("retention.ms", "retention.bytes", "log.retention.ms", "log.retention.bytes")
_QUOTA_UNITS = {
    "producer_byte_rate": "B/s",
    "consumer_byte_rate": "B/s",
    "request_percentage": "% of a thread",
    "controller_mutation_rate": "mutations/s",
    "connection_creation_rate": "connections/s",
}


def reading(value: str | None, name: str) -> str:
    """Return a setting in words, with its unit; nothing if its value says it as well.

    >>> reading("604800000", "retention.ms"), reading("1073741824", "segment.bytes"), reading("-1", "retention.bytes")
    ('7d', '1.07 GB', 'no limit')
    >>> reading("0.5", "min.cleanable.dirty.ratio"), reading("100", "linger.ms"), reading("9223372036854775807", "flush.ms")
    ('', '', 'no limit')
    """
    if value is None or not _WHOLE.fullmatch(value):
        return ""
    number = int(value)
    if number == NO_LIMIT or (number == -1 and name in _MINUS_ONE_IS_NO_LIMIT):
        return "no limit"
    if number < 1000:
        return ""
    if name.endswith(".ms"):
        return duration_text(number)
    return bytes_text(number) if name.endswith(".bytes") else ""


def quota_unit(key: str) -> str:
    return _QUOTA_UNITS.get(key, "")


FILTERS = {
    each.__name__: each
    for each in (
        *(count, size, rate, duration, percent, utc, clock, ids, plural, segment, short_time, is_time, plain),
        *(reading, quota_unit),
    )
}
