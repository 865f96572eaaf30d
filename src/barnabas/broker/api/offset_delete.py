"""OffsetDelete (47), version 0.

Needs DELETE on the group and READ on each topic. Deletes a group's committed offsets for partitions of topics to which
no member is subscribed; others are GROUP_SUBSCRIBED_TO_TOPIC. The group must exist (GROUP_ID_NOT_FOUND). A classic
group whose protocol type is not "consumer" must be empty (NON_EMPTY_GROUP). A partition without a committed offset is
no error.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.offset_topics import TopicRows, touchable
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

TopicRow = OffsetDeleteResponse.OffsetDeleteResponseTopic


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not context.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    rows = TopicRows(_topic_row, _partition_row)
    request.topics = await in_slices(touchable(context, request.topics, rows))
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    deleted = await context.services.groups.delete_offsets(request)
    return OffsetDeleteResponse(topics=await in_slices(rows.merge(deleted.topics)))


def _topic_row(topic: OffsetDeleteRequest.OffsetDeleteRequestTopic) -> TopicRow:
    return TopicRow(name=topic.name)


def _partition_row(index: int, code: ErrorCode) -> OffsetDeleteResponse.OffsetDeleteResponsePartition:
    return OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=code)
