"""Callbacks that parse options and arguments: `callback=parsed_by(parse)`.

Its one rule: values are parsed before the command runs, and the user sees the message of the ValueError that `parse` raises.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import click

from barnabas.cli.terminal.times import parse_time_ms

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


def _moment(text: str | None) -> AsOf:
    from barnabas.metadata.as_of import parse_as_of

    return parse_as_of(text)


moment_of = parsed_by(_moment, or_none=False)
"""Callback for an offset of the metadata log or a time; None is the end of the log."""

time_ms = parsed_by(lambda text: parse_time_ms(text, round(time.time() * 1000)))
"""Callback for a time or an age, in milliseconds since 1970."""
