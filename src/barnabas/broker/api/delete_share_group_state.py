"""DeleteShareGroupState (86), version 0.

Deletes the state of share partitions. One without a state is no error. For brokers; each partition has its own error.
Needs CLUSTER_ACTION on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.delete_share_group_state import DeleteShareGroupStateRequest, DeleteShareGroupStateResponse


async def handle(context: Context, request: DeleteShareGroupStateRequest) -> DeleteShareGroupStateResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.share_state.delete(request)
