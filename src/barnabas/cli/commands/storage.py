"""`barnabas storage`: format the directories of a node and show their state; the commands are those of kafka-storage."""

from __future__ import annotations

import click

from barnabas.cli.kafka.kafka_storage.command import kafka_storage


@click.group(commands=kafka_storage.commands, short_help="Format the directories of a node.")
def storage() -> None:
    """Format the directories of a node, and show their state: the same options, output and files as kafka-storage.

    \b
    Examples:
      barnabas storage format -t "$(barnabas storage random-uuid)" -c server.properties --standalone
      barnabas storage info -c server.properties
      barnabas storage version-mapping --release-version 4.0
    """
