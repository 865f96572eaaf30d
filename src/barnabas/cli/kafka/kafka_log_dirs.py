"""`barnabas kafka-log-dirs`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import TYPE_CHECKING, Any, TypeVar

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import exception_name, exception_text, hash_order, partition_hash, string_hash
from barnabas.cli.kafka.java_tool import JavaTool, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.log_dirs import LogDir
    from barnabas.client.cluster import Cluster

T = TypeVar("T")


class _ToolError(Exception):
    """An error that ends the tool with this line."""


@click.command("kafka-log-dirs", cls=JavaTool, short_help="Show the log dirs of brokers as Kafka's script does.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--describe", is_flag=True, help="Show log dirs.")
@click.option("--topic-list", default="", metavar="TOPIC,...", help="Only these topics.")
@click.option("--broker-list", default="", metavar="ID,...", help="Only these brokers.")
@click.pass_context
def kafka_log_dirs(
    ctx: click.Context,
    bootstrap_server: str | None,
    command_config: str | None,
    describe: bool,
    topic_list: str,
    broker_list: str,
) -> None:
    """Show the log dirs of brokers as Kafka's script of this name does. See also: barnabas log-dirs."""
    if bootstrap_server is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    if not describe:
        refuse(ctx, 'Missing required argument "[describe]"')
    output = Output()
    topics = {each for each in topic_list.split(",") if each}
    try:
        wanted = [_number(each) for each in broker_list.split(",") if each]
        connection = connection_of(bootstrap_server, command_config)
        run(connection, lambda cluster: _describe(cluster, wanted, topics, output))
    except Failure as failure:
        cause = failure.__cause__
        output.flush()
        note(exception_text(cause) if isinstance(cause, KafkaError) else failure.message)
        sys.exit(EXIT_FAILED)
    except (_ToolError, OSError) as error:
        output.flush()
        note(str(error))
        sys.exit(EXIT_FAILED)
    output.flush()


def _number(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _ToolError(f'For input string: "{text}"') from None


async def _describe(cluster: Cluster, wanted: Collection[int], topics: Collection[str], output: Output) -> None:
    from barnabas.client.admin.log_dirs import LogDirs
    from barnabas.client.admin.part import checked

    there = hash_order(cluster.state.nodes, int)
    asked = hash_order(wanted or there, int)
    if missing := [each for each in asked if each not in there]:
        raise _ToolError(
            f"ERROR: The given brokers do not exist from --broker-list: {_ids(missing)}. "
            f"Current existent brokers: {_ids(there)}"
        )
    output.write("Querying brokers for log directories information")
    found = checked(await LogDirs(cluster).describe_log_dirs(asked))
    output.write(f"Received log directory information from brokers {_ids(asked)}")
    brokers = [
        _in_order({"broker": each, "logDirs": [_log_dir(dir_, topics) for dir_ in _dirs(found[each])]})
        for each in _small_order(found, int)
    ]
    output.write(json.dumps(_in_order({"version": 1, "brokers": brokers}), separators=(",", ":"), ensure_ascii=False))


def _dirs(found: Mapping[str, LogDir]) -> list[LogDir]:
    return [found[path] for path in _small_order(found, string_hash)]


def _log_dir(log_dir: LogDir, topics: Collection[str]) -> dict[str, Any]:
    replicas = {(each.topic, each.partition): each for each in log_dir.replicas}
    first = hash_order(replicas, partition_hash)  # Kafka's client has one hash map, and its tool another
    shown = hash_order([key for key in first if not topics or key[0] in topics], partition_hash)
    rows = [
        _in_order(
            {
                "partition": f"{each.topic}-{each.partition}",
                "size": each.size,
                "offsetLag": each.offset_lag,
                "isFuture": each.is_future,
            }
        )
        for each in map(replicas.__getitem__, shown)
    ]
    error = log_dir.error
    name = None if error is None else f"org.apache.kafka.common.errors.{exception_name(error.code)}"
    return _in_order({"logDir": log_dir.path, "error": name, "partitions": rows})


def _in_order(fields: dict[str, Any]) -> dict[str, Any]:
    """Format the fields in the order of Java's hash maps."""
    return {name: fields[name] for name in hash_order(fields, string_hash)}


def _small_order(keys: Iterable[T], hash_of: Callable[[T], int]) -> list[T]:
    """Return keys as `hash_order` does, for a map whose initial capacity is the number of keys."""
    wanted = list(keys)
    buckets = 1 << max(0, len(wanted) - 1).bit_length()
    if len(wanted) > buckets * 3 / 4:
        buckets *= 2

    def bucket(key: T) -> int:
        number = hash_of(key) & 0xFFFFFFFF
        return (number ^ number >> 16) & (buckets - 1)

    return sorted(wanted, key=bucket)


def _ids(broker_ids: Iterable[int]) -> str:
    return ",".join(map(str, broker_ids))
