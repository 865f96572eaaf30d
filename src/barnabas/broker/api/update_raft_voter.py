"""UpdateRaftVoter (82), version 0: a voter says where it is reached and which kraft.versions it can do."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest


async def handle(context: Context, request: UpdateRaftVoterRequest) -> Message:
    if not context.may(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
