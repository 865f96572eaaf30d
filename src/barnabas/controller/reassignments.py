"""Reassignments: replicas are added to a partition, and old ones are removed once the new ones are in sync.

A reassignment is part of the partition's state: all replicas, old and new, and which of them are being added or
removed. It ends with the ISR change that adds the last new replica (PartitionChange), or is cancelled.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import groupby

from barnabas.controller.leader_choice import Election
from barnabas.controller.operation_size import MAX_RECORDS_PER_USER_OPERATION, Versioned
from barnabas.controller.partition_change import PartitionChanges
from barnabas.controller.situation import Situation
from barnabas.controller.topics import check_assignment
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import Partition, Topic, TopicPartition
from barnabas.replicated.decision import Result
from barnabas.steps import Slices, stepwise
from barnabas.wire import ErrorCode, KafkaError

Target = tuple[int, Sequence[int] | None]
"""A partition, and its target replicas, or None to cancel."""
Altered = list[tuple[str, list[tuple[int, KafkaError | None]]]]


def alter(
    situation: Situation, wanted: Iterable[tuple[str, Sequence[Target]]], allow_replication_factor_change: bool = True
) -> Slices[Result[Altered]]:
    """Return the partitions of each topic, with the error, or None if the reassignment was started or cancelled."""
    changes = PartitionChanges(situation)
    records: list[Versioned] = []
    altered: Altered = []
    for name, targets in wanted:
        yield
        topic = situation.image.topics.get(name)
        rows: list[tuple[int, KafkaError | None]] = []
        for index, replicas in targets:
            yield
            try:
                records += _alter_one(changes, name, topic, index, replicas, allow_replication_factor_change)
                if len(records) > MAX_RECORDS_PER_USER_OPERATION:
                    records.pop()
                    raise KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR)
                rows.append((index, None))
            except KafkaError as error:
                rows.append((index, error))
        altered.append((name, rows))
    return Result(records, altered)


def _alter_one(
    changes: PartitionChanges,
    name: str,
    topic: Topic | None,
    index: int,
    replicas: Sequence[int] | None,
    allow_replication_factor_change: bool,
) -> list[Versioned]:
    if topic is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {name}.")
    if not 0 <= index < len(topic.partitions):
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find partition {name}:{index}.")
    if replicas is None:
        return _cancel(changes, topic, index)
    check_assignment(changes.image, replicas, None)
    partition = topic.partitions[index]
    if not allow_replication_factor_change:
        _check_replication_factor(partition, replicas)
    return _change(changes, topic, index, replicas)


def _check_replication_factor(partition: Partition, replicas: Sequence[int]) -> None:
    """Compare with the number of replicas after an ongoing reassignment."""
    now = len({*partition.replicas, *partition.adding_replicas} - {*partition.removing_replicas})
    if now != len(replicas):
        message = f"The replication factor is changed from {now} to {len(replicas)}"
        raise KafkaError(ErrorCode.INVALID_REPLICATION_FACTOR, message)


def _change(changes: PartitionChanges, topic: Topic, index: int, target: Sequence[int]) -> list[Versioned]:
    """Start a reassignment.

    One that only reorders replicas, or removes replicas that are not in sync, completes at once.
    """
    partition = topic.partitions[index]
    removing = sorted(set(partition.replicas) - set(target))
    adding = sorted(set(target) - set(partition.replicas))
    change = changes.begin(topic, index, Election.ONLINE)
    change.replicas = [*target, *removing]
    change.removing = removing or partition.removing_replicas
    change.adding = adding or partition.adding_replicas
    built = change.build()
    return [] if built is None else [built]


def _cancel(changes: PartitionChanges, topic: Topic, index: int) -> list[Versioned]:
    """Return to the previous replicas. If only added replicas are in sync, this loses records."""
    partition = topic.partitions[index]
    if not partition.is_reassigning:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = [replica for replica in partition.replicas if replica not in partition.adding_replicas]
    isr = [replica for replica in partition.isr if replica not in partition.adding_replicas]
    if not isr:
        if not replicas:
            message = "Invalid replica assignment: addingReplicas contains all replicas."
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        if not changes.rules_of(topic).is_unclean_election_enabled:
            message = (
                f"Unable to revert partition assignment for {topic.name}:{index} because it would require an unclean "
                "leader election."
            )
            raise KafkaError(ErrorCode.INVALID_REPLICA_ASSIGNMENT, message)
        isr = replicas[:1]
    change = changes.begin(topic, index)
    change.isr, change.replicas, change.removing, change.adding = isr, replicas, (), ()
    built = change.build()
    return [] if built is None else [built]


def ongoing(
    image: MetadataImage, wanted: Iterable[tuple[str, Sequence[int]]] | None
) -> Slices[list[list[TopicPartition]]]:
    """Return the partitions being reassigned, grouped by topic: all, or only the wanted ones."""
    if wanted is None:
        by_topic = groupby((yield from image.topics.reassigning()), lambda each: each.topic.name)
        return [list(partitions) for _, partitions in by_topic]
    found = []
    for name, indexes in wanted:
        topic = image.topics.get(name)
        partitions = [] if topic is None else (yield from _ongoing_of(topic, indexes))
        if partitions:
            found.append(partitions)
        yield
    return found


def _ongoing_of(topic: Topic, indexes: Iterable[int]) -> Slices[list[TopicPartition]]:
    found: list[TopicPartition] = []
    for some in stepwise(indexes):
        known = (index for index in some if 0 <= index < len(topic.partitions))
        partitions = (TopicPartition(topic, index, topic.partitions[index]) for index in known)
        found += [each for each in partitions if each.partition.is_reassigning]
        yield
    return found
