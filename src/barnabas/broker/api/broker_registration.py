"""BrokerRegistration (62), versions 0 to 4; on the controller's listener.

A broker that starts asks for its epoch. It is refused while another incarnation is still heard of
(DUPLICATE_BROKER_REGISTRATION), in another cluster (INCONSISTENT_CLUSTER_ID), with directories that are missing, reserved,
named twice or another broker's (INVALID_REGISTRATION), and when it cannot work at the cluster's feature levels
(UNSUPPORTED_VERSION). From version 3 it tells the epoch it had when it stopped cleanly, so that it stays eligible to lead.
Brokers that migrate from ZooKeeper are not taken. Needs CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import brokers
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest, BrokerRegistrationResponse


async def handle(context: Context, request: BrokerRegistrationRequest) -> BrokerRegistrationResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    epoch = await context.controller.write(brokers.register, request, context.version)
    return BrokerRegistrationResponse(broker_epoch=epoch)
