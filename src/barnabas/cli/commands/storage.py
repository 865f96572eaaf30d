"""`barnabas storage`: format the log dirs of a node and show their state, with the commands of kafka-storage."""

from __future__ import annotations

import click

from barnabas.cli.kafka.kafka_storage.command import kafka_storage
from barnabas.cli.terminal.command_groups import CommandGroup


@click.group(
    cls=CommandGroup, commands=kafka_storage.commands, short_help="Format the log dirs of a node, and show their state."
)
def storage() -> None:
    """Format the log dirs of a node, and show their state. Options, output and files are those of kafka-storage.

    \b
    Examples:
      barnabas storage format -t "$(barnabas storage random-uuid)" -c server.properties --standalone
      barnabas storage info -c server.properties
      barnabas storage version-mapping --release-version 4.0
    """
