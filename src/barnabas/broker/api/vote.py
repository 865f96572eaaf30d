"""Vote (52), versions 0 to 2: a controller asks for a vote, or, before that, whether it would get one."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.vote import VoteRequest


async def handle(context: Context, request: VoteRequest) -> Message:
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
