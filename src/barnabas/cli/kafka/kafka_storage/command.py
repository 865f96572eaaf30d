"""`barnabas kafka-storage`: Kafka's script of this name. The commands are those of `barnabas storage`, which has its options,
lines and files; only what is not understood ends as it does there."""

from __future__ import annotations

import click

from barnabas.cli.commands.storage import storage
from barnabas.cli.kafka.drop_in import KafkaToolGroup


@click.group(
    "kafka-storage",
    cls=KafkaToolGroup,
    commands=storage.commands,
    short_help="Format directories as Kafka's script does.",
)
def kafka_storage() -> None:
    """Format the directories of a node, and say what they are, as Kafka's script of this name does.

    See also: barnabas storage.
    """
