"""`--as-of`: a point in the history of a metadata log, as an offset or a time. Pure."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import NamedTuple

_FIRST_TIME_MS = 100_000_000_000


class AsOf(NamedTuple):
    """The end of what to read: an offset or a time in milliseconds, both inclusive. None means no limit.

    A batch is applied as a whole. The offset of any of its records stands for the state after the batch, so the offset at which
    a change is shown includes the change.
    """

    offset: int | None = None
    timestamp_ms: int | None = None

    def includes(self, offset: int, timestamp_ms: int) -> bool:
        """Return whether to read a batch with this base offset, or a snapshot whose last contained offset it is."""
        return (self.offset is None or offset <= self.offset) and (
            self.timestamp_ms is None or timestamp_ms <= self.timestamp_ms
        )


EVERYTHING = AsOf()


def parse_as_of(text: str | None) -> AsOf:
    """Parse an offset, milliseconds since 1970, or an ISO 8601 time, which is UTC unless it has a zone.

    Integers from a hundred billion on are times, because no metadata log has as many records. Raises ValueError.

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
        raise ValueError(f"{text!r} is not an offset, milliseconds, or a time such as 2026-01-31T12:30:00Z") from None
    moment = moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)
    return AsOf(timestamp_ms=int(moment.timestamp() * 1000))
