"""AssignReplicasToDirs (73), version 0; on the controller's listener.

A broker reports the log directories of its replicas. A replica in a directory that is not online is removed from the
ISR. Errors per partition: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, or NOT_LEADER_OR_FOLLOWER if the broker has no
replica. Errors of the whole request: STALE_BROKER_EPOCH, or UNSUPPORTED_VERSION below metadata.version 3.7-IV2. Needs
CLUSTER_ACTION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import replicas
from barnabas.security.acl import AclOperation
from barnabas.wire.messages.assign_replicas_to_dirs import AssignReplicasToDirsRequest, AssignReplicasToDirsResponse


async def handle(context: Context, request: AssignReplicasToDirsRequest) -> AssignReplicasToDirsResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.controller.write(replicas.assign_to_directories, request)
