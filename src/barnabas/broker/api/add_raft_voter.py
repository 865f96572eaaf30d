"""AddRaftVoter (80), versions 0 to 1: a controller becomes a voter of a dynamic quorum."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest


async def handle(context: Context, request: AddRaftVoterRequest) -> Message:
    if not context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
