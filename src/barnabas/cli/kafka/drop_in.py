"""Commands with the names of Kafka's own scripts: same options, same lines, same exit codes.

Its one rule: for a script that reads the output, there is no difference from Kafka's tool. Where Kafka's tool ends with a stack
trace, these print its first line and also exit with 1. They have no features of their own: for people, the commands without
`kafka-` in their name are better.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import IO, Any, NoReturn

import click

from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Misunderstood
from barnabas.cli.terminal.repeated_options import repeated_option

KAFKA_VERSION = "4.3.1"
"""The Kafka release with these options and lines."""


class KafkaTool(click.Command):
    """A command that behaves as Kafka's: without arguments it shows its help and fails. A usage error exits with 1."""

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
        whole = [written_out(arg, known) for arg in args]
        option = None if ctx.resilient_parsing else repeated_option(self, ctx, whole)
        if option is not None:
            name = max(option.opts, key=len).lstrip("-")
            self.refuse_repeat(f"Found multiple arguments for option {name}, but you asked for only one")
        return super().parse_args(ctx, whole)

    def refuse_repeat(self, message: str) -> NoReturn:
        """Report that an option was given twice, and exit with 1."""
        raise Terse(message)


def written_out(arg: str, known: Collection[str]) -> str:
    """Complete an abbreviated option if it is unambiguous, as Java's parsers do."""
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
    """A message printed without a prefix, as Kafka's tools do."""

    exit_code = EXIT_FAILED

    def show(self, file: IO[Any] | None = None) -> None:
        click.echo(self.message, file=file, err=file is None)


class KafkaToolGroup(click.Group):
    """A tool with subcommands behind its options, as `kafka-features --bootstrap-server ... describe`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        kwargs["context_settings"] = {"help_option_names": ["-h", "--help"], **(kwargs.get("context_settings") or {})}
        kwargs["no_args_is_help"] = False
        super().__init__(*args, **kwargs)

    def misunderstood(self, error: click.UsageError) -> click.ClickException:
        """Return the exception that reports a usage error."""
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
