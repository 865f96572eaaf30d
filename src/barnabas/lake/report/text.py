"""Values formatted for people, and escaped for HTML.

Its one rule: text from a log is never trusted. `visible` escapes characters that a page or a terminal would interpret (control
characters, changes of text direction, single surrogates); `escaped` also escapes HTML, for text and attributes.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime
from html import escape
from typing import Any

from barnabas.lake.declared_column import Column

NONE, TIMES = "\N{EN DASH}", "\N{MULTIPLICATION SIGN}"
CELL_CHARACTERS = 400
"""Longer texts are clipped on the page; the file has them in full."""
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")
_IDENTIFIERS = frozenset(("partition", "epoch", "offset", "leader", "leader_before", "key"))


def visible(value: object) -> str:
    text = str(value)
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode("ascii") for c in text)


def escaped(value: object) -> str:
    return escape(visible(value), quote=True)


def clipped(text: str, characters: int) -> str:
    """Cut out the middle of a text that is too long: names mostly differ at their ends."""
    if len(text) <= characters:
        return text
    head = (characters - 1) // 2
    return f"{text[:head]}…{text[len(text) - (characters - 1 - head) :]}"


def iso(time: datetime) -> str:
    """Format a time in UTC, to the second. Raises ValueError for a time without a zone."""
    if time.tzinfo is None:
        raise ValueError(f"a time without a zone: {time.isoformat()}")
    return time.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def clock(time: datetime) -> str:
    """Format a time in UTC for a sentence: to the minute.

    >>> clock(datetime(2026, 11, 16, 8, 30, 59, tzinfo=UTC))
    '2026-11-16 08:30Z'
    """
    return f"{time.astimezone(UTC):%Y-%m-%d %H:%M}Z"


def between(start: datetime, end: datetime) -> str:
    """Format a time from one moment to another; the day only once if it is the same, and one moment if that is the same.

    >>> between(datetime(2026, 11, 16, 8, 30, tzinfo=UTC), datetime(2026, 11, 16, 9, 4, tzinfo=UTC))
    'from 2026-11-16 08:30 to 09:04Z'
    """
    begin, until = clock(start), clock(end)
    if begin == until:
        return f"at {begin}"
    return f"from {begin[:-1]} to {until[11:] if begin[:10] == until[:10] else until}"


def count(number: float) -> str:
    return f"{number:,.0f}"


def counted(number: int, noun: str, plural: str = "") -> str:
    """Return 1 partition, 2 partitions."""
    return f"{count(number)} {noun if number == 1 else plural or noun + 's'}"


def short(number: float) -> str:
    """Return 1,234 unchanged, and 1,234,567 as 1.2 M."""
    for size, unit in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if abs(number) >= size:
            return f"{number / size:.1f} {unit}"
    return f"{number:,.0f}" if float(number).is_integer() or abs(number) >= 100 else f"{number:.1f}"


def size(number: float) -> str:
    """Format a number of bytes."""
    value, unit = float(number), 0
    while abs(value) >= 1024 and unit < len(_UNITS) - 1:
        value, unit = value / 1024, unit + 1
    return f"{value:.0f} {_UNITS[unit]}" if unit == 0 or value >= 100 else f"{value:.1f} {_UNITS[unit]}"


def rate(number: float) -> str:
    """Format a number of bytes a second; what is less than one, by the minute, hour or day.

    >>> rate(2048), rate(0.36), rate(0)
    ('2.0 KiB/s', '22 B/min', '0 B/s')
    """
    units = ((1, "s"), (60, "min"), (3600, "h"), (86400, "day"))
    seconds, unit = next((each for each in units if number * each[0] >= 1), units[-1 if number else 0])
    return f"{size(number * seconds)}/{unit}"


def duration(minutes: float) -> str:
    """Format with the two largest units: 2 d 4 h, 3 h 12 min, 42 min, 12 s."""
    if minutes <= 0:
        return "0"
    seconds = minutes * 60
    if seconds < 1:
        return "< 1 s"
    if seconds < 59.5:
        return f"{seconds:.0f} s"
    whole = round(minutes)
    days, hours, rest = whole // 1440, whole % 1440 // 60, whole % 60
    if days:
        return f"{count(days)} d {hours} h" if hours and days < 100 else f"{count(days)} d"
    if hours:
        return f"{hours} h {rest} min" if rest else f"{hours} h"
    return f"{rest} min"


def percent(share: float) -> str:
    return f"{share * 100:.0f} %" if share >= 0.1 or not share else f"{share * 100:.1f} %"


def times(factor: float) -> str:
    return f"{factor:.2f}{TIMES}" if factor else "0"


def is_number(column: Column) -> bool:
    """Return whether a column is a quantity, and not an identifier."""
    if column.type not in ("int", "bigint", "smallint", "double", "float"):
        return False
    return column.name not in _IDENTIFIERS and not column.name.endswith(("_id", "_epoch", "offset"))


def shown(column: Column, value: Any) -> str:
    """Format a value of a table; not escaped yet."""
    if value is None:
        return NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, datetime):
        return iso(value)
    if column.type.startswith("map<"):
        # Arrow returns a map as pairs
        return _listed([f"{name} = {its}" for name, its in (value.items() if isinstance(value, dict) else value)])
    if isinstance(value, (list, tuple)):
        return _listed(value)
    if isinstance(value, (int, float)) and is_number(column):
        return _amount(column.name, value)
    return str(value)


def _listed(values: Sequence[Any]) -> str:
    return ", ".join(NONE if value is None else str(value) for value in values) or "none"


def _amount(name: str, value: float) -> str:
    if name.endswith("minutes"):
        return duration(value)
    if "seconds_since" in name:
        return duration(value / 60)
    if name.endswith("bytes_per_second"):
        return rate(value)
    if name.endswith("bytes_per_day"):
        return f"{size(value)}/day"
    if name.endswith("bytes"):
        return size(value)
    if name.endswith("share"):
        return percent(value)
    if name.endswith(("skew", "times_even")):
        return times(value)
    return count(value) if float(value).is_integer() else f"{value:,.2f}"
