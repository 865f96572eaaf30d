"""AlterShareGroupOffsets (91), version 0: sets the start offsets of partitions for a share group.

The group must have no members (NON_EMPTY_GROUP); it is created if it does not exist. What was delivered before is forgotten.
Needs READ on the group and on each topic. Rows of topics that are refused or do not exist come first. UNSUPPORTED_VERSION
while `share.version` is 0.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)

Topic = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponseTopic
Row = AlterShareGroupOffsetsResponse.AlterShareGroupOffsetsResponsePartition


async def handle(context: Context, request: AlterShareGroupOffsetsRequest) -> AlterShareGroupOffsetsResponse:
    if not supports_share_groups(context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused = await in_slices(_refuse(context, request))
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    rows = await context.services.groups.share.alter_offsets(request)
    return AlterShareGroupOffsetsResponse(responses=[*refused, *rows])


def _refuse(context: Context, request: AlterShareGroupOffsetsRequest) -> Slices[list[Topic]]:
    """Take the topics that may not be altered out of the request, and return their rows."""
    refused, allowed = [], []
    ids = context.image.topics.ids
    for topic in request.topics:
        yield
        if not context.may(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic.topic_name not in ids:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        else:
            allowed.append(topic)
            continue
        row = Topic(topic_name=topic.topic_name)
        if topic.topic_name in ids:
            row.topic_id = ids[topic.topic_name]
        for each in topic.partitions:
            yield
            row.partitions.append(
                Row(partition_index=each.partition_index, error_code=code, error_message=code.message)
            )
        refused.append(row)
    request.topics = allowed
    return refused
