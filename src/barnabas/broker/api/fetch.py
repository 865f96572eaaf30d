"""Fetch (1), versions 4 to 18, on the controller's listener: the metadata log, for voters, observers and whoever wants to read.

The topic is `__cluster_metadata`, by name before version 13 and by id from there on. Waits up to `max_wait_ms` for records.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation
from barnabas.wire import Message
from barnabas.wire.messages.fetch import FetchRequest


async def handle(context: Context, request: FetchRequest) -> Message:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
