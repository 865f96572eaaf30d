"""DescribeQuorum (55), versions 0 to 2: voters and observers of the metadata quorum, from its leader.

Returns log end offsets, last fetch times and last caught-up times; from version 2 on also directory ids, and nodes with
their listeners.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.raft.messages import is_described, unknown_topic
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.wire import Message
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest


async def handle(context: Context, request: DescribeQuorumRequest) -> Message:
    context.require_on_cluster(AclOperation.DESCRIBE)
    if not is_described(request):  # such a request may have very many rows
        return await in_slices(unknown_topic(request))
    return await context.services.ask_quorum(request, context.version, context.listener.name)
