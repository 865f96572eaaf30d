"""Vote (52), versions 0 to 2: a candidate asks for a vote, or in a pre-vote asks if it would get one."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.vote import VoteRequest


async def handle(context: Context, request: VoteRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
