"""Callbacks of options and arguments whose text means something: `callback=parsed_by(parse)`.

Its one rule: the text is judged before the command runs, and what `parse` says of a wrong one is what the user is told.
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
    """What `parse` makes of the text, several of them one by one. Nothing stays None, unless `parse` has a say in it."""

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
"""An offset of the metadata log, or a time; none is the end of the log."""

time_ms = parsed_by(lambda text: parse_time_ms(text, round(time.time() * 1000)))
"""A time, or an age."""
