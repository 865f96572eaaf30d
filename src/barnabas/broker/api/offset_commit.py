"""OffsetCommit (8), versions 2 to 10; from version 10 on topics have ids.

Needs READ on the group and on each topic. An unknown partition is UNKNOWN_TOPIC_OR_PARTITION, an unknown id
UNKNOWN_TOPIC_ID, and metadata longer than `offset.metadata.max.bytes` OFFSET_METADATA_TOO_LARGE; other partitions are
committed. A negative generation commits without a member, and only if the group is empty or does not exist; then the
group is created. Otherwise member, instance and generation must be the group's: UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID,
ILLEGAL_GENERATION, REBALANCE_IN_PROGRESS while the group waits for its assignment, and STALE_MEMBER_EPOCH for members
of a consumer group. A group that does not exist is GROUP_ID_NOT_FOUND, before version 9 ILLEGAL_GENERATION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.offset_topics import TopicRows, touchable
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ZERO_UUID, ErrorCode, KafkaError
from barnabas.wire.messages.offset_commit import OffsetCommitRequest, OffsetCommitResponse

IDS_FROM = 10

Topic = OffsetCommitRequest.OffsetCommitRequestTopic
TopicRow = OffsetCommitResponse.OffsetCommitResponseTopic


async def handle(context: Context, request: OffsetCommitRequest) -> OffsetCommitResponse:
    rows = TopicRows(_topic_row, _partition_row)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        await in_slices(rows.add_all(request.topics, ErrorCode.GROUP_AUTHORIZATION_FAILED))
        return OffsetCommitResponse(topics=rows.rows)
    named = await in_slices(_named(context, request.topics, rows))
    request.topics = await in_slices(touchable(context, named, rows))
    if not request.topics:
        return OffsetCommitResponse(topics=rows.rows)
    try:
        committed = await context.services.groups.commit_offsets(request, context.version)
    except KafkaError as error:
        await in_slices(rows.add_all(request.topics, error.code))
        return OffsetCommitResponse(topics=rows.rows)
    return OffsetCommitResponse(topics=await in_slices(rows.merge(committed.topics)))


def _named(context: Context, topics: list[Topic], rows: TopicRows[TopicRow]) -> Slices[list[Topic]]:
    """Return the topics with both name and id, a zero id if the name is unknown. Unknown ids are added to `rows`."""
    known = context.image.topics
    named = []
    for topic in topics:
        yield
        if context.version < IDS_FROM:
            topic.topic_id = known.ids.get(topic.name, ZERO_UUID)
        elif topic.topic_id not in known.by_id:
            yield from rows.add_all([topic], ErrorCode.UNKNOWN_TOPIC_ID)
            continue
        else:
            topic.name = known.by_id[topic.topic_id].name
        named.append(topic)
    return named


def _topic_row(topic: Topic) -> TopicRow:
    return TopicRow(name=topic.name, topic_id=topic.topic_id)


def _partition_row(index: int, code: ErrorCode) -> OffsetCommitResponse.OffsetCommitResponsePartition:
    return OffsetCommitResponse.OffsetCommitResponsePartition(partition_index=index, error_code=code)
