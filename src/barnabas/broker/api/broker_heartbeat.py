"""BrokerHeartbeat (63), versions 0 to 2; on the controller's listener.

A broker says that it lives, how far it has read the metadata log, whether it wants to be fenced or to stop, which of its
log directories have failed (from version 1) and which are cordoned (from version 2); it is told whether it is fenced and
whether it may stop. A broker that leads partitions may stop once they have other leaders and the others know it.
An epoch that is not the registration's is STALE_BROKER_EPOCH. Needs CLUSTER_ACTION.
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
    answer = await context.controller.write(brokers.heartbeat, request, timeout_ms=timeout_ms)
    return BrokerHeartbeatResponse(
        is_caught_up=answer.is_caught_up,
        is_fenced=answer.state.is_fenced,
        should_shut_down=answer.state is BrokerState.SHUTDOWN_NOW,
    )
