"""OffsetDelete (47), version 0.

Needs DELETE on the group and READ on each topic. Forgets what a group committed for partitions of topics that none of its
members is subscribed to; others are GROUP_SUBSCRIBED_TO_TOPIC. The group has to be there (GROUP_ID_NOT_FOUND), and
unless it is one of consumers to be empty (NON_EMPTY_GROUP). Partitions without an offset are no error.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.offset_topics import TopicRows, touchable
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.offset_delete import OffsetDeleteRequest, OffsetDeleteResponse

TopicRow = OffsetDeleteResponse.OffsetDeleteResponseTopic


async def handle(context: Context, request: OffsetDeleteRequest) -> OffsetDeleteResponse:
    if not context.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    rows = TopicRows(_topic_row, _partition_row)
    request.topics = touchable(context, request.topics, rows)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    deleted = await context.services.groups.delete_offsets(request)
    return OffsetDeleteResponse(topics=rows.merge(deleted.topics))


def _topic_row(topic: OffsetDeleteRequest.OffsetDeleteRequestTopic) -> TopicRow:
    return TopicRow(name=topic.name)


def _partition_row(index: int, code: ErrorCode) -> OffsetDeleteResponse.OffsetDeleteResponsePartition:
    return OffsetDeleteResponse.OffsetDeleteResponsePartition(partition_index=index, error_code=code)
