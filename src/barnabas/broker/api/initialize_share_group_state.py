"""InitializeShareGroupState (83), version 0.

Sets start offset and state epoch of share partitions, and forgets their delivery states. An older state epoch is
FENCED_STATE_EPOCH. For brokers; each partition has its own error. Needs CLUSTER_ACTION on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.initialize_share_group_state import (
    InitializeShareGroupStateRequest,
    InitializeShareGroupStateResponse,
)


async def handle(context: Context, request: InitializeShareGroupStateRequest) -> InitializeShareGroupStateResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.share_state.initialize(request)
