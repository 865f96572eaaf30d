"""The checks of options and the lines of `kafka-topics`. Pure.

Its one rule: lines equal Kafka's own, even in the order of items that Kafka keeps in hash tables.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from functools import cache
from typing import TYPE_CHECKING, Any

from barnabas.config.hash_order import hash_order

if TYPE_CHECKING:
    from barnabas.operations.topics.facts import PartitionFacts, Settings, TopicFacts

ACTIONS = ("list", "describe", "create", "alter", "delete")
REPORTS = ("under-replicated-partitions", "under-min-isr-partitions", "at-min-isr-partitions", "unavailable-partitions")
COLLISION_WARNING = (
    "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide. "
    "To avoid issues it is best to use either, but not both."
)
ONLY_THE_ID = (
    "Only topic id will be used when both --topic and --topic-id are specified and topicId is not Uuid.ZERO_UUID"
)
DELETE_CONFIG_IS_GONE = (
    "delete-config option is no longer supported and deprecated since version 4.0. "
    "The config will be fully removed in future releases."
)
_SEE_CONFIGS = " (To alter topic configurations, the kafka-configs tool can be used.)"
_MAX_INT16 = 32767


class UsageError(ValueError):
    """Options that cannot be combined: the message is followed by the help."""


def check(given: set[str]) -> None:
    """Check that the options can be combined. Raises UsageError, or ValueError for errors that Kafka prints without help."""
    actions = [action for action in ACTIONS if action in given]
    if len(actions) != 1:
        raise UsageError("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    action = actions[0]
    if "bootstrap-server" not in given:
        raise ValueError("--bootstrap-server must be specified")
    if action == "describe" and "if-exists" in given and not given & {"topic", "topic-id"}:
        raise UsageError("--topic or --topic-id is required to describe a topic")
    if action in ("create", "alter", "delete"):
        _need(given, "topic")
    if action == "alter":
        if "config" in given:
            combination = "[[bootstrap-server], [config]]"
            raise UsageError(f'Option combination "{combination}" can\'t be used with option "[alter]"{_SEE_CONFIGS}')
        _need(given, "partitions")
    for option, allowed in _ALLOWED.items():
        if option in given and action not in allowed:
            raise _clash(option, action)
        if option == "replica-assignment" and option in given and action == "create":
            for other in ("partitions", "replication-factor"):
                if other in given:
                    raise _clash(option, other)
        if option in REPORTS and option in given and "topics-with-overrides" in given:
            raise _clash(option, "topics-with-overrides")


_ALLOWED = {
    "config": ("alter", "create"),
    "partitions": ("alter", "create"),
    "replication-factor": ("create",),
    "replica-assignment": ("alter", "create"),
    **dict.fromkeys(REPORTS, ("describe",)),
    "topics-with-overrides": ("describe",),
    "if-exists": ("alter", "delete", "describe"),
    "if-not-exists": ("create",),
    "exclude-internal": ("list", "describe"),
}


def _need(given: set[str], option: str) -> None:
    if option not in given:
        raise UsageError(f'Missing required argument "[{option}]"')


def _clash(option: str, other: str) -> UsageError:
    return UsageError(f'Option "[{option}]" can\'t be used with option "[{other}]"')


def parse_configs(texts: Iterable[str]) -> dict[str, str]:
    """Parse NAME=VALUE settings. Raises ValueError.

    >>> parse_configs(["retention.ms = 5"])
    {'retention.ms': '5'}
    """
    found = {}
    for text in texts:
        parts = re.split(r"\s*=\s*", text)
        while parts and not parts[-1]:
            parts.pop()
        if len(parts) != 2:
            raise ValueError(
                'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
            )
        found[parts[0].strip()] = parts[1].strip()
    return found


def parse_replica_assignment(text: str) -> list[list[int]]:
    """Parse the replicas of each partition. Raises ValueError.

    >>> parse_replica_assignment("1:2,2:3")
    [[1, 2], [2, 3]]
    """
    found: list[list[int]] = []
    for number, part in enumerate(text.split(",")):
        brokers = [_parse_int(broker.strip()) for broker in part.split(":")]
        if twice := [broker for broker in dict.fromkeys(brokers) if brokers.count(broker) > 1]:
            duplicates = ",".join(map(str, twice))
            raise ValueError(f"Partition replica lists may not contain duplicate entries: {duplicates}")
        found.append(brokers)
        if len(brokers) != len(found[0]):
            listed = ", ".join(map(str, brokers))
            raise ValueError(f"Partition {number} has different replication factor: [{listed}]")
    return found


def _parse_int(text: str) -> int:
    if not re.fullmatch(r"[+-]?\d+", text, re.ASCII):
        raise ValueError(f'For input string: "{text}"')
    return int(text)


def check_numbers(partitions: int | None, replication_factor: int | None) -> None:
    if replication_factor is not None and not 1 <= replication_factor <= _MAX_INT16:
        raise ValueError(f"The replication factor must be between 1 and {_MAX_INT16} inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")


def has_collision_chars(name: str) -> bool:
    return "." in name or "_" in name


# --- describe


def described_order(names: Iterable[str]) -> list[str]:
    """Return the names in Kafka's order: sorted names, put through three hash tables."""
    return hash_order(hash_order(hash_order(sorted(names), sized=True), at_once=True), sized=True)


def describe_lines(facts: TopicFacts, given: set[str]) -> list[str]:
    """Return the lines of a topic that the options select."""
    from barnabas.operations.topics.facts import Settings

    assert isinstance(facts.settings, Settings)
    lines = []
    reports = [each for each in REPORTS if each in given]
    overridden = _overridden(facts.settings)
    if not reports and ("topics-with-overrides" not in given or overridden):
        lines.append(_topic_line(facts, overridden))
    if "topics-with-overrides" not in given:
        lines += [_partition_line(facts.topic.name, each) for each in facts.partitions if _is_shown(each, reports)]
    return lines


def _is_shown(facts: PartitionFacts, reports: list[str]) -> bool:
    wrong: Mapping[str, bool] = {
        "under-replicated-partitions": facts.is_under_replicated,
        "under-min-isr-partitions": facts.is_under_min_isr,
        "at-min-isr-partitions": facts.is_at_min_isr,
        "unavailable-partitions": facts.is_unavailable,
    }
    return not reports or any(wrong[each] for each in reports)


def _overridden(settings: Settings) -> list[str]:
    changed = settings.changed
    named = [(name, changed[name][0]) for name in _settings_order(settings.names) if name in changed]
    return [f"{name}={'null' if value is None else value}" for name, value in named]


@cache
def _settings_order(names: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(hash_order(names))


def _topic_line(facts: TopicFacts, overridden: list[str]) -> str:
    topic = facts.topic
    words = [f"Topic: {topic.name}"]
    if any(topic.topic_id):
        words.append(f"TopicId: {topic.topic_id}")
    words += [
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {facts.partitions[0].replication_factor}",
        f"Configs: {','.join(overridden)}",
    ]
    return "\t".join(words)


def _partition_line(topic: str, facts: PartitionFacts) -> str:
    partition, moving = facts.partition, facts.reassignment
    words = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition_index}",
        f"Leader: {'none' if facts.is_unavailable else partition.leader_id}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if moving is not None:
        words.append(f"Adding Replicas: {_ids(moving.adding_replicas)}")
        words.append(f"Removing Replicas: {_ids(moving.removing_replicas)}")
    words.append(f"Elr: {_ids(partition.eligible_leader_replicas)}")
    words.append(f"LastKnownElr: {_ids(partition.last_known_elr)}")
    return "\t".join(words)


def _ids(ids: Any) -> str:
    return "N/A" if ids is None else ",".join(map(str, ids))
