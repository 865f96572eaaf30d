"""Changes of topics, as the command line makes them: look, say what will be done, ask where it cannot be undone, do it.

Its one rule: with `dry_run` the cluster is asked whether it would, and nothing else. What is shown of the results is for the
commands to say. Where a controller has answered, brokers are given a moment to hear of it, so that the next command sees it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.cli.terminal.changes import announce, confirm
from barnabas.cli.terminal.failures import Failure, failure_of
from barnabas.cli.terminal.output import note
from barnabas.client.admin.configs import AlterConfigOp, AlterConfigOpType, ConfigResource, Configs
from barnabas.client.admin.part import errors
from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, Topics
from barnabas.client.cluster import Cluster
from barnabas.client.reassignment_plan import PlanError, plan
from barnabas.client.state import Topic
from barnabas.operations.topics.facts import look_at
from barnabas.wire import ErrorCode, KafkaError, Uuid

_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1, 1)
_NEVER_COPIED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


async def create(
    cluster: Cluster, new: Sequence[NewTopic], *, if_not_exists: bool, dry_run: bool
) -> dict[str, CreatedTopic | KafkaError]:
    """All of them, or none if the cluster refuses one beforehand: then what was refused."""
    topics = Topics(cluster)
    checks = await topics.create_topics(new, validate_only=True)
    refused = errors(checks)
    if if_not_exists:
        there = [name for name, error in refused.items() if error.code == ErrorCode.TOPIC_ALREADY_EXISTS]
        for name in there:
            note(f"topic {name} is there already")
            del refused[name], checks[name]
    if refused:
        if not dry_run and len(new) > 1:
            note("nothing was created")
        return dict(refused)
    wanted = [topic for topic in new if topic.name in checks]
    announce((_creation(topic, checks[topic.name]) for topic in wanted), dry_run=dry_run)
    if dry_run or not wanted:
        return checks
    results = await topics.create_topics(wanted)
    await wait_until_seen(cluster, results.keys() - errors(results), lambda topic: topic is not None)
    return results


def _creation(topic: NewTopic, check: CreatedTopic | KafkaError) -> str:
    assert not isinstance(check, KafkaError)
    partitions = topic.partitions if check.num_partitions < 0 else check.num_partitions
    replicas = topic.replication_factor if check.replication_factor < 0 else check.replication_factor
    words = [f"partitions: {partitions}", f"replication factor: {replicas}"]
    words += [f"{name}={value}" for name, value in topic.configs.items()]
    return f"create topic {topic.name}, {', '.join(words)}"


async def add_partitions(
    cluster: Cluster,
    names: Sequence[str],
    count: int,
    assignments: Sequence[Sequence[int]] | None,
    *,
    dry_run: bool,
    yes: bool,
) -> dict[str, KafkaError | None]:
    """What became of each topic; if the cluster refuses one beforehand, what was refused."""
    topics = Topics(cluster)
    present = {name: await partition_count(cluster, name) for name in names}
    wanted: dict[str, NewPartitions | int] = {name: NewPartitions(count, assignments) for name in names}
    checks = await topics.create_partitions(wanted, validate_only=True)
    if refused := errors(checks):
        return dict(refused)
    announce((f"add partitions to topic {name}, from {present[name]} to {count}" for name in names), dry_run=dry_run)
    if dry_run:
        return checks
    note("Records of one key go to another partition from then on, and partitions cannot be taken away again.")
    confirm("Add partitions?", yes=yes)
    results = await topics.create_partitions(wanted)
    grown = results.keys() - errors(results)
    await wait_until_seen(cluster, grown, lambda topic: topic is not None and len(topic.partitions) >= count)
    return results


async def partition_count(cluster: Cluster, name: str) -> int:
    """How many a topic has. Raises Failure if it is not there."""
    found = (await Topics(cluster).describe_topics([name]))[name]
    if isinstance(found, KafkaError):
        raise failure_of(found, f"topic {name}")
    return len(found.partitions)


class Move(NamedTuple):
    """The replicas that a partition is to have, and what became of it."""

    replicas: tuple[int, ...]
    error: KafkaError | None


async def change_replication_factor(
    cluster: Cluster, names: Sequence[str], replication_factor: int, *, dry_run: bool, yes: bool
) -> dict[tuple[str, int], Move]:
    """Begin the reassignment of all partitions that have another number of replicas."""
    state = await cluster.metadata(None)
    for name in names:
        if name not in state.topics:
            raise failure_of(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {name}")
    replicas = {
        (name, number): each.replicas
        for name, topic in state.topics.items()
        for number, each in topic.partitions.items()
    }
    others: dict[int, int] = {}
    for (name, _), brokers in replicas.items():
        for broker in brokers if name not in names else ():
            others[broker] = others.get(broker, 0) + 1
    current = {key: brokers for key, brokers in replicas.items() if key[0] in names}
    racks = {node.id: node.rack for node in state.nodes.values()}
    try:
        targets = plan(current, racks, replication_factor=replication_factor, others=others).targets
    except PlanError as error:
        raise Failure(str(error)) from None
    targets = {key: target for key, target in targets.items() if set(target) != set(current[key])}
    announce((_movement(key, current[key], target) for key, target in targets.items()), dry_run=dry_run)
    if not targets:
        note(f"nothing to do: there are {replication_factor} replicas of each partition")
    results: Mapping[tuple[str, int], KafkaError | None] = dict.fromkeys(targets)
    if targets and not dry_run:
        if any(len(target) < len(current[key]) for key, target in targets.items()):
            confirm("Take replicas away?", yes=yes)
        results = await Reassignments(cluster).alter_partition_reassignments(targets)
        note("Replicas are on their way: barnabas reassign status shows how far.")
    return {key: Move(target, results[key]) for key, target in targets.items()}


def _movement(key: tuple[str, int], before: Iterable[int], after: Iterable[int]) -> str:
    was, to = (",".join(map(str, each)) for each in (before, after))
    return f"move {key[0]}-{key[1]} from replicas {was} to {to}"


class Named(NamedTuple):
    """A topic by its name and id, as far as they are known."""

    name: str | None
    topic_id: Uuid | None


async def delete(
    cluster: Cluster,
    topics: Iterable[str | Uuid],
    pattern: re.Pattern[str] | None,
    *,
    if_exists: bool,
    dry_run: bool,
    yes: bool,
) -> dict[Named, KafkaError | None]:
    """What became of each topic: of those that are named, and of those that are not internal and fit the pattern."""
    asked = Topics(cluster)
    wanted = list(topics)
    if pattern is not None:
        wanted += [topic.name for topic in await asked.list_topics() if pattern.fullmatch(topic.name)]
    there, missing = {}, {}
    for topic, found in (await asked.describe_topics(wanted)).items():
        if not isinstance(found, KafkaError):
            there[topic] = Named(found.name, found.topic_id)
            count = len(found.partitions)
            line = f"delete topic {found.name}, {count} partition{'s' * (count != 1)}, with its records"
            announce([line], dry_run=dry_run)
        elif not if_exists or found.code not in _NOT_THERE:
            missing[Named(None, topic) if isinstance(topic, Uuid) else Named(topic, None)] = found
    if not there:
        note("nothing to delete")
    results: dict[str | Uuid, KafkaError | None] = dict.fromkeys(there)
    if there and not dry_run:
        confirm(f"Delete {len(there)} topic{'s' * (len(there) != 1)} for good?", yes=yes)
        results = await asked.delete_topics(there)
        gone = [there[topic].name or "" for topic, error in results.items() if error is None]
        await wait_until_seen(cluster, gone, lambda topic: topic is None)
    return {**{there[topic]: error for topic, error in results.items()}, **missing}


class Copied(NamedTuple):
    """How many settings of a topic were to change, and what became of it."""

    changes: int
    error: KafkaError | None


async def copy_settings(
    cluster: Cluster, source: str, targets: Iterable[str], *, exact: bool, dry_run: bool
) -> dict[str, Copied]:
    """Set for each topic what is set for the source; with `exact`, unset the rest."""
    wanted = list(dict.fromkeys(targets))
    own = await _overrides(cluster, [source, *wanted])
    alterations: dict[ConfigResource, list[AlterConfigOp]] = {}
    counts: dict[str, int] = {}
    for target in wanted:
        changes = differences(own[source], own[target], exact=exact)
        counts[target] = len(changes)
        announce((_setting(target, name, own[target], value) for name, value in changes.items()), dry_run=dry_run)
        if not changes:
            note(f"nothing to change for {target}")
            continue
        alterations[ConfigResource.topic(target)] = [
            AlterConfigOp(name, AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET, value)
            for name, value in changes.items()
        ]
    done = await Configs(cluster).incremental_alter_configs(alterations, validate_only=dry_run)
    return {target: Copied(count, done.get(ConfigResource.topic(target))) for target, count in counts.items()}


async def _overrides(cluster: Cluster, names: Iterable[str]) -> dict[str, dict[str, str | None]]:
    found = await look_at(cluster, names)
    for name, error in found.errors.items():
        raise failure_of(error, f"topic {name}")
    own = {}
    for facts in found.topics:
        assert facts.settings is not None
        if isinstance(facts.settings, KafkaError):
            raise failure_of(facts.settings, f"settings of topic {facts.topic.name}")
        own[facts.topic.name] = facts.settings.overrides()
    return own


def differences(
    source: Mapping[str, str | None], target: Mapping[str, str | None], *, exact: bool
) -> dict[str, str | None]:
    """The value for each setting that is to change, None to unset it.

    >>> differences({"retention.ms": "1", "segment.ms": "2"}, {"segment.ms": "2", "max.message.bytes": "9"}, exact=True)
    {'retention.ms': '1', 'max.message.bytes': None}
    """
    changes = {name: value for name, value in source.items() if target.get(name) != value and name not in _NEVER_COPIED}
    if exact:
        changes |= {name: None for name in target if name not in source and name not in _NEVER_COPIED}
    return changes


def _setting(topic: str, name: str, before: Mapping[str, str | None], value: str | None) -> str:
    was = f" (is {before[name]})" if name in before else ""
    return f"unset {name} of {topic}{was}" if value is None else f"set {name}={value} for {topic}{was}"


async def wait_until_seen(cluster: Cluster, names: Iterable[str], is_seen: Callable[[Topic | None], bool]) -> None:
    """Wait, but not long, until a broker sees these topics as they are now."""
    wanted = list(names)
    for pause_s in _PAUSES_S if wanted else ():
        state = await cluster.metadata(wanted)
        if all(is_seen(state.topics.get(name)) for name in wanted):
            return
        await asyncio.sleep(pause_s)
