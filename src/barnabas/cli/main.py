"""The command `barnabas`: a group whose commands are imported when they run.

Its one rule: help, version and completion of command names import no command, so that they answer at once. A command's
module says what it does; the table here only how it is found and the one line that lists it.
"""

from __future__ import annotations

import difflib
from importlib import import_module
from typing import NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from barnabas import __version__


class Entry(NamedTuple):
    """Where a command is, and what it does in one line."""

    target: str
    help: str


COMMANDS = {
    "serve": Entry("barnabas.cli.commands.serve:serve", "Run a node: a broker, a controller or both."),
    "storage": Entry("barnabas.cli.commands.storage:storage", "Format the directories of a node."),
    "decode": Entry("barnabas.cli.commands.decode:decode", "Show bytes of the Kafka protocol as JSON."),
    "dump": Entry("barnabas.cli.commands.dump:dump", "Show what is in segments, indexes, snapshots, checkpoints."),
    "metadata": Entry("barnabas.cli.commands.metadata:metadata", "Browse and compare the metadata of a cluster."),
    "kafka-dump-log": Entry(
        "barnabas.cli.commands.kafka_dump_log:kafka_dump_log", "As Kafka's script: dump segments, indexes, snapshots."
    ),
    "completion": Entry("barnabas.cli.commands.completion:completion", "Print the completion script of a shell."),
}


class LazyGroup(click.Group):
    """Commands by name, from the table."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        return cast(click.Command, getattr(import_module(module), name))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            close = difflib.get_close_matches(name, COMMANDS, 1)
            ctx.fail(f"There is no command {name!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, entry.help) for name, entry in COMMANDS.items()])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        names = [CompletionItem(name, help=e.help) for name, e in COMMANDS.items() if name.startswith(incomplete)]
        return names + click.Command.shell_complete(self, ctx, incomplete)


@click.group(cls=LazyGroup, context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="barnabas", message="%(prog)s %(version)s")
def main() -> None:
    """A Kafka-compatible broker and control plane.

    \b
    Examples:
      barnabas serve                                        start a node
      barnabas decode ApiVersionsRequest 3 036d65023100     bytes of a message, as JSON
      barnabas decode --request --file request.bin          a request with its header
    """
