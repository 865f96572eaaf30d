"""`barnabas kafka-get-offsets`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.drop_in import Terse
from barnabas.cli.kafka.java_text import exception_text
from barnabas.cli.kafka.java_tool import JavaTool, TopicPattern, connection_of, refuse
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.admin.records import ListedOffset
    from barnabas.client.cluster import Cluster
    from barnabas.client.records import TopicPartition

_PREFIX = "Error occurred: "
_SPECS = ("latest", "earliest", "max-timestamp", "earliest-local", "latest-tiered", "earliest-pending-upload")
_CHOICES = " / ".join(f"-{number} or {name}" for number, name in enumerate(_SPECS, 1))
_RULE = re.compile("([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
_MAX_INT32 = 2**31 - 1


class _Rule(NamedTuple):
    """A selection of topics and of their partitions."""

    topics: TopicPattern
    allows: Callable[[int], bool]


class _GetOffsetsTool(JavaTool):
    def refuse_repeat(self, message: str) -> NoReturn:
        raise Terse(_PREFIX + message)


@click.command(
    "kafka-get-offsets",
    cls=_GetOffsetsTool,
    error_prefix=_PREFIX,
    short_help="Get offsets of partitions as Kafka's script does.",
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--topic-partitions", metavar="TOPIC:PARTITIONS,...", help="Topic patterns with ranges of partitions.")
@click.option("--topic", metavar="TOPIC", help="A topic, or a regular expression.")
@click.option("--partitions", metavar="NUMBER,...", help="Partitions.")
@click.option("--time", "time_", default="latest", metavar="TIME", help=f"Milliseconds, or {_CHOICES} [latest].")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--exclude-internal-topics", is_flag=True, help="Leave out internal topics.")
@click.pass_context
def kafka_get_offsets(ctx: click.Context, /, **values: Any) -> None:
    """Get offsets of partitions as Kafka's script of this name does. See also: barnabas offsets."""
    bootstrap_server = values["bootstrap_server"]
    if bootstrap_server is None:
        refuse(ctx, 'Missing required argument "[bootstrap-server]"')
    if not all(re.search(r":\d+$", address.strip()) for address in bootstrap_server.split(",")):
        refuse(ctx, "Please provide valid host:port like host1:9091,host2:9092\n")
    try:
        if values["topic_partitions"] is not None and not values["topic"] is values["partitions"] is None:
            raise ValueError("--topic-partitions cannot be used with --topic or --partitions")
        spec = _parse_spec(values["time_"])
        rules = _rules(values["topic_partitions"], values["topic"], values["partitions"])
        connection = connection_of(bootstrap_server, values["command_config"])
        found = run(connection, lambda cluster: _look(cluster, rules, spec, values["exclude_internal_topics"]))
    except Failure as failure:
        _failed(failure.__cause__.message if isinstance(failure.__cause__, KafkaError) else failure.message)
    except ValueError as error:
        _failed(str(error))
    output = Output()
    for each, result in sorted(found.items(), key=lambda item: str(item[0])):
        if isinstance(result, KafkaError):
            note(f"Skip getting offsets for topic-partition {each} due to error: {exception_text(result)}")
        elif result.offset >= 0:
            output.write(f"{each.topic}:{each.partition}:{result.offset}")
    output.flush()


def _failed(message: str | None) -> NoReturn:
    note(f"{_PREFIX}{message}")
    sys.exit(EXIT_FAILED)


def _parse_spec(text: str) -> int:
    if text in _SPECS:
        return -1 - _SPECS.index(text)
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise ValueError(f"Malformed time argument {text}. Please use {_CHOICES}, or a specified long format timestamp")
    return int(text)


def _rules(topic_partitions: str | None, topic: str | None, partitions: str | None) -> list[_Rule]:
    if topic_partitions is not None:
        return [_parse_rule(text) for text in topic_partitions.split(",")]
    numbers: set[int] = set()
    if partitions:
        if not all(re.fullmatch(r"[+-]?\d+", text, re.ASCII) for text in partitions.split(",")):
            raise ValueError(
                f"--partitions expects a comma separated list of numeric partition ids, but received: {partitions}"
            )
        numbers = {int(text) for text in partitions.split(",")}
    return [_Rule(TopicPattern(".*" if topic is None else topic), lambda number: not numbers or number in numbers)]


def _parse_rule(text: str) -> _Rule:
    found = _RULE.fullmatch(text)
    if found is None:
        raise ValueError(f"org.apache.kafka.server.util.TerseException: Invalid rule specification: {text}")
    name, one, first, end = found.groups()
    topics = TopicPattern(name or ".*")
    if one:
        return _Rule(topics, lambda number: number == int(one))
    return _Rule(topics, lambda number: int(first or 0) <= number < int(end or _MAX_INT32))


async def _look(
    cluster: Cluster, rules: Iterable[_Rule], spec: int, exclude_internal: bool
) -> dict[TopicPartition, ListedOffset | KafkaError]:
    from barnabas.client.admin.records import Records
    from barnabas.client.records import TopicPartition

    partitions = [
        TopicPartition(name, number)
        for name, topic in (await cluster.metadata(None)).topics.items()
        if not (exclude_internal and topic.is_internal)
        for number in topic.partitions
        if any(rule.topics.fits(name) and rule.allows(number) for rule in rules)
    ]
    if not partitions:
        raise ValueError("Could not match any topic-partitions with the specified filters")
    return await Records(cluster).list_offsets(dict.fromkeys(partitions, spec))
