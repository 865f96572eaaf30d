"""AllocateProducerIds (67), version 0; on the controller's listener.

Reserves the next block of 1000 producer ids for a broker. A broker epoch other than the registered one is
STALE_BROKER_EPOCH. Needs CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import producer_ids
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse


async def handle(context: Context, request: AllocateProducerIdsRequest) -> AllocateProducerIdsResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    block = await context.controller.write(producer_ids.allocate, request.broker_id, request.broker_epoch)
    return AllocateProducerIdsResponse(producer_id_start=block.first, producer_id_len=block.size)
