"""Commands with the names of Kafka's own scripts: same options, same lines, same exit codes.

Its one rule: a script that calls Kafka's tool cannot tell the difference in what it reads. Where Kafka's tool ends with a
traceback, these say the same in a line, and end with 1 as well. Beside the options there is nothing new here: for people, the
commands without `kafka-` in their name are the better ones.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import IO, Any

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Misunderstood

KAFKA_VERSION = "4.3.1"
"""The release whose options and lines these are."""


class KafkaTool(click.Command):
    """A command that behaves as Kafka's: without arguments it shows its help and fails; what it does not understand is 1."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"help_option_names": ["--help"], **(kwargs.get("context_settings") or {})}
        super().__init__(*args, **kwargs)
        self.params.append(
            click.Option(["--version"], is_flag=True, is_eager=True, expose_value=False, callback=_show_version)
        )

    def make_context(
        self, info_name: str | None, args: list[str], parent: click.Context | None = None, **extra: Any
    ) -> click.Context:
        if not args and not extra.get("resilient_parsing"):
            ctx = click.Context(self, parent=parent, info_name=info_name)
            click.echo(ctx.get_help(), err=True)
            raise click.exceptions.Exit(EXIT_FAILED)
        try:
            return super().make_context(info_name, args, parent, **extra)
        except click.UsageError as error:
            raise Misunderstood.of(error) from None

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        known = {*ctx.help_option_names, *(name for param in self.params for name in param.opts)}
        return super().parse_args(ctx, [written_out(arg, known) for arg in args])


def written_out(arg: str, known: Collection[str]) -> str:
    """An option of which only the beginning was given, as Java's parsers take it when no other begins so."""
    name, sign, value = arg.partition("=")
    if not name.startswith("--") or name in known:
        return arg
    fitting = [option for option in known if option.startswith(name)]
    return f"{fitting[0]}{sign}{value}" if len(fitting) == 1 and name != "--" else arg


def _show_version(ctx: click.Context, param: click.Parameter, value: bool) -> None:
    if value:
        click.echo(KAFKA_VERSION)
        ctx.exit()


class Terse(click.ClickException):
    """Printed as it is: Kafka's tools put nothing before their messages."""

    exit_code = EXIT_FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


class KafkaToolGroup(click.Group):
    """A tool with commands of its own behind its options, as `kafka-features --bootstrap-server ... describe`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"], **(kwargs.get("context_settings") or {})}
        kwargs["no_args_is_help"] = False
        super().__init__(*args, **kwargs)

    def misunderstood(self, error: click.UsageError) -> click.ClickException:
        """How what was not understood is told."""
        return Misunderstood.of(error)

    def make_context(self, *args: Any, **kwargs: Any) -> click.Context:
        try:
            return super().make_context(*args, **kwargs)
        except click.UsageError as error:
            raise self.misunderstood(error) from None

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except click.UsageError as error:
            raise self.misunderstood(error) from None
