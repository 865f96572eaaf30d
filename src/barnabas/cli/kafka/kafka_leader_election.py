"""`barnabas kafka-leader-election`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection import profiles
from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_text import exception_text, hash_order, partition_hash
from barnabas.cli.kafka.java_tool import JavaTool, java_int
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.operations.partitions import Key
from barnabas.operations.reassignments.files import FieldError, duplicates, parse_partitions
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_TIMEOUTS = {"default.api.timeout.ms": "30000", "request.timeout.ms": "15000"}
_TYPES = ("PREFERRED", "UNCLEAN")
_TARGETS = ("topic", "all-topic-partitions", "path-to-json-file")


@click.command("kafka-leader-election", cls=JavaTool, short_help="Elect leaders of partitions as Kafka's script does.")
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--admin.config", "admin_config", metavar="FILE", help="(Deprecated) Same as --command-config.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option(
    "--path-to-json-file", metavar="FILE", help='Partitions: {"partitions": [{"topic": "t", "partition": 1}]}'
)
@click.option("--topic", metavar="TOPIC", help="The topic of a partition.")
@click.option("--partition", metavar="NUMBER", help="The number of the partition.")
@click.option("--all-topic-partitions", is_flag=True, help="All partitions that need an election.")
@click.option("--election-type", metavar="preferred|unclean", help="The kind of election.")
def kafka_leader_election(**values: Any) -> None:
    """Elect leaders of partitions as Kafka's script of this name does. See also: barnabas elect-leaders."""
    _check({name.replace("_", "-"): value for name, value in values.items()})
    election_type = values["election_type"].upper()
    if election_type not in _TYPES:
        _refuse(f"Cannot parse argument '{values['election_type']}' of option election-type")
    output = Output()
    try:
        keys = _partitions(values)
        config = values["command_config"]
        if values["admin_config"] is not None:
            config = values["admin_config"]
            output.write(
                "Option --admin.config has been deprecated and will be removed in a future version. Use --command-config "
                "instead."
            )
        connection = profiles.resolve(
            {},
            bootstrap_servers=values["bootstrap_server"],
            command_config=None if config is None else Path(config),
        )
        patience = {name: profiles.Setting(value, "kafka-leader-election") for name, value in _TIMEOUTS.items()}
        connection = profiles.Connection({**patience, **connection.settings})
        results = run(connection, lambda cluster: _elect(cluster, election_type, keys))
    except (ValueError, OSError) as error:
        unread = f"java.io.IOException: Unable to read file {getattr(error, 'filename', '')}"
        _end(output, unread if isinstance(error, OSError) else str(error))
    except Failure as failure:
        _fail(output, failure)
    _show(output, election_type, results)


def _check(values: dict[str, Any]) -> None:
    given = [name for name, value in values.items() if value is not None and value is not False]
    if missing := [name for name in ("bootstrap-server", "election-type") if name not in given]:
        _refuse(f"Missing required option(s): {', '.join(missing)}")
    if {"admin.config", "admin-config"} & set(given) and "command-config" in given:
        _refuse('Option "[admin.config]" can\'t be used with option "[command-config]"')
    if sum(name in given for name in _TARGETS) != 1:
        _refuse(f"One and only one of the following options is required: {', '.join(_TARGETS)}")
    if "topic" in given and "partition" not in given:
        _refuse("Missing required option(s): partition")
    if "topic" not in given and "partition" in given:
        _refuse("Option partition is only allowed if topic is used")


def _refuse(message: str) -> NoReturn:
    note(message)
    sys.exit(EXIT_FAILED)


def _partitions(values: dict[str, Any]) -> list[Key] | None:
    """Return the named partitions, or None for all. Raises ValueError."""
    if values["topic"] is not None:
        return [(values["topic"], java_int("partition", values["partition"]) or 0)]
    if values["path_to_json_file"] is None:
        return None
    try:
        keys = parse_partitions(Path(values["path_to_json_file"]).read_text(encoding="utf-8"))
    except FieldError as error:
        raise ValueError(f"com.fasterxml.jackson.databind.JsonMappingException: {error}") from None
    if twice := duplicates(keys):
        names = ", ".join(f"{topic}-{index}" for topic, index in hash_order(twice, partition_hash))
        raise ValueError(f"Replica election data contains duplicate partitions: [{names}]")
    return keys


async def _elect(cluster: Cluster, election_type: str, keys: list[Key] | None) -> dict[Key, KafkaError | None]:
    from barnabas.client.admin.elections import Elections, ElectionType

    return await Elections(cluster).elect_leaders(ElectionType[election_type], keys)


def _fail(output: Output, failure: Failure) -> NoReturn:
    """Print the error of the whole request as Kafka's tool does, and exit."""
    from barnabas.client.errors import CallTimeoutError

    cause = failure.__cause__
    said = failure.message
    if isinstance(cause, CallTimeoutError):
        said = "Timeout waiting for election results"
        output.write(said)
    elif isinstance(cause, KafkaError) and cause.code is ErrorCode.CLUSTER_AUTHORIZATION_FAILED:
        said = "Not authorized to perform leader election"
        output.write(said)
    elif isinstance(cause, KafkaError):
        said = f"java.util.concurrent.ExecutionException: {exception_text(cause)}"
    _end(output, said)


def _end(output: Output, message: str) -> NoReturn:
    output.flush()
    _refuse(message)


def _show(output: Output, election_type: str, results: dict[Key, KafkaError | None]) -> None:
    failed: list[tuple[Key, KafkaError]] = []
    elected: list[str] = []
    unneeded: list[str] = []
    for key in hash_order(results, partition_hash):
        error = results[key]
        if error is None:
            elected.append(_name(key))
        elif error.code is ErrorCode.ELECTION_NOT_NEEDED:
            unneeded.append(_name(key))
        else:
            failed.append((key, error))
    if elected:
        output.write(f"Successfully completed leader election ({election_type}) for partitions {', '.join(elected)}")
    if unneeded:
        output.write(f"Valid replica already elected for partitions {', '.join(unneeded)}")
    for key, error in failed:
        output.write(
            f"Error completing leader election ({election_type}) for partition: {_name(key)}: {exception_text(error)}"
        )
    if failed:
        _end(output, f"{len(failed)} replica(s) could not be elected")
    output.flush()


def _name(key: Key) -> str:
    return f"{key[0]}-{key[1]}"
