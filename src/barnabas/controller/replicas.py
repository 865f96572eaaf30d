"""Reports of brokers about their replicas: the ISR of a leader (AlterPartition), and the directories of replicas.

The one rule: only the leader in the current epoch may change a partition, and only based on its newest state.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.controller.brokers import check_broker_epoch
from barnabas.controller.leader_choice import Election
from barnabas.controller.operation_size import Versioned
from barnabas.controller.partition_change import PartitionChanges, has_online_directory
from barnabas.controller.situation import Situation
from barnabas.metadata.image import MetadataImage
from barnabas.metadata.topics import (
    NO_LEADER_CHANGE,
    NO_RECOVERY_CHANGE,
    RECOVERED,
    RECOVERING,
    Partition,
    TopicPartition,
)
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse
from barnabas.wire.records.metadata import PartitionChangeRecord


class Proposal(NamedTuple):
    """The ISR that a leader proposes, with broker epochs (-1: unknown), and the partition state it is based on."""

    partition_id: int
    isr: Sequence[tuple[int, int]]
    leader_recovery_state: int
    leader_epoch: int
    partition_epoch: int


class State(NamedTuple):
    """The state of a partition after a proposal."""

    leader: int
    leader_epoch: int
    isr: Sequence[int]
    leader_recovery_state: int
    partition_epoch: int


Answers = list[tuple[Uuid, list[tuple[int, State | ErrorCode]]]]


def alter(
    situation: Situation, broker_id: int, broker_epoch: int, wanted: Iterable[tuple[Uuid, Sequence[Proposal]]]
) -> Slices[Result[Answers]]:
    """Return the partitions of each topic, with their new state or the error."""
    check_broker_epoch(situation.image, broker_id, broker_epoch)
    changes = PartitionChanges(situation)
    records: list[Versioned] = []
    answers: Answers = []
    for topic_id, proposals in wanted:
        rows = []
        for each in proposals:
            yield
            rows.append((each.partition_id, _alter_one(changes, broker_id, topic_id, each, records)))
        answers.append((topic_id, rows))
    return Result(records, answers)


def _alter_one(
    changes: PartitionChanges, broker_id: int, topic_id: Uuid, proposal: Proposal, records: list[Versioned]
) -> State | ErrorCode:
    topic = changes.image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= proposal.partition_id < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    partition = topic.partitions[proposal.partition_id]
    problem = _find_problem(changes.image, broker_id, partition, proposal)
    if problem is not None:
        return problem
    change = changes.begin(topic, proposal.partition_id)
    change.isr = [replica for replica, _ in proposal.isr]
    change.leader_recovery_state = proposal.leader_recovery_state
    built = change.build()
    if built is None:
        return _state(partition, None)
    records.append(built)
    if built[0].leader not in (broker_id, NO_LEADER_CHANGE):
        # The last step of a reassignment may take leadership from the leader that reports it.
        return ErrorCode.NEW_LEADER_ELECTED
    return _state(partition, built[0])


def _find_problem(image: MetadataImage, broker_id: int, partition: Partition, proposal: Proposal) -> ErrorCode | None:
    isr = [replica for replica, _ in proposal.isr]
    recovery = proposal.leader_recovery_state
    if proposal.leader_epoch > partition.leader_epoch or proposal.partition_epoch > partition.partition_epoch:
        return ErrorCode.NOT_CONTROLLER  # the leader knows newer state, so this node is no longer the active controller
    if proposal.leader_epoch < partition.leader_epoch:
        return ErrorCode.FENCED_LEADER_EPOCH
    if broker_id != partition.leader:
        return ErrorCode.INVALID_REQUEST
    if proposal.partition_epoch < partition.partition_epoch:
        return ErrorCode.INVALID_UPDATE_VERSION
    if len(set(isr)) != len(isr) or not set(isr) <= set(partition.replicas) or broker_id not in isr:
        return ErrorCode.INVALID_REQUEST
    if recovery not in (RECOVERED, RECOVERING):
        return ErrorCode.INVALID_REQUEST
    if recovery == RECOVERING and (len(isr) > 1 or partition.leader_recovery_state == RECOVERED):
        return ErrorCode.INVALID_REQUEST
    if not all(_is_eligible(image, replica, epoch) for replica, epoch in proposal.isr):
        return ErrorCode.INELIGIBLE_REPLICA
    return None


def _is_eligible(image: MetadataImage, replica: int, epoch: int) -> bool:
    broker = image.brokers.get(replica)
    if broker is None or broker.fenced or broker.in_controlled_shutdown:
        return False
    return epoch in (-1, broker.epoch)


def _state(partition: Partition, record: PartitionChangeRecord | None) -> State:
    if record is None:
        record = PartitionChangeRecord()
        partition_epoch = partition.partition_epoch
    else:
        partition_epoch = partition.partition_epoch + 1
    leads_anew = record.leader != NO_LEADER_CHANGE
    is_recovery_same = record.leader_recovery_state == NO_RECOVERY_CHANGE
    return State(
        record.leader if leads_anew else partition.leader,
        partition.leader_epoch + leads_anew,
        list(partition.isr) if record.isr is None else record.isr,
        partition.leader_recovery_state if is_recovery_same else record.leader_recovery_state,
        partition_epoch,
    )


def assign_to_directories(
    situation: Situation, request: AssignReplicasToDirsRequest
) -> Slices[Result[AssignReplicasToDirsResponse]]:
    """Record the directories of a broker's replicas. Those in failed directories leave the ISR at once."""
    if not situation.metadata_version.is_directory_assignment_supported:
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION, "Directory assignment is not supported yet.")
    check_broker_epoch(situation.image, request.broker_id, request.broker_epoch)
    changes, broker_id = PartitionChanges(situation), request.broker_id
    records: list[Versioned] = []
    lost: dict[tuple[Uuid, int], TopicPartition] = {}
    response = AssignReplicasToDirsResponse()
    for directory in request.directories:
        is_online = has_online_directory(situation.image, broker_id, directory.id)
        rows = AssignReplicasToDirsResponse.DirectoryData(id=directory.id)
        response.directories.append(rows)
        for asked in directory.topics:
            row = AssignReplicasToDirsResponse.TopicData(topic_id=asked.topic_id)
            rows.topics.append(row)
            for partition in asked.partitions:
                yield
                index = partition.partition_index
                found = _find_replica(situation.image, broker_id, asked.topic_id, index)
                error = found if isinstance(found, ErrorCode) else ErrorCode.NONE
                row.partitions.append(
                    AssignReplicasToDirsResponse.PartitionData(partition_index=index, error_code=error)
                )
                if isinstance(found, ErrorCode):
                    continue
                records += _assign(changes, broker_id, found, directory.id)
                if not is_online:
                    lost[asked.topic_id, index] = found
    records += yield from changes.updates(lost.values(), removed=broker_id)
    return Result(records, response)


def _find_replica(image: MetadataImage, broker_id: int, topic_id: Uuid, index: int) -> TopicPartition | ErrorCode:
    topic = image.topics.by_id.get(topic_id)
    if topic is None:
        return ErrorCode.UNKNOWN_TOPIC_ID
    if not 0 <= index < len(topic.partitions):
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if broker_id not in topic.partitions[index].replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    return TopicPartition(topic, index, topic.partitions[index])


def _assign(changes: PartitionChanges, broker_id: int, found: TopicPartition, directory: Uuid) -> list[Versioned]:
    change = changes.begin(found.topic, found.partition_id, Election.ONLINE)
    change.directories[broker_id] = directory
    built = change.build()
    return [] if built is None else [built]
