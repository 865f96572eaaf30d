"""AssignReplicasToDirs (73), version 0; on the controller's listener.

A broker says in which of its log directories replicas are. A replica in a directory that is not online leaves the ISR.
Per partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER when the broker has no replica.
STALE_BROKER_EPOCH for all; UNSUPPORTED_VERSION below metadata.version 3.7-IV2. Needs CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import replicas
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


async def handle(context: Context, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.controller.write(replicas.assign_to_directories, request)
