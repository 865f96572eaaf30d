"""BrokerHeartbeat (63), versions 0 to 2; on the controller's listener.

A broker reports that it is alive, how far it has read the metadata log, if it wants to be fenced or to shut down, which
of its log directories have failed (from version 1 on) and which are cordoned (from version 2 on). The response states
if it is fenced and if it may shut down. A broker that leads partitions may shut down once they have other leaders and
the other brokers have read that. A broker epoch other than the registered one is STALE_BROKER_EPOCH. Needs
CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import brokers
from barnabas.controller.heartbeats import BrokerState
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest, BrokerHeartbeatResponse


async def handle(context: Context, request: BrokerHeartbeatRequest) -> BrokerHeartbeatResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    timeout_ms = context.config.get_int("broker.heartbeat.interval.ms") // 2
    with context.controller.heard(request.broker_id, request.broker_epoch):
        answer = await context.controller.write(brokers.heartbeat, request, timeout_ms=timeout_ms)
    return BrokerHeartbeatResponse(
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.state.is_fenced,
        should_shut_down=answer.state is BrokerState.SHUTDOWN_NOW,
    )
