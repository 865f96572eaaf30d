"""Groups of commands, such as `topics`: options that are given before the command, and hints for misspelt names.

Its one rule: `-b`, `--profile`, `--output` and the other options that select a cluster or a format may stand before or after
each word of a command. If one is given twice, the one nearest to the end of the line counts. This module imports little,
so that `barnabas --help` is fast; `connection.options` reads the values.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NoReturn

import click

from barnabas.similar_names import similar_names

_META = "barnabas.given_before"
_SETTINGS = "given"
_ADDRESSES = ("bootstrap_server", "bootstrap_controller")
_OPTIONS: tuple[tuple[str, tuple[str, ...], dict[str, Any]], ...] = (
    ("bootstrap_server", ("--bootstrap-server", "-b"), {"metavar": "HOST:PORT,...", "help": "Brokers to connect to."}),
    ("bootstrap_controller", ("--bootstrap-controller",), {"metavar": "HOST:PORT,...", "hidden": True}),
    ("command_config", ("--command-config",), {"type": click.Path(exists=True, dir_okay=False), "hidden": True}),
    (_SETTINGS, ("-X",), {"multiple": True, "metavar": "KEY=VALUE", "hidden": True}),
    ("profile", ("--profile",), {"metavar": "NAME", "help": "Profile in the config file."}),
    (
        "output_format",
        ("--output", "-o"),
        {"metavar": "FORMAT", "help": "Output format: table, json, jsonl, yaml or tsv."},
    ),
)
"""Options that commands share, by the name of their parameter; `connection.options` has the same."""


class CommandGroup(click.Group):
    """A group whose commands share options that may be given before them."""

    shows_shared_options = False

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        for name, declarations, more in _OPTIONS:
            settings = {**more, "hidden": more.get("hidden", False) or not self.shows_shared_options}
            option = click.Option([*declarations, name], expose_value=False, callback=_keep, **settings)
            self.params.append(option)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        if (
            args
            and not args[0].startswith("-")
            and not ctx.resilient_parsing
            and self.get_command(ctx, args[0]) is None
        ):
            fail_unknown_command(ctx, args[0], self.list_commands(ctx))
        name, command, rest = super().resolve_command(ctx, args)
        if command is not None and not isinstance(command, click.Group) and not ctx.resilient_parsing:
            own, before = {param.name for param in command.params}, given_before(ctx)
            if foreign := {given: value for given, value in before.items() if value and given not in own}:
                ctx.fail(f"{option_of(foreign)} is no option of '{ctx.command_path} {name}'.")
        return name, command, rest


def fail_unknown_command(ctx: click.Context, name: str, known: Iterable[str]) -> NoReturn:
    """Raise the usage error of a command that does not exist, with a similar one if there is one."""
    close = similar_names(name, known)
    ctx.fail(f"No such command {name!r}." + (f" Did you mean {close[0]!r}?" if close else ""))


def _keep(ctx: click.Context, param: click.Parameter, value: Any) -> None:
    if value is not None and value != () and param.name is not None:
        ctx.meta.setdefault(_META, {}).setdefault(ctx.command_path, {})[param.name] = value


def given_before(ctx: click.Context) -> dict[str, Any]:
    """Return the shared options that stand before the command, by the name of their parameter."""
    merged: dict[str, Any] = {}
    for given in ctx.meta.get(_META, {}).values():
        merged = with_inner(ctx, merged, given)
    return merged


def with_inner(ctx: click.Context, outer: Mapping[str, Any], inner: Mapping[str, Any]) -> dict[str, Any]:
    """Merge options of two places; `inner` is nearer to the end of the line and wins. Settings of -X are all kept, in order."""
    given = {name: value for name, value in inner.items() if value is not None and value != ()}
    addresses = [name for name in _ADDRESSES if name in given]
    if len(addresses) > 1:
        raise click.UsageError("--bootstrap-server and --bootstrap-controller cannot both be given.", ctx)
    kept = {name: value for name, value in outer.items() if not (addresses and name in _ADDRESSES)}
    settings = (*kept.get(_SETTINGS, ()), *given.get(_SETTINGS, ()))
    return {**kept, **given, _SETTINGS: settings}


def option_of(given: Mapping[str, Any]) -> str:
    """Return the first of these options as it is written on the command line."""
    return next(declarations[0] for name, declarations, _ in _OPTIONS if given.get(name))
