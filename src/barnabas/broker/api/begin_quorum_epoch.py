"""BeginQuorumEpoch (53), versions 0 to 1: a new leader of the metadata quorum tells that it leads."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest


async def handle(context: Context, request: BeginQuorumEpochRequest) -> Message:
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
