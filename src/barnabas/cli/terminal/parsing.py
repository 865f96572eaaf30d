"""Callbacks that parse options and arguments: `callback=parsed_by(parse)`.

Its one rule: values are parsed before the command runs, and the user sees the message of the ValueError that `parse` raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.terminal.times import parse_time_ms
from barnabas.operations.quantities import parse_duration_ms, parse_short_duration_ms

if TYPE_CHECKING:
    from barnabas.metadata.as_of import AsOf

Callback = Callable[[click.Context, click.Parameter, Any], Any]


def parsed_by(parse: Callable[[str], Any], *, or_none: bool = True) -> Callback:
    """Return a callback that applies `parse` to a value, or to each of several. None stays None unless `or_none` is false."""

    def callback(ctx: click.Context, param: click.Parameter, value: Any) -> Any:
        if isinstance(value, tuple):
            return tuple(callback(ctx, param, each) for each in value)
        try:
            return None if value is None and or_none else parse(value)
        except ValueError as error:
            raise click.BadParameter(str(error), ctx, param) from None

    return callback


def _now_ms() -> int:
    return round(time.time() * 1000)


def _moment(text: str | None) -> AsOf:
    from barnabas.metadata.as_of import AsOf, parse_as_of

    age_ms = None if text is None else parse_short_duration_ms(text)
    if age_ms is not None:
        return AsOf(timestamp_ms=_now_ms() - age_ms)
    try:
        return parse_as_of(text)
    except ValueError as error:
        raise ValueError(f"{error}, or an age such as 7d") from None


moment_of = parsed_by(_moment, or_none=False)
"""Callback for an offset of the metadata log, a time or an age; None is the end of the log."""

moment_or_none = parsed_by(_moment)
"""Like `moment_of`, but None stays None."""

time_ms = parsed_by(lambda text: parse_time_ms(text, _now_ms()))
"""Callback for a time or an age, in milliseconds since 1970."""

age_ms = parsed_by(lambda text: _now_ms() - parse_duration_ms(text))
"""Callback for a duration that counts back from now, in milliseconds since 1970."""

duration_ms = parsed_by(parse_duration_ms)
"""Callback for a duration in milliseconds."""
