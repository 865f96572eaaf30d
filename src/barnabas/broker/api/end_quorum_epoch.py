"""EndQuorumEpoch (54), versions 0 to 1: a leader of the metadata quorum tells that it stops leading."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest


async def handle(context: Context, request: EndQuorumEpochRequest) -> Message:
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
