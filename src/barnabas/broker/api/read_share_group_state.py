"""ReadShareGroupState (84), version 0.

Returns the state of share partitions. A newer leader epoch is recorded, and an older one is FENCED_LEADER_EPOCH. A
share partition that is not initialized is INVALID_REQUEST. For brokers; each partition has its own error. Needs
CLUSTER_ACTION on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.read_share_group_state import ReadShareGroupStateRequest, ReadShareGroupStateResponse


async def handle(context: Context, request: ReadShareGroupStateRequest) -> ReadShareGroupStateResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.share_state.read(request)
