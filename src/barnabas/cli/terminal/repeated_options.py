"""Refuse an option that is given twice but takes one value.

Its one rule: no value of the command line is silently dropped. click keeps the last value, so `-f a -f b` would ignore `a`.
Options that collect values are `multiple`. A plain flag may be repeated, because that changes nothing.
"""

from __future__ import annotations

import functools
from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

import click

T = TypeVar("T")


def unique_keys(pairs: Iterable[tuple[str, T]], where: str) -> dict[str, T]:
    """Return pairs as a dict. Raises click.UsageError, which names `where`, if a key occurs twice."""
    found: dict[str, T] = {}
    for key, value in pairs:
        if key in found:
            raise click.UsageError(f"{where}: {key} was given more than once.")
        found[key] = value
    return found


def repeated_option(command: click.Command, ctx: click.Context, args: list[str]) -> click.Option | None:
    """Return the first option that takes one value and occurs more than once in the arguments, or None."""
    _, _, order = command.make_parser(ctx).parse_args(args=list(args))
    counts = Counter(id(param) for param in order)
    for param in order:
        if isinstance(param, click.Option) and counts[id(param)] > 1 and takes_one_value(param):
            return param
    return None


def takes_one_value(option: click.Option) -> bool:
    """Return whether a second value would replace the first. A pair such as --watch/--no-watch has two values."""
    is_plain_flag = option.is_flag and not option.secondary_opts
    return not (option.multiple or option.count or is_plain_flag)


def refuse_repeats(command: click.Command) -> click.Command:
    """Make a command and its subcommands refuse repeated options, and return the command."""
    if isinstance(command, click.Group):
        for each in command.commands.values():
            refuse_repeats(each)
    original = type(command).parse_args
    setattr(command, "parse_args", functools.partial(_parse_args, command, original))  # noqa: B010
    return command


def _parse_args(command: click.Command, original: object, ctx: click.Context, args: list[str]) -> list[str]:
    if not ctx.resilient_parsing:
        option = repeated_option(command, ctx, args)
        if option is not None:
            names = "/".join((*option.opts, *option.secondary_opts))
            raise click.UsageError(f"Option {names} was given more than once, but it takes one value.", ctx)
    parsed: list[str] = original(command, ctx, args)  # type: ignore[operator]
    return parsed
