"""DescribeShareGroupOffsets (90), versions 0 and 1: the start offsets of share groups, from version 1 on with the lag.

Without topics, all partitions of the group that have a state are returned. A partition without a state, or whose state
cannot be read now, has the offset -1, as in Kafka. The lag counts the records from the start offset to the high watermark
that are not delivered for good; -1 if it is not known. Needs DESCRIBE on the group and on each topic; topics that are not
named and may not be described are left out. UNSUPPORTED_VERSION while `share.version` is 0.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import compress

from barnabas.broker.context import Context
from barnabas.broker.end_offsets import end_offsets
from barnabas.groups.hash_tables import topic_order
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.slices import Breather, in_slices
from barnabas.steps import mapped
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
)
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)

Group = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseGroup
Topic = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponseTopic
Row = DescribeShareGroupOffsetsResponse.DescribeShareGroupOffsetsResponsePartition
Asked = DescribeShareGroupOffsetsRequest.DescribeShareGroupOffsetsRequestGroup
Summary = ReadShareGroupStateSummaryResponse.PartitionResult
UNKNOWN = -1


async def handle(context: Context, request: DescribeShareGroupOffsetsRequest) -> DescribeShareGroupOffsetsResponse:
    others_first = Breather()
    groups = []
    for asked in request.groups:
        await others_first()
        groups.append(await _described(context, asked))
    return DescribeShareGroupOffsetsResponse(groups=groups)


async def _described(context: Context, asked: Asked) -> Group:
    group_id = asked.group_id
    if not supports_share_groups(context.image):
        return Group(group_id=group_id, error_code=ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
        return Group(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED)
    try:
        topics = await _all_topics(context, group_id) if asked.topics is None else await _topics(context, asked)
    except KafkaError as error:
        return Group(group_id=group_id, error_code=error.code, error_message=error.code.message)
    return Group(group_id=group_id, topics=topics)


async def _all_topics(context: Context, group_id: str) -> list[Topic]:
    initialized = context.services.groups.share.initialized(group_id)
    partitions = {topic_id: sorted(initialized[topic_id].partitions) for topic_id in topic_order(initialized)}
    found = await _read(context, group_id, partitions)
    may = await in_slices(
        mapped(lambda row: context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, row.topic_name), found)
    )
    return list(compress(found, may))


async def _topics(context: Context, asked: Asked) -> list[Topic]:
    others_first = Breather()
    known: dict[Uuid, list[int]] = {}
    unknown, refused = [], []
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for topic in asked.topics or ():
        await others_first()
        row = Topic(topic_name=topic.topic_name)
        topic_id = context.image.topics.ids.get(topic.topic_name)
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.topic_name):
            row.partitions = [
                Row(partition_index=index, start_offset=UNKNOWN, error_code=code, error_message=code.message)
                for index in topic.partitions
            ]
            refused.append(row)
        elif topic_id is None:
            row.partitions = [Row(partition_index=index, start_offset=UNKNOWN) for index in topic.partitions]
            unknown.append(row)
        else:
            known[topic_id] = topic.partitions
    return [*await _read(context, asked.group_id, known), *unknown, *refused]


async def _read(context: Context, group_id: str, partitions: Mapping[Uuid, list[int]]) -> list[Topic]:
    """Return the offsets and the lag of partitions. Topics that do not exist any more are left out."""
    by_id = context.image.topics.by_id
    names = {each: by_id[each].name for each in partitions if each in by_id}
    if not names:
        return []
    kind, others_first = ReadShareGroupStateSummaryRequest, Breather()
    wanted = []
    for topic_id in names:
        await others_first()
        rows = [kind.PartitionData(partition=index) for index in partitions[topic_id]]
        wanted.append(kind.ReadStateSummaryData(topic_id=topic_id, partitions=rows))
    response = await context.services.persister.read_summary(kind(group_id=group_id, topics=wanted))
    with_lag = []
    for result in response.results:
        await others_first()
        name = names[result.topic_id]
        with_lag += [(name, summary.partition) for summary in result.partitions if _has_lag(summary)]
    ends = await end_offsets(context.services, with_lag)
    topics = []
    for result in response.results:
        await others_first()
        name = names[result.topic_id]
        found = [_row(summary, ends.get((name, summary.partition))) for summary in result.partitions]
        topics.append(Topic(topic_name=name, topic_id=result.topic_id, partitions=found))
    return topics


def _has_lag(summary: Summary) -> bool:
    return not summary.error_code and UNKNOWN not in (summary.start_offset, summary.delivery_complete_count)


def _row(summary: Summary, end: int | ErrorCode | None) -> Row:
    row = Row(partition_index=summary.partition)
    if isinstance(end, ErrorCode):
        row.error_code, row.error_message = end, end.message
        return row
    row.start_offset = UNKNOWN
    if not summary.error_code:
        row.start_offset, row.leader_epoch = summary.start_offset, summary.leader_epoch
    if end is not None:
        row.lag = end - summary.start_offset - summary.delivery_complete_count
    return row
