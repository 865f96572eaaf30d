"""FetchSnapshot (59), versions 0 to 1: a chunk of a snapshot of the metadata log, for voters, observers and readers.

Only on the controller's listener. Needs CLUSTER_ACTION. Only the leader answers. The snapshot's id comes from a Fetch
response.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.fetch_snapshot import FetchSnapshotRequest


async def handle(context: Context, request: FetchSnapshotRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
