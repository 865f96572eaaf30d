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
    name: Entry(f"barnabas.cli.commands.{name.replace('-', '_')}:{name.replace('-', '_')}", line)
    for name, line in {
        "serve": "Run a node: a broker, a controller or both.",
        "storage": "Format the directories of a node.",
        "topics": "List, describe, create, alter and delete topics.",
        "records": "Produce, consume and delete records.",
        "offsets": "Where partitions begin and end, and what was written when.",
        "configs": "Show, change, compare and roll back settings.",
        "acls": "Show, explain, test, audit and change who may do what.",
        "users": "SCRAM credentials of users.",
        "quotas": "Quotas of users, clients and addresses.",
        "groups": "Groups of consumers: members, lag, offsets.",
        "transactions": "Transactions: find, describe and abort them.",
        "producers": "Who writes to a partition.",
        "cluster": "The cluster: brokers, features, whether one can be stopped.",
        "quorum": "Health and voters of the metadata quorum.",
        "log-dirs": "Disks of brokers, and moving replicas between them.",
        "reassign": "Move replicas between brokers: plan, run, watch, cancel.",
        "elect-leaders": "Make preferred, or any, replicas leaders.",
        "plan": "What would change to make the cluster as a file declares it.",
        "apply": "Make the cluster as a file declares it.",
        "export": "Write the cluster's present state as such a file.",
        "raw": "Send any request as JSON, see the response.",
        "decode": "Show bytes of the Kafka protocol as JSON.",
        "dump": "Show what is in segments, indexes, snapshots, checkpoints.",
        "metadata": "Browse and compare the metadata of a cluster.",
        "completion": "Print the completion script of a shell.",
        "kafka-topics": "As Kafka's script: topics.",
        "kafka-configs": "As Kafka's script: settings, users, quotas.",
        "kafka-acls": "As Kafka's script: ACLs.",
        "kafka-reassign-partitions": "As Kafka's script: reassignments.",
        "kafka-leader-election": "As Kafka's script: leader election.",
        "kafka-log-dirs": "As Kafka's script: disks of brokers.",
        "kafka-metadata-quorum": "As Kafka's script: the metadata quorum.",
        "kafka-consumer-groups": "As Kafka's script: groups of consumers.",
        "kafka-delete-records": "As Kafka's script: delete records.",
        "kafka-get-offsets": "As Kafka's script: offsets.",
        "kafka-features": "As Kafka's script: feature levels.",
        "kafka-transactions": "As Kafka's script: transactions.",
        "kafka-storage": "As Kafka's script: format directories.",
        "kafka-dump-log": "As Kafka's script: dump segments, indexes, snapshots.",
        "kafka-broker-api-versions": "As Kafka's script: versions of APIs.",
        "kafka-console-producer": "As Kafka's script: lines to records.",
        "kafka-console-consumer": "As Kafka's script: records to lines.",
    }.items()
}
"""Each is in the module of its name."""


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
