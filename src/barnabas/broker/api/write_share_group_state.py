"""WriteShareGroupState (85), versions 0 and 1.

Merges delivery states into the states of share partitions. An older state or leader epoch is fenced. From version 1
on, the number of completed deliveries is recorded, from which lag is computed. For brokers; each partition has its
own error. Needs CLUSTER_ACTION on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse


async def handle(context: Context, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.share_state.write(request)
