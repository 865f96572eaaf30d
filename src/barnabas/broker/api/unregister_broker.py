"""UnregisterBroker (64), version 0.

Removes the registration of a broker that will not come back; it leaves every ISR. There is no check that the broker has
stopped: if it still runs, it registers again. An unknown broker is BROKER_ID_NOT_REGISTERED. Needs ALTER on the
cluster.
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
