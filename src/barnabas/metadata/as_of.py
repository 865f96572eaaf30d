"""`--as-of`: a moment in the history of a metadata log, given as an offset or a time. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

_FIRST_TIME_MS = 100_000_000_000


class AsOf(NamedTuple):
    """How far to read: up to an offset, included, or up to a time in milliseconds, included; None is no limit."""

    offset: int | None = None
    timestamp_ms: int | None = None

    def includes(self, last_offset: int, timestamp_ms: int) -> bool:
        return (self.offset is None or last_offset <= self.offset) and (
            self.timestamp_ms is None or timestamp_ms <= self.timestamp_ms
        )


EVERYTHING = AsOf()


def parse_as_of(text: str | None) -> AsOf:
    """An offset, milliseconds since 1970, or a time as in ISO 8601, which is UTC unless it says otherwise.

    Whole numbers from a hundred billion on are times: no metadata log has as many records. Raises ValueError.

    >>> parse_as_of("1000"), parse_as_of("1970-01-01T00:00:01")
    (AsOf(offset=1000, timestamp_ms=None), AsOf(offset=None, timestamp_ms=1000))
    """
    if text is None:
        return EVERYTHING
    if text.isdecimal():
        number = int(text)
        return AsOf(timestamp_ms=number) if number >= _FIRST_TIME_MS else AsOf(offset=number)
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"{text!r} is no offset, no milliseconds, and no time such as 2026-01-31T12:30:00Z") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return AsOf(timestamp_ms=int(moment.timestamp() * 1000))
