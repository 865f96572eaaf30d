"""The command `barnabas`: a group whose commands are imported when they run.

Its one rule: help, version and completion of command names import no command, so that they answer at once. A command's
module says what it does; the table here only how it is found and the one line that lists it.
"""

from __future__ import annotations

import gc
from importlib import import_module
from typing import NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from barnabas import __version__


class Entry(NamedTuple):
    """Where a command is, and what it does in one line."""

    target: str
    help: str


_KAFKA = "kafka-"
_IN_FOLDERS = {
    "kafka-acls",
    "kafka-configs",
    "kafka-consumer-groups",
    "kafka-dump-log",
    "kafka-metadata-quorum",
    "kafka-reassign-partitions",
    "kafka-storage",
    "kafka-topics",
}
"""Kafka's scripts that take more than one module: the options are in `command` of their folder."""


def _entry(name: str, line: str) -> Entry:
    """A command lives in the module of its name: in `kafka/` if Kafka has a script of that name, else in `commands/`."""
    function = name.replace("-", "_")
    shelf = "kafka" if name.startswith(_KAFKA) else "commands"
    module = f"{function}.command" if name in _IN_FOLDERS else function
    return Entry(f"barnabas.cli.{shelf}.{module}:{function}", line)


COMMANDS = {
    name: _entry(name, line)
    for name, line in {
        "serve": "Run a node: a broker, a controller or both.",
        "demo": "Run a node with a small shop in it, and report on it.",
        "storage": "Format the directories of a node.",
        "topics": "List, describe, create, alter and delete topics.",
        "records": "Produce, consume and delete records.",
        "offsets": "Where partitions begin and end, what was written when.",
        "configs": "Show, change, compare and roll back settings.",
        "acls": "Show, explain, test, audit and change who may do what.",
        "users": "SCRAM credentials of users.",
        "quotas": "Quotas of users, clients and addresses.",
        "groups": "Groups of consumers: members, lag, offsets.",
        "transactions": "Transactions: find, describe and abort them.",
        "producers": "Who writes to a partition.",
        "cluster": "Brokers, features, whether a broker can be stopped.",
        "quorum": "Health and voters of the metadata quorum.",
        "log-dirs": "Disks of brokers, and moving replicas between them.",
        "reassign": "Move replicas between brokers: plan, run, watch, cancel.",
        "elect-leaders": "Make preferred, or any, replicas leaders.",
        "plan": "What would change to make a cluster as declared.",
        "apply": "Make a cluster as a file declares it.",
        "export": "Write the cluster's present state as such a file.",
        "raw": "Send any request as JSON, see the response.",
        "decode": "Show bytes of the Kafka protocol as JSON.",
        "dump": "Show what is in segments, indexes, snapshots, checkpoints.",
        "metadata": "Browse and compare the metadata of a cluster.",
        "lake": "What ever happened to clusters, as tables of Spark.",
        "completion": "Print the completion script of a shell.",
        "kafka-topics": "Topics.",
        "kafka-configs": "Settings, users, quotas.",
        "kafka-acls": "ACLs.",
        "kafka-reassign-partitions": "Reassignments.",
        "kafka-leader-election": "Leader election.",
        "kafka-log-dirs": "Disks of brokers.",
        "kafka-metadata-quorum": "The metadata quorum.",
        "kafka-consumer-groups": "Groups of consumers.",
        "kafka-delete-records": "Delete records.",
        "kafka-get-offsets": "Offsets.",
        "kafka-features": "Feature levels.",
        "kafka-transactions": "Transactions.",
        "kafka-storage": "Format directories.",
        "kafka-dump-log": "Dump segments, indexes, snapshots.",
        "kafka-broker-api-versions": "Versions of APIs.",
        "kafka-console-producer": "Lines to records.",
        "kafka-console-consumer": "Records to lines.",
    }.items()
}

_OBJECTS_PER_COLLECTION = 50_000


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
            from difflib import get_close_matches  # for mistakes alone

            close = get_close_matches(name, COMMANDS, 1)
            ctx.fail(f"There is no command {name!r}." + (f" Did you mean {close[0]!r}?" if close else ""))
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(n, entry.help) for n, entry in COMMANDS.items() if not n.startswith(_KAFKA)])
        with formatter.section("With the options and lines of Kafka's own scripts"):
            formatter.write_dl([(n, entry.help) for n, entry in COMMANDS.items() if n.startswith(_KAFKA)])

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
      barnabas topics create orders --partitions 12
      barnabas groups describe billing                      members, offsets and lag
      barnabas plan -f cluster.yaml                         what differs from what is declared
      barnabas decode ApiVersionsRequest 3 036d65023100     bytes of a message, as JSON
    """


def run() -> None:
    """The command as a process of its own."""
    # What a command imports makes many objects and no garbage: looking for some takes a fifth of its start.
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    main(prog_name="barnabas")
