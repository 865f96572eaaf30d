"""Parsing of times and ages. Pure.

Its one rule: a time without a zone is UTC; an age counts back from the given `now_ms`.
"""

from __future__ import annotations

from datetime import UTC, datetime

from barnabas.operations.quantities import parse_short_duration_ms


def parse_time_ms(text: str, now_ms: int) -> int:
    """Parse an ISO 8601 time, milliseconds since 1970 or an age such as `7d`; return milliseconds since 1970.

    Raises ValueError.

    >>> parse_time_ms("2026-01-31T12:30:00Z", 0), parse_time_ms("2026-01-31", 0), parse_time_ms("1700000000000", 0)
    (1769862600000, 1769817600000, 1700000000000)
    >>> parse_time_ms("90m", now_ms=10_000_000), parse_time_ms("1d", now_ms=86_400_000)
    (4600000, 0)
    """
    if text.isdecimal():
        return int(text)
    age_ms = parse_short_duration_ms(text)
    if age_ms is not None:
        return now_ms - age_ms
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(
            f"{text!r} is not a time such as 2026-01-31T12:30:00Z, milliseconds since 1970, or an age such as 7d"
        ) from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return round(moment.timestamp() * 1000)
