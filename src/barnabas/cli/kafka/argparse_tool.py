"""The common behaviour of Kafka's tools that parse options with argparse4j: usage errors, types of numbers.

Its one rule: the last line of a usage error is Kafka's, on one line; argparse4j wraps it.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import Any, NoReturn

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.output import note

ARGUMENTS = "barnabas.arguments"
"""Key of the words of the command line in the context of an `ArgparseCommand`."""


def _integer(kind: str, bits: int) -> Callable[[str], int]:
    limit = 1 << (bits - 1)

    def convert(text: str) -> int:
        if not re.fullmatch(r"[-+]?\d+", text) or not -limit <= int(text) < limit:
            raise ValueError(text)
        return int(text)

    convert.__name__ = kind
    return convert


SHORT, INTEGER, LONG = _integer("Short", 16), _integer("Integer", 32), _integer("Long", 64)


def double(text: str) -> float:
    """Parse Java's Double."""
    try:
        return float(text)
    except ValueError:
        raise ValueError(text) from None


double.__name__ = "Double"


def option_name(param: click.Parameter) -> str:
    """Return all names of an option, as argparse4j shows them.

    >>> option_name(click.Option(["--id", "-i"]))
    '--id/-i'
    """
    return "/".join(param.opts)


def refuse(program: str, error: click.UsageError, choices: Iterable[str] = ()) -> NoReturn:
    """Print the usage and the error of a command line as argparse4j does, and exit with 1."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        text = f"argument {option_name(error.param)} is required"
    elif isinstance(error, click.BadParameter) and error.param is not None:
        value, kind = error.message, error.param.type.name
        name = option_name(error.param)
        text = f"argument {name}: could not convert '{value}' to {kind} (For input string: \"{value}\")"
    elif isinstance(error, click.NoSuchOption):
        text = f"unrecognized arguments: '{error.option_name}'"
    elif error.message.startswith("No such command"):
        listed = ", ".join(f"'{name}'" for name in choices)
        text = f"invalid choice: {error.message.removeprefix('No such command ').rstrip('.')} (choose from {listed})"
    elif error.message.startswith("Missing command"):
        text = "too few arguments"
    else:
        text = error.message
    if error.ctx is not None:
        pieces = error.ctx.command.collect_usage_pieces(error.ctx)
        note(f"usage: {program} {' '.join(pieces)}")
    note(f"{program}: error: {text}")
    sys.exit(EXIT_FAILED)


class ArgparseGroup(click.Group):
    """A tool with subcommands; `program` is its name in usage errors."""

    def __init__(self, *args: Any, program: str, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.program = program

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.exceptions.NoArgsIsHelpError as error:
            refuse(self.program, click.UsageError("Missing command.", error.ctx), self.commands)
        except click.UsageError as error:
            refuse(self.program, error, self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            refuse(self.program, error, self.commands)


class ArgparseCommand(click.Command):
    """A tool without subcommands. `many` are options that take all words up to the next option.

    Without arguments it prints its help and exits with 0.
    """

    def __init__(self, *args: Any, program: str, many: Iterable[str] = (), **kwargs: Any) -> None:
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"], **(kwargs.get("context_settings") or {})}
        kwargs["no_args_is_help"] = False
        super().__init__(*args, **kwargs)
        self.program = program
        self._many = frozenset(many)

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        try:
            if not args and not extra.get("resilient_parsing"):
                args = ["--help"]
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            refuse(self.program, error)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        ctx.meta[ARGUMENTS] = list(args)
        return super().parse_args(ctx, list(one_by_one(args, self._many)))

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            refuse(self.program, error)


def one_by_one(args: Iterable[str], many: Iterable[str]) -> Iterable[str]:
    """Repeat an option of `many` before each of its words.

    >>> list(one_by_one(["--props", "a=1", "b=2", "--topic", "t"], ["--props"]))
    ['--props', 'a=1', '--props', 'b=2', '--topic', 't']
    """
    option, is_first = None, False
    for arg in args:
        if arg.startswith("-"):
            option, is_first = (arg if arg in many else None), True
        elif option is not None and not is_first:
            yield option
        else:
            is_first = False
        yield arg
