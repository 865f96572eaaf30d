"""Leader elections, requested by clients or started periodically by the controller.

The one rule: an election is a PartitionChange; this module only chooses the partitions.
"""

from __future__ import annotations

from collections.abc import Iterable
from enum import IntEnum
from typing import Final

from barnabas.controller.leader_choice import Election
from barnabas.controller.operation_size import Versioned, check_size
from barnabas.controller.partition_change import PartitionChanges
from barnabas.controller.situation import Situation
from barnabas.metadata.topics import NO_LEADER, Topic
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

MAX_ELECTIONS_AT_ONCE: Final = 1000

Elected = list[tuple[str, list[tuple[int, KafkaError | None]]]]
"""The partitions of each topic, with the error, or None if a leader was elected."""


class ElectionType(IntEnum):
    """The election types of ElectLeaders."""

    PREFERRED = 0
    UNCLEAN = 1


_ELECTIONS: Final = {
    ElectionType.PREFERRED: (Election.PREFERRED, ErrorCode.PREFERRED_LEADER_NOT_AVAILABLE),
    ElectionType.UNCLEAN: (Election.UNCLEAN, ErrorCode.ELIGIBLE_LEADERS_NOT_AVAILABLE),
}


def elect(
    situation: Situation, election_type: int, wanted: Iterable[tuple[str, list[int]]] | None
) -> Slices[Result[Elected]]:
    """Elect the leaders of these partitions.

    With None, of all partitions, and those that need no election are left out.
    """
    if election_type not in list(ElectionType):
        raise KafkaError(ErrorCode.INVALID_REQUEST, f"Unknown election type {election_type}")
    kind, topics = ElectionType(election_type), situation.image.topics
    changes = PartitionChanges(situation)
    records: list[Versioned] = []
    elected: Elected = []
    if wanted is None:
        for topic in (topics.by_id[topics.ids[name]] for name in topics.names):
            elected.append((topic.name, (yield from _elect_all(changes, topic, kind, records))))
    else:
        for name, indexes in wanted:
            yield
            rows: list[tuple[int, KafkaError | None]] = []
            for index in indexes:
                rows.append((index, _elect(changes, name, topics.get(name), index, kind, records)))
                yield
            elected.append((name, rows))
    check_size(records)
    return Result(records, elected)


def _elect_all(
    changes: PartitionChanges, topic: Topic, kind: ElectionType, records: list[Versioned]
) -> Slices[list[tuple[int, KafkaError | None]]]:
    rows: list[tuple[int, KafkaError | None]] = []
    for index in range(len(topic.partitions)):
        yield
        error = _elect(changes, topic.name, topic, index, kind, records)
        if error is None or error.code is not ErrorCode.ELECTION_NOT_NEEDED:
            rows.append((index, error))
    return rows


def _elect(
    changes: PartitionChanges, name: str, topic: Topic | None, index: int, kind: ElectionType, records: list[Versioned]
) -> KafkaError | None:
    if topic is None:
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such topic as {name}")
    if not 0 <= index < len(topic.partitions):
        return KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"No such partition as {name}-{index}")
    partition = topic.partitions[index]
    if kind is ElectionType.PREFERRED and partition.leader == partition.preferred_leader:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    if kind is ElectionType.UNCLEAN and partition.leader != NO_LEADER:
        return KafkaError(ErrorCode.ELECTION_NOT_NEEDED)
    election, unavailable = _ELECTIONS[kind]
    built = changes.begin(topic, index, election).build()
    if built is None:
        return KafkaError(unavailable)
    records.append(built)
    return None


def balance_leaders(situation: Situation) -> Slices[Result[bool]]:
    """Return leadership to preferred replicas that are in sync. Returns True if it must be called again at once.

    Called every leader.imbalance.check.interval.seconds; does nothing unless auto.leader.rebalance.enable is set.
    """
    records: list[Versioned] = []
    if situation.config.get_bool("auto.leader.rebalance.enable"):
        changes = PartitionChanges(situation)
        elsewhere = yield from situation.image.topics.select(
            lambda some: [index for index, each in enumerate(some) if each.leader != each.preferred_leader]
        )
        for topic, index, _ in elsewhere:
            yield
            built = changes.begin(topic, index, Election.PREFERRED).build()
            if built is not None:
                records.append(built)
                if len(records) == MAX_ELECTIONS_AT_ONCE:
                    break
    return Result(records, len(records) >= MAX_ELECTIONS_AT_ONCE)


def elect_unclean_leaders(situation: Situation) -> Slices[Result[bool]]:
    """Elect live replicas for leaderless partitions that allow it. Returns True if it must be called again at once.

    A topic allows it with unclean.leader.election.enable. Called every unclean.leader.election.interval.ms.
    """
    records: list[Versioned] = []
    changes = PartitionChanges(situation)
    for topic, index, _ in (yield from situation.image.topics.leaderless()):
        yield
        if changes.rules_of(topic).is_unclean_election_enabled:
            _elect(changes, topic.name, topic, index, ElectionType.UNCLEAN, records)
            if len(records) == MAX_ELECTIONS_AT_ONCE:
                break
    return Result(records, len(records) >= MAX_ELECTIONS_AT_ONCE)
