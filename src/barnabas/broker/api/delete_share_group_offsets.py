"""DeleteShareGroupOffsets (92), version 0: deletes the offsets of topics for a share group.

The group must exist (GROUP_ID_NOT_FOUND) and have no members (NON_EMPTY_GROUP). Needs DELETE on the group and READ on each
topic. UNSUPPORTED_VERSION while `share.version` is 0.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)

Row = DeleteShareGroupOffsetsResponse.DeleteShareGroupOffsetsResponseTopic


async def handle(context: Context, request: DeleteShareGroupOffsetsRequest) -> DeleteShareGroupOffsetsResponse:
    if not supports_share_groups(context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.DELETE, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    refused = await in_slices(_refuse(context, request))
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    rows = await context.services.groups.share.delete_offsets(request)
    return DeleteShareGroupOffsetsResponse(responses=[*refused, *rows])


def _refuse(context: Context, request: DeleteShareGroupOffsetsRequest) -> Slices[list[Row]]:
    """Take the topics that the caller may not read out of the request, and return their rows."""
    refused, allowed = [], []
    code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    for topic in request.topics:
        yield
        if context.may(AclOperation.READ, ResourceType.TOPIC, topic.topic_name):
            allowed.append(topic)
        else:
            refused.append(Row(topic_name=topic.topic_name, error_code=code, error_message=code.message))
    request.topics = allowed
    return refused
