"""Decisions about the offsets of share groups: altering and deleting them, and deleting groups.

Pure. The offsets themselves are the state of share partitions at the share coordinator. So each change has two halves: a
record that says which partitions are initializing or deleting, then the request to the share coordinator, and a record
when that is done.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import NamedTuple

from barnabas.groups.hash_tables import topic_order
from barnabas.groups.image import Group
from barnabas.groups.share.group import ShareGroup, StatePartitions, TopicPartitions
from barnabas.groups.share.heartbeat import share_group
from barnabas.groups.share.initialization import combined, initializing_record, named
from barnabas.groups.share.records import Record, state_partitions_record
from barnabas.metadata.topics import Topics
from barnabas.replicated.decision import Result
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest
from barnabas.wire.messages.initialize_share_group_state import InitializeShareGroupStateRequest

AlteredTopic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
AlteredPartition = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition
DeletedTopic = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic
NO_OFFSETS = "There is no offset information to delete."


class Altering(NamedTuple):
    """The rows of the response, as if the share coordinator accepts the request to it, if there is one."""

    rows: list[AlteredTopic]
    initialize: InitializeShareGroupStateRequest | None


class Deleting(NamedTuple):
    """The rows of topics that cannot be deleted, and the request for the share coordinator, if there is one."""

    failed: list[DeletedTopic]
    delete: DeleteShareGroupStateRequest | None


# --- altering


def alter(known: Group | None, request: AlterShareGroupOffsetsRequest, topics: Topics) -> Slices[Result[Altering]]:
    """Begin to set the start offsets of partitions. The group may be new, and must be empty."""
    group = ShareGroup(request.group_id) if known is None else share_group(known, request.group_id)
    group.check_delete()
    rows: list[AlteredTopic] = []
    new: dict[Uuid, TopicPartitions] = {}
    kind = InitializeShareGroupStateRequest
    initialize = kind(group_id=request.group_id)
    for asked in request.topics:
        topic = topics.get(asked.topic_name)
        row = AlteredTopic(topic_name=asked.topic_name)
        rows.append(row)
        offsets: dict[int, int] = {}
        for each in asked.partitions:
            yield
            is_known = topic is not None and 0 <= each.partition_index < len(topic.partitions)
            if is_known:
                offsets[each.partition_index] = each.start_offset
            row.partitions.append(_altered(each.partition_index, is_known))
        if topic is None:
            continue
        row.topic_id = topic.topic_id
        new[topic.topic_id] = TopicPartitions(asked.topic_name, frozenset(offsets))
        if offsets:
            partitions = [
                kind.PartitionData(partition=index, state_epoch=group.group_epoch, start_offset=offset)
                for index, offset in sorted(offsets.items())
            ]
            initialize.topics.append(kind.InitializeStateData(topic_id=topic.topic_id, partitions=partitions))
    records = [initializing_record(group, new, topics)] if new else []
    return Result(records, Altering(rows, initialize if initialize.topics else None))


def _altered(index: int, is_known: bool) -> AlteredPartition:
    code = ErrorCode.NONE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    return AlteredPartition(partition_index=index, error_code=code, error_message=None if is_known else code.message)


# --- deleting offsets


def begin_deletion(
    known: Group | None, request: DeleteShareGroupOffsetsRequest, topics: Topics
) -> Slices[Result[Deleting]]:
    """Begin to delete the offsets of topics. The group must be empty."""
    group = share_group(known, request.group_id)
    group.check_delete()
    state = group.state_partitions
    if state is None:
        return Result((), Deleting([], None))
    failed: list[DeletedTopic] = []
    initialized, deleting = dict(state.initialized), set(state.deleting)
    partitions: dict[Uuid, Collection[int]] = {}
    for asked in request.topics:
        yield
        topic = topics.get(asked.topic_name)
        code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        if topic is None:
            failed.append(DeletedTopic(topic_name=asked.topic_name, error_code=code, error_message=code.message))
        elif topic.topic_id in initialized:
            partitions[topic.topic_id] = initialized.pop(topic.topic_id).partitions
            deleting.add(topic.topic_id)
        elif topic.topic_id in deleting:  # an earlier deletion has failed
            partitions[topic.topic_id] = range(len(topic.partitions))
        else:
            failed.append(DeletedTopic(topic_name=asked.topic_name, error_code=code, error_message=NO_OFFSETS))
    record = state_partitions_record(group.group_id, state.initializing, initialized, named(deleting, topics))
    return Result((record,), Deleting(failed, delete_request(group.group_id, partitions)))


def end_deletion(group: ShareGroup, deleted: Iterable[Uuid], topics: Topics) -> Record | None:
    """Return the record after the share coordinator has deleted the state of topics."""
    state = group.state_partitions
    if state is None:
        return None
    deleting = named(state.deleting.difference(deleted), topics)
    return state_partitions_record(group.group_id, state.initializing, state.initialized, deleting)


def delete_request(group_id: str, partitions: Mapping[Uuid, Collection[int]]) -> DeleteShareGroupStateRequest | None:
    kind = DeleteShareGroupStateRequest
    if not partitions:
        return None
    return kind(
        group_id=group_id,
        topics=[
            kind.DeleteStateData(
                topic_id=topic_id,
                partitions=[kind.PartitionData(partition=index) for index in sorted(partitions[topic_id])],
            )
            for topic_id in topic_order(partitions)
        ],
    )


# --- deleting groups


class GroupDeletion(NamedTuple):
    """Groups that cannot be deleted, and the requests for the share coordinator by group."""

    failed: dict[str, ErrorCode]
    delete: dict[str, DeleteShareGroupStateRequest]


def begin_group_deletion(groups: Iterable[ShareGroup], topics: Topics) -> Slices[Result[GroupDeletion]]:
    """Begin to delete share groups: all their share partitions lose their state first."""
    records: list[Record] = []
    found = GroupDeletion({}, {})
    for group in groups:
        yield
        try:
            group.check_delete()
        except KafkaError as error:
            found.failed[group.group_id] = error.code
            continue
        state = group.state_partitions
        if state is None:
            continue
        doomed = combined(state.initialized, state.initializing)
        doomed = combined(doomed, _interrupted(state, topics))
        names = {topic_id: topic.name for topic_id, topic in doomed.items()}
        records.append(state_partitions_record(group.group_id, {}, {}, names))
        request = delete_request(group.group_id, {each: topic.partitions for each, topic in doomed.items()})
        if request is not None:
            found.delete[group.group_id] = request
    return Result(records, found)


def _interrupted(state: StatePartitions, topics: Topics) -> dict[Uuid, TopicPartitions]:
    """Return the topics that are being deleted and still exist."""
    existing = [topics.by_id[topic_id] for topic_id in state.deleting if topic_id in topics.by_id]
    return {topic.topic_id: TopicPartitions(topic.name, frozenset(range(len(topic.partitions)))) for topic in existing}
