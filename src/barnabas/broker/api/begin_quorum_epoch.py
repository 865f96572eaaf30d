"""BeginQuorumEpoch (53), versions 0 to 1: a new leader of the metadata quorum announces its leadership."""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.begin_quorum_epoch import BeginQuorumEpochRequest


async def handle(context: Context, request: BeginQuorumEpochRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
