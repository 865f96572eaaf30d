"""EndQuorumEpoch (54), versions 0 to 1: a leader of the metadata quorum announces that it resigns."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.end_quorum_epoch import EndQuorumEpochRequest


async def handle(context: Context, request: EndQuorumEpochRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
