"""AddRaftVoter (80), versions 0 to 1: adds a controller to the voters of a dynamic quorum."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.add_raft_voter import AddRaftVoterRequest


async def handle(context: Context, request: AddRaftVoterRequest) -> Message:
    context.require_on_cluster(AclOperation.ALTER)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
