"""UnregisterBroker (64), version 0.

Forgets a broker that will not come back; it leaves every ISR. Whether it still runs is not asked: if so, it registers
again. One that is not known is BROKER_ID_NOT_REGISTERED. Needs ALTER on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import brokers
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest, UnregisterBrokerResponse


async def handle(context: Context, request: UnregisterBrokerRequest) -> UnregisterBrokerResponse:
    context.require_on_cluster(AclOperation.ALTER)
    await context.controller.write(brokers.unregister, request.broker_id)
    return UnregisterBrokerResponse(error_message="")
