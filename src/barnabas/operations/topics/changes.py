"""Changes of topics: create, add partitions, delete, copy settings. Each is checked first and returned as a `Proposal`.

Its one rule: the cluster validates what it can before anything is changed. If it refuses one topic, nothing is proposed.
After a change, `wait_until_seen` waits until a broker shows it, so that the next request sees it.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import NamedTuple

from barnabas.client.admin.configs import AlterConfigOp, AlterConfigOpType, ConfigResource, Configs
from barnabas.client.admin.part import errors
from barnabas.client.admin.topics import CreatedTopic, NewPartitions, NewTopic, Topics
from barnabas.client.cluster import Cluster
from barnabas.client.state import Topic
from barnabas.operations.configs.data_loss import losses
from barnabas.operations.errors import refused
from barnabas.operations.proposal import Proposal
from barnabas.operations.topics.facts import look_at
from barnabas.wire import ErrorCode, KafkaError, Uuid

_PAUSES_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 1, 1)
NEVER_COPIED = ("leader.replication.throttled.replicas", "follower.replication.throttled.replicas")
"""Settings that name partitions and brokers of one topic."""
_NOT_THERE = (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID)


# --- create


async def propose_creation(
    cluster: Cluster, new: Sequence[NewTopic], *, if_not_exists: bool
) -> Proposal[str, CreatedTopic | KafkaError]:
    """Propose to create all of these topics; with `if_not_exists`, existing ones are left out with a note."""
    topics = Topics(cluster)
    checks = await topics.create_topics(new, validate_only=True)
    rejected = errors(checks)
    notes = []
    if if_not_exists:
        for name in [name for name, error in rejected.items() if error.code == ErrorCode.TOPIC_ALREADY_EXISTS]:
            notes.append(f"topic {name} exists already")
            del rejected[name], checks[name]
    if rejected:
        if len(new) > 1:
            notes.append("no topic is created unless all of them can be")
        return Proposal(expected=dict(rejected), notes=tuple(notes))
    wanted = [topic for topic in new if topic.name in checks]

    async def carry_out() -> dict[str, CreatedTopic | KafkaError]:
        results = await topics.create_topics(wanted)
        await wait_until_seen(cluster, results.keys() - errors(results), lambda topic: topic is not None)
        return results

    steps = tuple(_creation(topic, checks[topic.name]) for topic in wanted)
    return Proposal(checks, steps, tuple(notes), carry_out=carry_out)


def _creation(topic: NewTopic, check: CreatedTopic | KafkaError) -> str:
    assert not isinstance(check, KafkaError)
    partitions = topic.partitions if check.num_partitions < 0 else check.num_partitions
    replicas = topic.replication_factor if check.replication_factor < 0 else check.replication_factor
    words = [f"partitions: {partitions}", f"replication factor: {replicas}"]
    words += [f"{name}={value}" for name, value in topic.configs.items()]
    return f"create topic {topic.name}, {', '.join(words)}"


# --- partitions


async def propose_partitions(
    cluster: Cluster, names: Sequence[str], count: int, assignments: Sequence[Sequence[int]] | None
) -> Proposal[str, KafkaError | None]:
    """Propose that each of these topics gets `count` partitions in all. Raises OperationError if one does not exist."""
    topics = Topics(cluster)
    present = {name: await partition_count(cluster, name) for name in names}
    wanted: dict[str, NewPartitions | int] = {name: NewPartitions(count, assignments) for name in names}
    checks = await topics.create_partitions(wanted, validate_only=True)
    if rejected := errors(checks):
        return Proposal(expected=dict(rejected))

    async def carry_out() -> dict[str, KafkaError | None]:
        results = await topics.create_partitions(wanted)
        grown = results.keys() - errors(results)
        await wait_until_seen(cluster, grown, lambda topic: topic is not None and len(topic.partitions) >= count)
        return results

    return Proposal(
        checks,
        tuple(f"add partitions to topic {name}, from {present[name]} to {count}" for name in names),
        warning="From then on, records of a key may go to another partition. Partitions cannot be removed again.",
        question="Add partitions?",
        carry_out=carry_out,
    )


async def partition_count(cluster: Cluster, name: str) -> int:
    """Return the number of partitions of a topic. Raises OperationError if it does not exist."""
    found = (await Topics(cluster).describe_topics([name]))[name]
    if isinstance(found, KafkaError):
        raise refused(found, f"topic {name}")
    return len(found.partitions)


# --- delete


class NamedTopic(NamedTuple):
    """A topic by its name and id, as far as they are known."""

    name: str | None
    topic_id: Uuid | None


async def propose_deletion(
    cluster: Cluster, topics: Iterable[str | Uuid], pattern: re.Pattern[str] | None, *, if_exists: bool
) -> Proposal[NamedTopic, KafkaError | None]:
    """Propose to delete these topics, and those that match the pattern and are not internal.

    A topic that does not exist is an error in the result, unless `if_exists` is given.
    """
    admin = Topics(cluster)
    wanted = list(topics)
    if pattern is not None:
        wanted += [topic.name for topic in await admin.list_topics() if pattern.fullmatch(topic.name)]
    found, missing, steps = {}, {}, []
    for topic, described in (await admin.describe_topics(wanted)).items():
        if not isinstance(described, KafkaError):
            found[topic] = NamedTopic(described.name, described.topic_id)
            count = len(described.partitions)
            steps.append(f"delete topic {described.name}, {count} partition{'s' * (count != 1)}, with its records")
        elif not if_exists or described.code not in _NOT_THERE:
            missing[NamedTopic(None, topic) if isinstance(topic, Uuid) else NamedTopic(topic, None)] = described
    if not found:
        return Proposal(expected=missing, notes=() if missing else ("nothing to delete",))

    async def carry_out() -> dict[NamedTopic, KafkaError | None]:
        results = await admin.delete_topics(found)
        gone = [found[topic].name or "" for topic, error in results.items() if error is None]
        await wait_until_seen(cluster, gone, lambda topic: topic is None)
        return {**{found[topic]: error for topic, error in results.items()}, **missing}

    return Proposal(
        {**dict.fromkeys(found.values()), **missing},
        tuple(steps),
        question=f"Delete {len(found)} topic{'s' * (len(found) != 1)} for good?",
        carry_out=carry_out,
    )


# --- copy settings


class CopiedSettings(NamedTuple):
    """The number of settings of a topic that change, and the error if the change failed."""

    changes: int
    error: KafkaError | None


async def propose_copied_settings(
    cluster: Cluster, source: str, targets: Iterable[str], *, exact: bool
) -> Proposal[str, CopiedSettings]:
    """Propose to give the targets the settings of the source; with `exact`, to unset all others.

    `expected` has the cluster's answer to a validation.
    """
    wanted = list(dict.fromkeys(targets))
    own = await _overrides(cluster, [source, *wanted])
    alterations: dict[ConfigResource, list[AlterConfigOp]] = {}
    counts: dict[str, int] = {}
    steps, notes = [], []
    for target in wanted:
        changes = differences(own[source], own[target], exact=exact)
        counts[target] = len(changes)
        steps += [_setting(target, name, own[target], value) for name, value in changes.items()]
        if not changes:
            notes.append(f"nothing to change for {target}")
            continue
        alterations[ConfigResource.topic(target)] = [
            AlterConfigOp(name, AlterConfigOpType.DELETE if value is None else AlterConfigOpType.SET, value)
            for name, value in changes.items()
        ]

    async def alter(*, validate_only: bool) -> dict[str, CopiedSettings]:
        done = await Configs(cluster).incremental_alter_configs(alterations, validate_only=validate_only)
        return {target: CopiedSettings(n, done.get(ConfigResource.topic(target))) for target, n in counts.items()}

    expected = await alter(validate_only=True)
    if any(each.error is not None for each in expected.values()):
        return Proposal(expected, notes=("no settings were copied",))
    lost = await losses(cluster, alterations)
    return Proposal(
        expected,
        tuple(steps),
        (*notes, *(f"warning: {sentence}" for sentence in lost)),
        question="Delete these records?" if lost else None,
        carry_out=lambda: alter(validate_only=False),
    )


async def _overrides(cluster: Cluster, names: Iterable[str]) -> dict[str, dict[str, str | None]]:
    found = await look_at(cluster, names)
    for name, error in found.errors.items():
        raise refused(error, f"topic {name}")
    own = {}
    for facts in found.topics:
        assert facts.settings is not None
        if isinstance(facts.settings, KafkaError):
            raise refused(facts.settings, f"settings of topic {facts.topic.name}")
        own[facts.topic.name] = facts.settings.overrides()
    return own


def differences(
    source: Mapping[str, str | None], target: Mapping[str, str | None], *, exact: bool
) -> dict[str, str | None]:
    """Return the settings to change, with their new values; None unsets a setting.

    >>> differences({"retention.ms": "1", "segment.ms": "2"}, {"segment.ms": "2", "max.message.bytes": "9"}, exact=True)
    {'retention.ms': '1', 'max.message.bytes': None}
    """
    changes = {name: value for name, value in source.items() if target.get(name) != value and name not in NEVER_COPIED}
    if exact:
        changes |= {name: None for name in target if name not in source and name not in NEVER_COPIED}
    return changes


def _setting(topic: str, name: str, before: Mapping[str, str | None], value: str | None) -> str:
    was = f" (is {before[name]})" if name in before else ""
    return f"unset {name} of {topic}{was}" if value is None else f"set {name}={value} for {topic}{was}"


# --- after a change


async def wait_until_seen(cluster: Cluster, names: Iterable[str], is_seen: Callable[[Topic | None], bool]) -> None:
    """Wait until a broker shows these topics in their new state, for a few seconds at most."""
    wanted = [] if cluster.settings.bootstrap_controllers else list(names)  # controllers do not describe topics
    for pause_s in _PAUSES_S if wanted else ():
        state = await cluster.metadata(wanted)
        if all(is_seen(state.topics.get(name)) for name in wanted):
            return
        await asyncio.sleep(pause_s)
