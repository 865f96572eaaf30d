"""Options that commands share, as decorators: connection and output.

Its one rule: a command receives values, not options. `@output_options` passes `output`, an `Output`; `@connection_options`
passes `connection`, the settings of a client that is not connected yet. Both read profiles and environment variables as
described in `cli.connection.profiles`.

    @topics.command("list")
    @common_options
    def list_(connection: Connection, output: Output) -> None: ...
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click
from click.shell_completion import CompletionItem

from barnabas.cli.connection import profiles
from barnabas.cli.terminal.command_groups import given_before, with_inner
from barnabas.cli.terminal.output import Format, Output
from barnabas.cli.terminal.repeated_options import unique_keys

F = TypeVar("F", bound=Callable[..., Any])

_META = "barnabas.profile"


def output_options(command: F) -> F:
    """Add --output, with BARNABAS_OUTPUT and the profile as defaults; the command receives `output`."""

    @click.option(
        "--output",
        "-o",
        "output_format",
        type=click.Choice([each.value for each in Format]),
        help="Output format: table for people, the others for programs.  [default: table]",
    )
    @click.pass_context
    @functools.wraps(command)
    def wrapped(ctx: click.Context, /, *args: Any, output_format: str | None, **kwargs: Any) -> Any:
        given = output_format or given_before(ctx).get("output_format")
        return ctx.invoke(command, *args, output=Output(_format(ctx, given)), **kwargs)

    return wrapped  # type: ignore[return-value]


def connection_options(command: F) -> F:
    """Add the options that select a cluster; the command receives `connection`."""

    @click.option(
        "--bootstrap-server",
        "-b",
        metavar="HOST:PORT,...",
        help="Brokers for the first connection.  [default: localhost:9092]",
    )
    @click.option(
        "--bootstrap-controller", metavar="HOST:PORT,...", help="Controllers to connect to instead of brokers."
    )
    @click.option(
        "--command-config",
        type=click.Path(exists=True, dir_okay=False, path_type=Path),
        help="Properties file with client settings, as for Kafka's Java clients.",
    )
    @click.option("-X", "given", multiple=True, metavar="KEY=VALUE", help="Client setting; may be repeated.")
    @click.option(
        "--profile",
        shell_complete=_complete_profile,
        metavar="NAME",
        help="Profile in ~/.config/barnabas/config.toml (or $BARNABAS_CONFIG).",
    )
    @click.pass_context
    @functools.wraps(command)
    def wrapped(
        ctx: click.Context,
        /,
        *args: Any,
        bootstrap_server: str | None,
        bootstrap_controller: str | None,
        command_config: Path | None,
        given: tuple[str, ...],
        profile: str | None,
        **kwargs: Any,
    ) -> Any:
        own = {
            "bootstrap_server": bootstrap_server,
            "bootstrap_controller": bootstrap_controller,
            "command_config": command_config,
            "given": given,
            "profile": profile,
        }
        every = with_inner(ctx, given_before(ctx), own)
        file = every.get("command_config")
        connection = profiles.resolve(
            profiles.environment(),
            _profile(ctx, every.get("profile")),
            bootstrap_servers=every.get("bootstrap_server"),
            bootstrap_controllers=every.get("bootstrap_controller"),
            command_config=None if file is None else Path(file),
            given={
                **dict(_pair(ctx, text) for text in given_before(ctx).get("given", ())),
                **unique_keys((_pair(ctx, text) for text in given), "-X"),
            },
        )
        return ctx.invoke(command, *args, connection=connection, **kwargs)

    return wrapped  # type: ignore[return-value]


def common_options(command: F) -> F:
    """Add the options of every command that uses a cluster; the command receives `connection` and `output`."""
    return connection_options(output_options(command))


yes_option = click.option("--yes", "-y", is_flag=True, help="Do not ask for confirmation.")
never_asks_option = click.option(
    "--yes", "-y", is_flag=True, expose_value=False, help="Accepted as by other commands; this one never asks."
)
"""--yes of a command that changes a cluster without a question, so that scripts may pass it to every change."""
dry_run_option = click.option("--dry-run", is_flag=True, help="Show what would be done without doing it.")


def _pair(ctx: click.Context, text: str) -> tuple[str, str]:
    key, sign, value = text.partition("=")
    if not sign or not key:
        raise click.UsageError(f"-X {text}: must be KEY=VALUE.", ctx)
    return key.strip(), value


def _profile(ctx: click.Context, name: str | None) -> profiles.Profile:
    found = profiles.load_profile(profiles.environment(), name)
    ctx.meta[_META] = found
    return found


def _format(ctx: click.Context, given: str | None) -> Format:
    """Return the format of the option, else of BARNABAS_OUTPUT, else of the profile, else TABLE."""
    origin, text = "--output", given
    if text is None:
        origin, text = profiles.OUTPUT_VARIABLE, profiles.environment().get(profiles.OUTPUT_VARIABLE) or None
    if text is None and _META in ctx.meta:
        origin, text = "output of the profile:", ctx.meta[_META].output
    try:
        return Format.TABLE if text is None else Format(text)
    except ValueError:
        known = ", ".join(each.value for each in Format)
        raise click.UsageError(f"{origin} {text!r} is not one of {known}.", ctx) from None


def _complete_profile(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    names = profiles.profile_names(profiles.environment())
    return [CompletionItem(name) for name in names if name.startswith(incomplete)]
