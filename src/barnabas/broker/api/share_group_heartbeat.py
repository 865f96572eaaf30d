"""ShareGroupHeartbeat (76), version 1: the only request of members of share groups (KIP-932) to the group coordinator.

A member joins with epoch 0 and its topics, stays with the epoch of the last response, and leaves with -1. The response has
its partitions if they have changed, if it joins, or if the request has topics. A partition is assigned after its state was
initialized at the share coordinator, so the first response of a group has none. Needs READ on the group, and DESCRIBE on
each topic of the request. UNSUPPORTED_VERSION while `share.version` is 0.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.consumer_decision import Asker
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.slices import in_slices
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse

MAX_MEMBER_ID_LENGTH = 36


async def handle(context: Context, request: ShareGroupHeartbeatRequest) -> ShareGroupHeartbeatResponse:
    if not supports_share_groups(context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not 0 < len(request.member_id) <= MAX_MEMBER_ID_LENGTH:
        raise KafkaError(ErrorCode.INVALID_REQUEST)
    if request.subscribed_topic_names:
        await in_slices(_check_topics(context, request.subscribed_topic_names))
    asker = Asker(context.client_id or "", f"/{context.peer.host}")
    return await context.services.groups.share.heartbeat(request, asker)


def _check_topics(context: Context, names: list[str]) -> Slices[None]:
    for name in dict.fromkeys(names):
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
