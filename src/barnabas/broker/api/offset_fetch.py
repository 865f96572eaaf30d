"""OffsetFetch (9), versions 1 to 10; from version 8 on for several groups, from version 10 on with topic ids.

Needs DESCRIBE on the group and on each topic. With null topics (from version 2 on), returns all offsets of the group
for topics that the caller may DESCRIBE. A partition without a committed offset is offset -1 without an error. So is an
offset committed for a deleted topic of the same name, and every partition of a group that does not exist. With
`require_stable` (version 7), the response waits for commits in progress, and an offset in an open transaction is
UNSTABLE_OFFSET_COMMIT. All offsets come sorted, with failed topics last.
"""

from __future__ import annotations

from itertools import compress

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import waited
from barnabas.steps import Slices, mapped
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError
from barnabas.wire.messages.offset_fetch import OffsetFetchRequest, OffsetFetchResponse

GROUP_ERRORS_FROM = 2
BATCHES_FROM = 8
IDS_FROM = 10

Group = OffsetFetchRequest.OffsetFetchRequestGroup
Topic = OffsetFetchRequest.OffsetFetchRequestTopics
GroupRow = OffsetFetchResponse.OffsetFetchResponseGroup
TopicRow = OffsetFetchResponse.OffsetFetchResponseTopics
PartitionRow = OffsetFetchResponse.OffsetFetchResponsePartitions


def handle(context: Context, request: OffsetFetchRequest) -> Slices[OffsetFetchResponse]:
    rows = []
    groups = request.groups if context.version >= BATCHES_FROM else [(yield from _only_group(request))]
    for group in groups:
        rows.append((yield from _one(context, group, request.require_stable)))
        yield
    return (yield from _response(context, rows))


def _only_group(request: OffsetFetchRequest) -> Slices[Group]:
    if request.topics is None:
        return Group(group_id=request.group_id, topics=None)
    topics = yield from mapped(lambda t: Topic(name=t.name, partition_indexes=t.partition_indexes), request.topics)
    return Group(group_id=request.group_id, topics=topics)


def _one(context: Context, group: Group, require_stable: bool) -> Slices[GroupRow]:
    asked, groups = group.topics, context.services.groups
    try:
        refused = yield from _prepare(context, group)
        if require_stable:
            found = yield from waited(groups.fetch_stable_offsets(group))
        else:
            found = yield from groups.fetch_offsets(group)
        return (yield from _finish(context, group, found, refused))
    except KafkaError as error:
        # Consumers before 3.9 would not retry otherwise.
        is_unavailable = require_stable and error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
        code = ErrorCode.NOT_COORDINATOR if is_unavailable else error.code
        return (yield from _failed(context, group.group_id, asked, code))


def _prepare(context: Context, group: Group) -> Slices[list[TopicRow]]:
    """Remove unknown and unauthorized topics from the request and return their rows."""
    if not context.may(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if group.topics is None:
        return []
    refused, topics = [], []
    for topic in group.topics:
        yield
        if context.version >= IDS_FROM:
            known = context.image.topics.by_id.get(topic.topic_id)
            if known is None:
                refused.append((yield from _refused(topic, ErrorCode.UNKNOWN_TOPIC_ID)))
                continue
            topic.name = known.name
        if context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name):
            topics.append(topic)
        else:
            refused.append((yield from _refused(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED)))
    group.topics = topics
    return refused


def _finish(context: Context, group: Group, row: GroupRow, refused: list[TopicRow]) -> Slices[GroupRow]:
    if group.topics is not None:
        row.topics += refused
        return row

    def is_shown(topic: TopicRow) -> bool:
        if context.version >= IDS_FROM:  # a deleted topic has no id and is left out
            topic.topic_id = context.image.topics.ids.get(topic.name, ZERO_UUID)
            if topic.topic_id == ZERO_UUID:
                return False
        return context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.name)

    shown = yield from mapped(is_shown, row.topics)
    row.topics = list(compress(row.topics, shown))
    return row


def _refused(topic: Topic, code: ErrorCode) -> Slices[TopicRow]:
    def row(index: int) -> PartitionRow:
        return PartitionRow(partition_index=index, committed_offset=-1, error_code=code)

    rows = yield from mapped(row, topic.partition_indexes)
    return TopicRow(name=topic.name, topic_id=topic.topic_id, partitions=rows)


def _failed(context: Context, group_id: str, topics: list[Topic] | None, code: ErrorCode) -> Slices[GroupRow]:
    if context.version >= GROUP_ERRORS_FROM:
        return GroupRow(group_id=group_id, error_code=code)
    rows = []
    for topic in topics or ():
        yield
        row = yield from _refused(topic, code)
        rows.append(row)
    return GroupRow(group_id=group_id, topics=rows)


def _response(context: Context, rows: list[GroupRow]) -> Slices[OffsetFetchResponse]:
    if context.version >= BATCHES_FROM:
        return OffsetFetchResponse(groups=rows)
    (row,) = rows
    topics = []
    for topic in row.topics:
        yield
        partitions = yield from mapped(_in_old_form, topic.partitions)
        topics.append(OffsetFetchResponse.OffsetFetchResponseTopic(name=topic.name, partitions=partitions))
    return OffsetFetchResponse(error_code=row.error_code, topics=topics)


def _in_old_form(row: PartitionRow) -> OffsetFetchResponse.OffsetFetchResponsePartition:
    return OffsetFetchResponse.OffsetFetchResponsePartition(
        partition_index=row.partition_index,
        committed_offset=row.committed_offset,
        committed_leader_epoch=row.committed_leader_epoch,
        metadata=row.metadata,
        error_code=row.error_code,
    )
