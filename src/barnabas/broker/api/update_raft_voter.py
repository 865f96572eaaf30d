"""UpdateRaftVoter (82), version 0: a voter reports its listeners and the kraft.versions that it supports."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.update_raft_voter import UpdateRaftVoterRequest


async def handle(context: Context, request: UpdateRaftVoterRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
