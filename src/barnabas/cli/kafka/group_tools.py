"""What the tools for groups have in common: partitions that are asked for, their logs, and errors as Kafka's tools say them."""

from __future__ import annotations

from collections.abc import Iterable

import click

from barnabas.cli.kafka.java_text import exception_text, hash_order, partition_hash
from barnabas.cli.kafka.kafka_consumer_groups.lines import ToolProblem, parse_topics
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.client.state import ClusterState
from barnabas.operations.groups.positions import logs_of
from barnabas.operations.groups.reset_plan import Log
from barnabas.wire.errors import KafkaError

EXECUTION = "java.util.concurrent.ExecutionException"


def say(text: str) -> None:
    click.echo(text, nl=False)


def say_error(text: str) -> None:
    say(f"\nError: {text}\n")


async def metadata_of(cluster: Cluster, topics: Iterable[str], *, is_wrapped: bool = True) -> ClusterState:
    """Return the metadata of existing topics. `is_wrapped` selects Kafka's form of the error for a missing one."""
    state = await cluster.metadata(set(topics))
    for code in state.errors.values():
        error = KafkaError(code)
        raise ToolProblem(f"{EXECUTION}: {exception_text(error)}" if is_wrapped else str(error.message))
    return state


async def partitions_named(cluster: Cluster, texts: Iterable[str]) -> list[TopicPartition]:
    """Return the partitions of `TOPIC` or `TOPIC:0,1`."""
    named = parse_topics(texts)
    whole = [topic for topic, numbers in named if numbers is None]
    state = await metadata_of(cluster, whole, is_wrapped=False)
    found = [TopicPartition(topic, number) for topic, numbers in named for number in numbers or ()]
    return found + [TopicPartition(topic, number) for topic in whole for number in state.topics[topic].partitions]


async def partitions_to_delete(
    cluster: Cluster, texts: Iterable[str]
) -> tuple[list[TopicPartition], dict[TopicPartition, str | None]]:
    """Return the partitions of `TOPIC` or `TOPIC:0,1`, and rows with an error for topics that do not exist."""
    named = parse_topics(texts)
    state = await cluster.metadata({topic for topic, numbers in named if numbers is None})
    found = [TopicPartition(topic, number) for topic, numbers in named for number in numbers or ()]
    found += [TopicPartition(topic.name, number) for topic in state.topics.values() for number in topic.partitions]
    return found, {TopicPartition(topic, -1): exception_text(KafkaError(code)) for topic, code in state.errors.items()}


async def check_partitions(cluster: Cluster, partitions: list[TopicPartition]) -> None:
    """Raise ToolProblem if a partition does not exist, or has no leader."""
    state = await metadata_of(cluster, (each.topic for each in partitions))
    for problem, wrong in (
        ("do not exist", [each for each in partitions if state.partition(*each) is None]),
        ("have no leader", [each for each in partitions if state.leader(*each) is None]),
    ):
        if wrong:
            raise ToolProblem(f'The partitions "{",".join(map(str, wrong))}" {problem}')


async def logs_for(
    cluster: Cluster, partitions: Iterable[TopicPartition], time_ms: int | None
) -> dict[TopicPartition, Log]:
    """Return the logs of partitions. Says which of them have no record at or after the time."""
    found = await logs_of(cluster, partitions, time_ms)
    logs: dict[TopicPartition, Log] = {}
    for each in hash_order(found, partition_hash):
        log = found[each]
        if isinstance(log, KafkaError):
            raise ToolProblem(f"{EXECUTION}: {exception_text(log)}")
        if time_ms is not None and log.at_time is None:
            empty = f"Partition {each.partition} from topic {each.topic} is empty"
            say(f"\nWarn: {empty}. Falling back to latest known offset.\n")
        logs[each] = log
    return logs
