"""`barnabas kafka-delete-records`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition


@click.command(
    "kafka-delete-records", cls=JavaTool, short_help="Delete records up to an offset as Kafka's script does."
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option(
    "--offset-json-file",
    metavar="FILE",
    help='Offsets: {"partitions": [{"topic": "foo", "partition": 1, "offset": 1}], "version": 1}',
)
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.pass_context
def kafka_delete_records(
    ctx: click.Context, bootstrap_server: str | None, offset_json_file: str | None, command_config: str | None
) -> None:
    """Delete records up to an offset as Kafka's script of this name does. See also: barnabas records delete."""
    for name, value in (("bootstrap-server", bootstrap_server), ("offset-json-file", offset_json_file)):
        if value is None:
            refuse(ctx, f'Missing required argument "[{name}]"')
    assert bootstrap_server is not None
    assert offset_json_file is not None
    output = Output()
    try:
        connection = connection_of(bootstrap_server, command_config)
        offsets = _parse_offsets(Path(offset_json_file).read_text())
        output.write("Executing records delete operation")
        output.flush()
        results = run(connection, lambda cluster: _delete(cluster, offsets))
    except (Failure, ValueError, OSError) as error:
        unread = offset_json_file if isinstance(error, FileNotFoundError) else str(error)
        note(error.message if isinstance(error, Failure) else unread)
        sys.exit(EXIT_FAILED)
    output.write("Records delete operation completed:")
    for each, result in results.items():
        said = f"error: {exception_text(result)}" if isinstance(result, KafkaError) else f"low_watermark: {result}"
        output.write(f"partition: {each}\t{said}")
    output.flush()


async def _delete(cluster: Cluster, offsets: dict[TopicPartition, int]) -> dict[TopicPartition, int | KafkaError]:
    from barnabas.client.admin.records import Records

    return await Records(cluster).delete_records(offsets)


def _parse_offsets(text: str) -> dict[TopicPartition, int]:
    """Parse the offsets. Raises ValueError with Kafka's message."""
    from barnabas.client.records import TopicPartition
    from barnabas.operations.reassignments.files import field_of, list_of, number_of, object_of, text_of

    try:
        document = json.loads(text)
    except ValueError:
        raise ValueError("The input string is not a valid JSON") from None
    whole = object_of(document)
    version = number_of(whole["version"]) if "version" in whole else 1
    if version != 1:
        raise ValueError(f"Not supported version field value {version}")
    if "partitions" not in whole:
        raise ValueError("Missing partitions field")
    offsets: dict[TopicPartition, int] = {}
    twice: list[str] = []
    for item in list_of(whole["partitions"]):
        row = object_of(item)
        each = TopicPartition(text_of(field_of(row, "topic")), number_of(field_of(row, "partition")))
        offset = number_of(field_of(row, "offset"), "Long")
        if each in offsets and str(each) not in twice:
            twice.append(str(each))
        offsets[each] = offset
    if twice:
        raise ValueError(f"Offset json file contains duplicate topic partitions: {','.join(twice)}")
    return offsets
