"""Requests to list, commit and fetch offsets, and their responses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.errors import error_code
from barnabas.client.records import GroupMetadata, OffsetAndMetadata, OffsetAndTimestamp, TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.list_offsets import ListOffsetsRequest, ListOffsetsResponse
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

EARLIEST, LATEST = -2, -1
LAST_COMMIT_WITH_NAMES = 9  # last version of OffsetCommit with topic names
LAST_FETCH_WITH_NAMES = 9  # last version of OffsetFetch with topic names
_FIRST_WITH_GROUPS = 8


def by_topic(places: Iterable[TopicPartition]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for topic, partition in places:
        found.setdefault(topic, []).append(partition)
    return found


# --- offsets of partitions


def list_offsets(times: Mapping[TopicPartition, int], isolation_level: int, timeout_ms: int) -> ListOffsetsRequest:
    return ListOffsetsRequest(
        replica_id=-1,
        isolation_level=isolation_level,
        timeout_ms=timeout_ms,
        topics=[
            ListOffsetsRequest.ListOffsetsTopic(
                name=topic,
                partitions=[
                    ListOffsetsRequest.ListOffsetsPartition(
                        partition_index=index, timestamp=times[TopicPartition(topic, index)]
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(times).items()
        ],
    )


def listed(response: ListOffsetsResponse) -> dict[TopicPartition, OffsetAndTimestamp | KafkaError]:
    """Return the offset or the error of each partition. An offset of -1 means that there is none."""
    found: dict[TopicPartition, OffsetAndTimestamp | KafkaError] = {}
    for topic in response.topics:
        for row in topic.partitions:
            place = TopicPartition(topic.name, row.partition_index)
            code = error_code(row.error_code)
            if code is ErrorCode.NONE:
                found[place] = OffsetAndTimestamp(row.offset, row.timestamp, row.leader_epoch)
            else:
                found[place] = KafkaError(code, f"{place}: {code.message}")
    return found


# --- committed offsets


def commit_request(
    member: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata], version: int
) -> OffsetCommitRequest:
    return OffsetCommitRequest(
        group_id=member.group_id,
        generation_id_or_member_epoch=member.generation_id,
        member_id=member.member_id,
        group_instance_id=member.group_instance_id if version >= 7 else None,
        topics=[
            OffsetCommitRequest.OffsetCommitRequestTopic(
                name=topic,
                partitions=[
                    OffsetCommitRequest.OffsetCommitRequestPartition(
                        partition_index=index,
                        committed_offset=offsets[TopicPartition(topic, index)].offset,
                        committed_leader_epoch=offsets[TopicPartition(topic, index)].leader_epoch,
                        committed_metadata=offsets[TopicPartition(topic, index)].metadata,
                    )
                    for index in indexes
                ],
            )
            for topic, indexes in by_topic(offsets).items()
        ],
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, row.partition_index): error_code(row.error_code)
        for topic in response.topics
        for row in topic.partitions
        if row.error_code
    }


def fetch_request(
    member: GroupMetadata, places: Iterable[TopicPartition], version: int, *, require_stable: bool
) -> OffsetFetchRequest:
    wanted = by_topic(places)
    if version < _FIRST_WITH_GROUPS:
        request = OffsetFetchRequest(
            group_id=member.group_id,
            topics=[
                OffsetFetchRequest.OffsetFetchRequestTopic(name=topic, partition_indexes=indexes)
                for topic, indexes in wanted.items()
            ],
        )
    else:
        rows = [
            OffsetFetchRequest.OffsetFetchRequestTopics(name=topic, partition_indexes=indexes)
            for topic, indexes in wanted.items()
        ]
        group = OffsetFetchRequest.OffsetFetchRequestGroup(group_id=member.group_id, topics=rows)
        if version >= 9 and member.generation_id >= 0:
            group.member_id, group.member_epoch = member.member_id, member.generation_id
        request = OffsetFetchRequest(groups=[group])
    if version >= 7:
        request.require_stable = require_stable
    return request


def fetched_offsets(response: OffsetFetchResponse) -> dict[TopicPartition, OffsetAndMetadata | None]:
    """Return the committed offset of each partition, or None if there is none. Raises `KafkaError`."""
    for group in response.groups:
        if group.error_code:
            code = error_code(group.error_code)
            raise KafkaError(code, f"group {group.group_id}: {code.message}")
    found: dict[TopicPartition, OffsetAndMetadata | None] = {}
    topics: list[Any] = [*response.topics, *(topic for group in response.groups for topic in group.topics)]
    for topic in topics:
        for row in topic.partitions:
            place = TopicPartition(topic.name, row.partition_index)
            if row.error_code:
                code = error_code(row.error_code)
                raise KafkaError(code, f"{place}: {code.message}")
            known = row.committed_offset >= 0
            offset = OffsetAndMetadata(row.committed_offset, row.metadata or "", row.committed_leader_epoch)
            found[place] = offset if known else None
    return found
