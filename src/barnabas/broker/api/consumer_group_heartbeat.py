"""ConsumerGroupHeartbeat (68), versions 0 and 1: the only request of members of the consumer protocol (KIP-848).

A member joins with epoch 0 and its subscription, stays with the epoch of the last response, and leaves with -1. A
static member that will return soon leaves with -2. Fields that are not set leave the previous values unchanged. The
response has the member's epoch. It also has the assignment if that has changed, or if the request had all fields. Needs
READ on the group and DESCRIBE on the topics that the member names. Of the topics that match its regular expression
(RE2, version 1), it gets those that it may DESCRIBE. From version 1 on, members create their own ids.
UNSUPPORTED_VERSION while `group.version` is 0 or the protocol is not in `group.coordinator.rebalance.protocols`.
"""

from __future__ import annotations

from functools import partial

from barnabas.broker.context import Context
from barnabas.groups.consumer_decision import Asker
from barnabas.groups.consumer_settings import is_consumer_protocol_enabled
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_heartbeat import (
    ConsumerGroupHeartbeatRequest,
    ConsumerGroupHeartbeatResponse,
)


async def handle(context: Context, request: ConsumerGroupHeartbeatRequest) -> ConsumerGroupHeartbeatResponse:
    if not is_consumer_protocol_enabled(context.config, context.image):
        raise KafkaError(ErrorCode.UNSUPPORTED_VERSION)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    others_first = Breather()
    for name in request.subscribed_topic_names or ():
        await others_first()
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    asker = Asker(context.client_id or "", f"/{context.peer.host}")
    consumer = context.services.groups.consumer
    may_describe = partial(context.is_allowed, AclOperation.DESCRIBE, ResourceType.TOPIC)
    return await consumer.consumer_heartbeat(request, context.version, asker, may_describe)
