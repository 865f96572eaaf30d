"""Points in time, sizes and durations as people write them. Pure.

Its one rule: a time is UTC unless it says otherwise; an age counts back from the `now_ms` that is given.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime

_UNITS_MS = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_AGE = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")
_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?(?:/s)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}


def parse_time_ms(text: str, now_ms: int) -> int:
    """Milliseconds since 1970 of a time as in ISO 8601, of such milliseconds, or of an age. Raises ValueError.

    >>> parse_time_ms("2026-01-31T12:30:00Z", 0), parse_time_ms("2026-01-31", 0), parse_time_ms("1700000000000", 0)
    (1769862600000, 1769817600000, 1700000000000)
    >>> parse_time_ms("90m", now_ms=10_000_000), parse_time_ms("1d", now_ms=86_400_000)
    (4600000, 0)
    """
    if text.isdecimal():
        return int(text)
    if found := _AGE.fullmatch(text):
        return now_ms - int(float(found[1]) * _UNITS_MS[found[2]])
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is no time such as 2026-01-31T12:30:00Z, no milliseconds and no age such as 7d"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)


def parse_bytes(text: str) -> int:
    """A number of bytes, or of bytes a second. Raises ValueError.

    >>> [parse_bytes(text) for text in ("100", "1.5k", "20MB/s", "1GiB")]
    [100, 1500, 20000000, 1073741824]
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is no size such as 500kB, 20MB or 1GiB")
    number, power, is_binary = float(found[1]), _POWERS[found[2].lower()], bool(found[3])
    return int(number * (1024 if is_binary else 1000) ** power)


def bytes_text(count: int) -> str:
    """A size for people.

    >>> bytes_text(999), bytes_text(20_000_000), bytes_text(1_500)
    ('999 B', '20 MB', '1.5 kB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"
