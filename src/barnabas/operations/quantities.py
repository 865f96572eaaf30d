"""Parsing and formatting of sizes and durations. Pure."""

from __future__ import annotations

import re

_SIZE = re.compile(r"(\d+(?:\.\d+)?)\s*([kMGT]?)(i?)B?(?:/s)?", re.IGNORECASE)
_POWERS = {"": 0, "k": 1, "m": 2, "g": 3, "t": 4}

_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_SHORT_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


# --- sizes


def parse_bytes(text: str) -> int:
    """Parse a number of bytes, or of bytes per second. Raises ValueError.

    >>> [parse_bytes(text) for text in ("100", "1.5k", "20MB/s", "1GiB")]
    [100, 1500, 20000000, 1073741824]
    """
    found = _SIZE.fullmatch(text.strip())
    if found is None:
        raise ValueError(f"{text!r} is not a size such as 500kB, 20MB or 1GiB")
    number, power, is_binary = float(found[1]), _POWERS[found[2].lower()], bool(found[3])
    return int(number * (1024 if is_binary else 1000) ** power)


def bytes_text(count: int) -> str:
    """Format a size for people.

    >>> bytes_text(999), bytes_text(20_000_000), bytes_text(1_500)
    ('999 B', '20 MB', '1.5 kB')
    """
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count} B"


# --- durations


def parse_duration_ms(text: str) -> int:
    """Parse `90m`, `1.5h`, `7d`, or an ISO 8601 duration of days and shorter units. Raises ValueError.

    >>> parse_duration_ms("90m"), parse_duration_ms("P1DT2H"), parse_duration_ms("PT0.5S")
    (5400000, 93600000, 500)
    """
    short_ms = parse_short_duration_ms(text)
    return parse_iso_duration_ms(text) if short_ms is None else short_ms


def parse_short_duration_ms(text: str) -> int | None:
    """Parse a number with a unit, such as `90m`. Returns None if the text has another form."""
    found = _SHORT.fullmatch(text)
    return None if found is None else int(float(found[1]) * _SHORT_UNITS_MS[found[2]])


def parse_iso_duration_ms(text: str) -> int:
    """Parse an ISO 8601 duration, such as PT1H30M. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    parts = found.groupdict() if found else {}
    if not any(parts.get(name) for name in _UNITS_MS) or parts.get("time") in ("T", "t"):
        raise ValueError(f"{text!r} is not a duration such as 90m, 7d or PT1H30M")
    total = sum(float((parts[name] or "0").replace(",", ".")) * ms for name, ms in _UNITS_MS.items())
    return int(-total if parts["sign"] == "-" else total)


def duration_text(ms: int) -> str:
    """Format a duration for people, in its two largest units.

    >>> duration_text(90_061_000), duration_text(120_500), duration_text(250)
    ('1d 1h', '2m', '250ms')
    """
    if 0 < ms < 1000:
        return f"{ms}ms"
    parts, left_s = [], ms // 1000
    for unit, size_s in (("d", 86_400), ("h", 3_600), ("m", 60), ("s", 1)):
        count, left_s = divmod(left_s, size_s)
        if count:
            parts.append(f"{count}{unit}")
    return " ".join(parts[:2]) or "0s"
