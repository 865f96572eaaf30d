"""`barnabas kafka-topics`: Kafka's script of this name, with its options and its lines."""

from __future__ import annotations

import base64
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import click

from barnabas.cli.connection.connecting import run
from barnabas.cli.kafka.java_tool import JavaTool, TopicPattern, connection_of, java_int, refuse
from barnabas.cli.kafka.kafka_topics import lines
from barnabas.cli.kafka.kafka_topics.lines import UsageError
from barnabas.cli.terminal.exit_codes import EXIT_FAILED
from barnabas.cli.terminal.failures import Failure
from barnabas.cli.terminal.output import Output, note
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.wire.errors import ErrorCode, KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.wire import Uuid

_FLAG: dict[str, Any] = {"is_flag": True}
_LONGEST_ID, _ID_BYTES = 24, 16


class _TopicsTool(JavaTool):
    def refuse_repeat(self, message: str) -> NoReturn:
        _failed(Output(), None, message, "")


@click.command(
    "kafka-topics", cls=_TopicsTool, short_help="Create, delete, describe or change topics as Kafka's script does."
)
@click.option("--bootstrap-server", metavar="HOST:PORT,...", help="Brokers to connect to.")
@click.option("--command-config", metavar="FILE", help="Properties file with client settings.")
@click.option("--list", **_FLAG, help="List topics.")
@click.option("--create", **_FLAG, help="Create a topic.")
@click.option("--delete", **_FLAG, help="Delete topics.")
@click.option("--alter", **_FLAG, help="Add partitions.")
@click.option("--describe", **_FLAG, help="Show topics with their partitions.")
@click.option("--topic", metavar="TOPIC", help="A topic; a regular expression, except with --create.")
@click.option("--topic-id", metavar="ID", help="The id of a topic to describe.")
@click.option("--config", multiple=True, metavar="NAME=VALUE", help="A setting of the new topic.")
@click.option("--delete-config", multiple=True, metavar="NAME", help="No longer supported.")
@click.option("--partitions", metavar="NUMBER", help="The number of partitions.")
@click.option("--replication-factor", metavar="NUMBER", help="The number of replicas.")
@click.option("--replica-assignment", metavar="ID:ID,...", help="The replicas of each partition.")
@click.option("--under-replicated-partitions", **_FLAG, help="Only partitions with out-of-sync replicas.")
@click.option("--unavailable-partitions", **_FLAG, help="Only partitions without a leader.")
@click.option(
    "--under-min-isr-partitions", **_FLAG, help="Only partitions with fewer in-sync replicas than the minimum."
)
@click.option("--at-min-isr-partitions", **_FLAG, help="Only partitions with exactly the minimum of in-sync replicas.")
@click.option("--topics-with-overrides", **_FLAG, help="Only topics with settings of their own.")
@click.option("--if-exists", **_FLAG, help="Do not fail if the topic does not exist.")
@click.option("--if-not-exists", **_FLAG, help="Do not fail if the topic already exists.")
@click.option("--exclude-internal", **_FLAG, help="Leave out internal topics.")
@click.option(
    "--partition-size-limit-per-response", metavar="NUMBER", help="Maximum number of partitions in one response."
)
@click.pass_context
def kafka_topics(ctx: click.Context, /, **values: Any) -> None:
    """Create, delete, describe or change topics as Kafka's script of this name does. See also: barnabas topics."""
    given = {name.replace("_", "-") for name, value in values.items() if value is not None and value not in (False, ())}
    if "delete-config" in given and len(given & set(lines.ACTIONS)) == 1:
        note(lines.DELETE_CONFIG_IS_GONE)
    output = Output()
    try:
        lines.check(given)
        if {"describe", "if-exists", "topic", "topic-id"} <= given:
            output.write(lines.ONLY_THE_ID)
        connection = connection_of(values["bootstrap_server"], values["command_config"])
    except UsageError as error:
        refuse(ctx, str(error))
    except (ValueError, Failure) as error:
        note(error.message if isinstance(error, Failure) else str(error))
        sys.exit(EXIT_FAILED)
    action = next(action for action in lines.ACTIONS if action in given)
    try:
        _parse(action, values)
        run(connection, lambda cluster: _WORK[action](cluster, output, values, given))
    except Failure as failure:
        _failed(output, failure.__cause__, failure.message, action)
    except ValueError as error:
        _failed(output, error, str(error), action)
    output.flush()


def _failed(output: Output, cause: BaseException | None, message: str, action: str) -> NoReturn:
    from barnabas.client.errors import CallTimeoutError

    if isinstance(cause, KafkaError):
        message = cause.message or cause.code.name
    elif isinstance(cause, CallTimeoutError):
        note(message)
        call = "createTopics" if action == "create" else "listTopics"
        message = f"Timed out waiting for a node assignment. Call: {call}"
    output.write(f"Error while executing topic command : {message}")
    output.flush()
    sys.exit(EXIT_FAILED)


def _parse(action: str, values: dict[str, Any]) -> None:
    """Parse the values that Kafka parses after it has connected and before its first request. Raises ValueError."""
    from barnabas.config import topic

    if action in ("create", "alter"):
        for name in ("partitions", "replication_factor"):
            values[name] = java_int(name.replace("_", "-"), values[name])
        text = values["replica_assignment"]
        values["assignments"] = lines.parse_replica_assignment(text) if text else None
        values["configs"] = lines.parse_configs(values["config"])
        try:
            topic.validate(values["configs"])
        except KafkaError as error:
            raise ValueError(error.message) from None


async def _create(cluster: Cluster, output: Output, values: dict[str, Any], given: set[str]) -> None:
    from barnabas.client.admin.topics import NewTopic, Topics
    from barnabas.operations.topics.changes import wait_until_seen

    name = values["topic"]
    if lines.has_collision_chars(name):
        output.write(lines.COLLISION_WARNING)
    lines.check_numbers(values["partitions"], values["replication_factor"])
    new = NewTopic(name, values["partitions"], values["replication_factor"], values["configs"], values["assignments"])
    result = (await Topics(cluster).create_topics([new]))[name]
    if not isinstance(result, KafkaError):
        await wait_until_seen(cluster, [name], lambda topic: topic is not None)
        output.write(f"Created topic {name}.")
    elif result.code != ErrorCode.TOPIC_ALREADY_EXISTS or "if-not-exists" not in given:
        raise result


async def _list(cluster: Cluster, output: Output, values: dict[str, Any], given: set[str]) -> None:
    output.write("\n".join(await _names(cluster, values["topic"], "exclude-internal" in given)))


async def _alter(cluster: Cluster, output: Output, values: dict[str, Any], given: set[str]) -> None:
    from barnabas.client.admin.topics import NewPartitions, Topics
    from barnabas.operations.topics.changes import wait_until_seen

    assignment = values["assignments"]
    names = await _existing(cluster, values, given)
    topics = Topics(cluster)
    new: dict[str, NewPartitions | int] = {}
    for name, topic in (await topics.describe_topics(names)).items():
        if isinstance(topic, KafkaError):
            raise topic
        added = None if assignment is None else assignment[len(topic.partitions) :]
        new[str(name)] = NewPartitions(values["partitions"], added)
    for result in (await topics.create_partitions(new)).values():
        if result is not None:
            raise result
    count = values["partitions"]
    await wait_until_seen(cluster, new, lambda topic: topic is not None and len(topic.partitions) >= count)


async def _delete(cluster: Cluster, output: Output, values: dict[str, Any], given: set[str]) -> None:
    from barnabas.client.admin.topics import Topics
    from barnabas.operations.topics.changes import wait_until_seen

    names = await _existing(cluster, values, given)
    for result in (await Topics(cluster).delete_topics(names)).values():
        if result is not None:
            raise result
    await wait_until_seen(cluster, names, lambda topic: topic is None)


async def _describe(cluster: Cluster, output: Output, values: dict[str, Any], given: set[str]) -> None:
    from barnabas.client.admin.topics import Topics
    from barnabas.operations.topics.facts import facts_of, look_at

    topic_id = _topic_id(values["topic_id"])
    if topic_id is not None:
        listed = await Topics(cluster).list_topics(include_internal="exclude-internal" not in given)
        if topic_id not in {topic.topic_id for topic in listed}:
            if "if-exists" in given:
                return
            raise ValueError(f"TopicId '{topic_id}' does not exist as expected")
        described = (await Topics(cluster).describe_topics([topic_id]))[topic_id]
        if isinstance(described, KafkaError):
            raise described
        topics = await facts_of(cluster, [described])
    else:
        names = await _existing(cluster, values, given)
        limit = java_int("partition-size-limit-per-response", values["partition_size_limit_per_response"]) or 2000
        found = await look_at(cluster, names, partition_limit=limit)
        for error in found.errors.values():
            raise error
        topics = found.topics
    by_name = {facts.topic.name: facts for facts in topics}
    for name in lines.described_order(by_name):
        settings = by_name[name].settings
        if isinstance(settings, KafkaError):
            raise settings
        for line in lines.describe_lines(by_name[name], given):
            output.write(line)


_WORK = {"list": _list, "create": _create, "alter": _alter, "delete": _delete, "describe": _describe}


async def _names(cluster: Cluster, pattern: str | None, exclude_internal: bool) -> list[str]:
    from barnabas.client.admin.topics import Topics

    listed = await Topics(cluster).list_topics(include_internal=not exclude_internal)
    fits = TopicPattern(pattern).fits if pattern is not None else lambda name: True
    return [
        topic.name for topic in listed if fits(topic.name) and not (exclude_internal and topic.name in INTERNAL_TOPICS)
    ]


async def _existing(cluster: Cluster, values: dict[str, Any], given: set[str]) -> list[str]:
    names = await _names(cluster, values["topic"], "exclude-internal" in given)
    if not names and values["topic"] and "if-exists" not in given:
        raise ValueError(f"Topic '{values['topic']}' does not exist as expected")
    return names


def _topic_id(text: str | None) -> Uuid | None:
    from barnabas.wire import Uuid

    if text is None:
        return None
    if len(text) > _LONGEST_ID:
        raise ValueError(f"Input string with prefix `{text[:_LONGEST_ID]}` is too long to be decoded as a base64 UUID")
    try:
        found = base64.urlsafe_b64decode(text.rstrip("=") + "==")
    except ValueError:
        raise ValueError(f"Input string `{text}` is not base64") from None
    if len(found) != _ID_BYTES:
        raise ValueError(
            f"Input string `{text}` decoded as {len(found)} bytes, which is not equal to the expected 16 bytes of a "
            "base64-encoded UUID"
        )
    return Uuid(found) if any(found) else None
