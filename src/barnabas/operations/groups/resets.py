"""Before offsets of a group are changed: is it empty, what has it committed, which partitions are meant, where would they go.

Its one rule: what stands in the way is a `Failure` that names the group, the topic or the partition.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import click

from barnabas.cli.terminal.failures import ADVICE, Failure, failure_of
from barnabas.cli.terminal.output import note
from barnabas.client.admin.groups import Groups
from barnabas.client.cluster import Cluster
from barnabas.client.records import TopicPartition
from barnabas.operations.groups.positions import logs_of
from barnabas.operations.groups.reset_plan import Log, NoOffsetError, Planned, Reset, Rule, parse_topic, plan
from barnabas.wire.errors import ErrorCode, KafkaError


async def need_empty(cluster: Cluster, group_id: str) -> None:
    """Fails unless the group has no members; one that does not exist has none."""
    found = (await Groups(cluster).describe_consumer_groups([group_id]))[group_id]
    if isinstance(found, KafkaError):
        if found.code != ErrorCode.GROUP_ID_NOT_FOUND:
            raise failure_of(found, f"group {group_id}")
    elif found.members or found.state not in ("Empty", "Dead"):
        count = len(found.members)
        raise Failure(
            f"is {found.state}, with {count} member{'' if count == 1 else 's'}; offsets of a group can be set when it is empty",
            resource=f"group {group_id}",
            advice=ADVICE[ErrorCode.NON_EMPTY_GROUP],
        )


async def committed_offsets(cluster: Cluster, group_id: str) -> dict[TopicPartition, int]:
    found = (await Groups(cluster).list_consumer_group_offsets([group_id]))[group_id]
    if isinstance(found, KafkaError):
        raise failure_of(found, f"group {group_id}")
    return {key: value.offset for key, value in found.items() if not isinstance(value, KafkaError)}


async def named_partitions(cluster: Cluster, topics: Iterable[str]) -> list[TopicPartition]:
    """The partitions that people have named, which exist."""
    named = parse_topics(topics)
    state = await cluster.metadata(named)
    for topic, code in state.errors.items():
        raise failure_of(KafkaError(code), f"topic {topic}")
    found: list[TopicPartition] = []
    for topic, numbers in named.items():
        there = state.topics[topic].partitions
        for number in sorted(there) if numbers is None else numbers:
            if number not in there:
                raise Failure(f"has no partition {number}, only {len(there)}", resource=f"topic {topic}")
            found.append(TopicPartition(topic, number))
    return found


def parse_topics(texts: Iterable[str]) -> dict[str, list[int] | None]:
    """The partitions that are named of each topic; None is all of them.

    >>> parse_topics(["orders:0", "stock", "orders:2,3"])
    {'orders': [0, 2, 3], 'stock': None}
    """
    found: dict[str, list[int] | None] = {}
    for text in texts:
        try:
            topic, numbers = parse_topic(text)
        except ValueError as error:
            raise click.UsageError(f"--topic {error}.") from None
        before = found.get(topic, [])
        found[topic] = None if numbers is None or before is None else [*before, *numbers]
    return found


async def planned_offsets(
    cluster: Cluster,
    wanted: Reset,
    partitions: Iterable[TopicPartition],
    committed: Mapping[TopicPartition, int],
    file: Mapping[TopicPartition, int] | None,
) -> dict[TopicPartition, Planned]:
    """Where the offsets go; what is not as it was asked for is said."""
    found = await logs_of(cluster, partitions, wanted.value if wanted.rule is Rule.TIME else None)
    logs: dict[TopicPartition, Log] = {}
    for each, log in found.items():
        if isinstance(log, KafkaError):
            raise failure_of(log, str(each))
        logs[each] = log
    try:
        planned = plan(wanted, logs, committed, file)
    except NoOffsetError as error:
        raise Failure(str(error), advice="name the topics that have one, or use another rule") from None
    for each, new in planned.items():
        if new.instead_of is not None:
            side = "before the first" if new.instead_of < new.offset else "after the last"
            note(f"{each}: offset {new.instead_of} is {side} that is there; {new.offset} is the nearest")
        elif wanted.rule is Rule.TIME and logs[each].at_time is None:
            note(f"{each}: nothing was written at or after that time; {new.offset} is the end")
    return planned
