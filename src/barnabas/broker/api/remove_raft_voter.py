"""RemoveRaftVoter (81), version 0: removes a voter from a dynamic quorum."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.remove_raft_voter import RemoveRaftVoterRequest


async def handle(context: Context, request: RemoveRaftVoterRequest) -> Message:
    context.require_on_cluster(AclOperation.ALTER)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
