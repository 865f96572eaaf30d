"""ReadShareGroupStateSummary (87), versions 0 and 1.

Returns start offsets and epochs of share partitions, from version 1 on also the number of completed deliveries. One
that is not initialized has the start offset -1. For brokers; each partition has its own error. Needs CLUSTER_ACTION
on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.read_share_group_state_summary import (
    ReadShareGroupStateSummaryRequest,
    ReadShareGroupStateSummaryResponse,
)


async def handle(context: Context, request: ReadShareGroupStateSummaryRequest) -> ReadShareGroupStateSummaryResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.share_state.read_summary(request)
