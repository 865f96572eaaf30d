"""The command `barnabas`: a group that imports a command only when it runs.

Its one rule: help, version and completion of command names import no command, so that they are fast. The table here has the
one-line help of each command; the rest of the help is in the command's module.
"""

from __future__ import annotations

import errno
import gc
import io
import os
import sys
from importlib import import_module
from typing import NamedTuple, cast

import click
from click.shell_completion import CompletionItem

from barnabas import __version__
from barnabas.cli.terminal.command_groups import CommandGroup, fail_unknown_command, given_before, option_of
from barnabas.cli.terminal.repeated_options import refuse_repeats


class Entry(NamedTuple):
    """The module and function of a command, and its one-line help."""

    target: str
    help: str


_KAFKA = "kafka-"
_NO_ROOM = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}  # of a file that standard output is redirected to
_IN_FOLDERS = {
    "kafka-acls",
    "kafka-configs",
    "kafka-consumer-groups",
    "kafka-dump-log",
    "kafka-metadata-quorum",
    "kafka-reassign-partitions",
    "kafka-share-groups",
    "kafka-storage",
    "kafka-streams-groups",
    "kafka-topics",
}
"""Drop-ins that are packages of several modules; the click command is in their module `command`."""


def _entry(name: str, line: str) -> Entry:
    """Locate a command by its name: in `kafka/` if its name starts with kafka-, else in `commands/`."""
    function = name.replace("-", "_")
    shelf = "kafka" if name.startswith(_KAFKA) else "commands"
    module = f"{function}.command" if name in _IN_FOLDERS else function
    return Entry(f"barnabas.cli.{shelf}.{module}:{function}", line)


COMMANDS = {
    name: _entry(name, line)
    for name, line in {
        "serve": "Run a node: a broker, a controller or both.",
        "demo": "Run a node with example data, and write a report on it.",
        "console": "Show clusters in a browser.",
        "doctor": "Check settings, log dirs and clusters, and say what to do.",
        "storage": "Format the log dirs of a node, and show their state.",
        "topics": "List, describe, create, alter and delete topics.",
        "records": "Produce, consume and delete records.",
        "offsets": "Show offsets of partitions, and find offsets by time.",
        "configs": "Show, change, compare and roll back settings.",
        "acls": "List, explain, test, audit and change ACLs.",
        "users": "List and change SCRAM credentials of users.",
        "security": "Create the files of a node with TLS, logins and ACLs.",
        "quotas": "List and change quotas of users, client ids and IP addresses.",
        "groups": "Show groups and their lag; reset and delete offsets.",
        "transactions": "List, describe and abort transactions; find hanging ones.",
        "producers": "List the producers of partitions.",
        "cluster": "Show nodes and features; check if a broker can be stopped.",
        "quorum": "Show the health of the metadata quorum; change its voters.",
        "log-dirs": "Show log dirs of brokers, and move replicas between them.",
        "reassign": "Move replicas between brokers: plan, run, watch and cancel.",
        "elect-leaders": "Trigger preferred or unclean leader elections.",
        "rehearse": "Show what would become of a cluster if something happened.",
        "plan": "Show how a cluster differs from what a file declares.",
        "apply": "Change a cluster to what a file declares.",
        "export": "Write the state of a cluster as a file for plan and apply.",
        "raw": "Send any request as JSON, and show the response.",
        "decode": "Decode bytes of the Kafka protocol as JSON.",
        "dump": "Show segments, indexes, snapshots and checkpoints of logs.",
        "metadata": "Browse and compare the metadata of a cluster.",
        "lake": "Query the history of clusters with Spark.",
        "completion": "Print the completion script for a shell.",
        "kafka-tools": "Install drop-ins under the names of Kafka's scripts.",
        "kafka-topics": "Topics.",
        "kafka-configs": "Settings, users and quotas.",
        "kafka-acls": "ACLs.",
        "kafka-delegation-tokens": "Delegation tokens.",
        "kafka-reassign-partitions": "Reassignments of partitions.",
        "kafka-leader-election": "Leader elections.",
        "kafka-log-dirs": "Log dirs of brokers.",
        "kafka-metadata-quorum": "The metadata quorum.",
        "kafka-cluster": "Id and endpoints of a cluster.",
        "kafka-groups": "Groups of all types.",
        "kafka-consumer-groups": "Consumer groups.",
        "kafka-share-groups": "Share groups.",
        "kafka-streams-groups": "Streams groups.",
        "kafka-delete-records": "Delete records.",
        "kafka-get-offsets": "Offsets of partitions.",
        "kafka-features": "Feature levels.",
        "kafka-transactions": "Transactions.",
        "kafka-server-start": "Start a node.",
        "kafka-storage": "Format log dirs.",
        "kafka-dump-log": "Dump segments, indexes and snapshots.",
        "kafka-broker-api-versions": "API versions of brokers.",
        "kafka-client-metrics": "Subscriptions to metrics of clients.",
        "kafka-console-producer": "Produce lines as records.",
        "kafka-console-consumer": "Print records as lines.",
        "kafka-console-share-consumer": "Print records as lines, as a share group.",
        "kafka-producer-perf-test": "Measure a producer.",
        "kafka-consumer-perf-test": "Measure a consumer.",
        "kafka-e2e-latency": "Measure the time from a producer to a consumer.",
    }.items()
}

DROP_INS = [name for name in COMMANDS if name.startswith(_KAFKA) and name != "kafka-tools"]
"""Commands that replace a script of Kafka."""

_OBJECTS_PER_COLLECTION = 50_000


class LazyGroup(CommandGroup):
    """The group of commands in `COMMANDS`; suggests a similar name for an unknown one."""

    shows_shared_options = True

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        entry = COMMANDS.get(cmd_name)
        if entry is None:
            return None
        module, _, name = entry.target.partition(":")
        command = cast(click.Command, getattr(import_module(module), name))
        return command if cmd_name in DROP_INS else refuse_repeats(command)

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = args[0]
        if name not in COMMANDS and not name.startswith("-") and not ctx.resilient_parsing:
            from barnabas.cli.kafka.without_drop_in import WITHOUT_DROP_IN  # needed only for unknown names

            if script := WITHOUT_DROP_IN.get(name.removesuffix(".sh")):
                ctx.fail(f"There is no drop-in for {name}: {script.reason}. Use: {script.instead}.")
            fail_unknown_command(ctx, name, COMMANDS)
        if name.startswith(_KAFKA) and (given := given_before(ctx)):
            ctx.fail(f"{option_of(given)} must stand after {name}, as for Kafka's script.")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(n, entry.help) for n, entry in COMMANDS.items() if n not in DROP_INS])
        with formatter.section("Drop-in replacements for Kafka's scripts, with the same options and output"):
            formatter.write_dl([(n, COMMANDS[n].help) for n in DROP_INS])

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
      barnabas plan -f cluster.yaml                         how the cluster differs from the file
      barnabas decode ApiVersionsRequest 3 036d65023100     a message as JSON
    """


def run() -> None:
    """Run the command as a process: the entry point."""
    # Imports create many objects and no garbage; collecting during them takes a fifth of the startup time.
    gc.set_threshold(_OBJECTS_PER_COLLECTION)
    _write_all()
    try:
        main(prog_name="barnabas")
    except OSError as error:
        if error.filename is not None or error.errno not in _NO_ROOM:
            raise
        print(f"Error: the output cannot be written: {error.strerror}", file=sys.stderr)
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # what is buffered would fail again at the exit
        sys.exit(1)


def _write_all() -> None:
    """Buffer standard output by lines if PYTHONUNBUFFERED is set.

    An unbuffered file writes once and ignores how much was written: a signal during a write to a full pipe loses the rest.
    """
    out = sys.stdout
    if isinstance(getattr(out, "buffer", None), io.RawIOBase):
        sys.stdout = open(out.fileno(), "w", buffering=1, encoding=out.encoding, errors=out.errors, closefd=False)  # noqa: SIM115
