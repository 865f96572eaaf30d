"""Durations, as people and ISO 8601 write them. Pure."""

from __future__ import annotations

import re

_UNITS_MS = {"days": 86_400_000, "hours": 3_600_000, "minutes": 60_000, "seconds": 1_000}
_DURATION = re.compile(
    r"(?P<sign>[-+]?)P(?:(?P<days>[-+]?\d+)D)?"
    r"(?P<time>T(?:(?P<hours>[-+]?\d+)H)?(?:(?P<minutes>[-+]?\d+)M)?(?:(?P<seconds>[-+]?\d+(?:[.,]\d{0,9})?)S)?)?",
    re.IGNORECASE,
)
_SHORT_UNITS_MS = {"ms": 1, "s": 1_000, "m": 60_000, "h": 3_600_000, "d": 86_400_000, "w": 604_800_000}
_SHORT = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d|w)")


def parse_duration_ms(text: str) -> int:
    """`90m`, `1.5h`, `7d`; or as in ISO 8601, by days and shorter. Raises ValueError.

    >>> parse_duration_ms("90m"), parse_duration_ms("P1DT2H"), parse_duration_ms("PT0.5S")
    (5400000, 93600000, 500)
    """
    if found := _SHORT.fullmatch(text):
        return int(float(found[1]) * _SHORT_UNITS_MS[found[2]])
    return parse_iso_duration_ms(text)


def parse_iso_duration_ms(text: str) -> int:
    """As in ISO 8601 alone. Raises ValueError."""
    found = _DURATION.fullmatch(text)
    parts = found.groupdict() if found else {}
    if not any(parts.get(name) for name in _UNITS_MS) or parts.get("time") in ("T", "t"):
        raise ValueError(f"{text!r} is no duration such as 90m, 7d or PT1H30M")
    total = sum(float((parts[name] or "0").replace(",", ".")) * ms for name, ms in _UNITS_MS.items())
    return int(-total if parts["sign"] == "-" else total)


def duration_text(ms: int) -> str:
    """For people: the two largest units.

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
