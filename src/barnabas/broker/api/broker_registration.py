"""BrokerRegistration (62), versions 0 to 4; on the controller's listener.

A starting broker registers and gets its broker epoch. Refused are: a broker id whose other incarnation still sends
heartbeats (DUPLICATE_BROKER_REGISTRATION); another cluster id (INCONSISTENT_CLUSTER_ID); log directories that are
missing, reserved, duplicate or another broker's (INVALID_REGISTRATION); and a broker that does not support the
cluster's feature levels (UNSUPPORTED_VERSION). From version 3 on, the broker sends its epoch before a clean shutdown,
and then stays eligible to lead. Brokers that migrate from ZooKeeper are refused. Needs CLUSTER_ACTION.
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
