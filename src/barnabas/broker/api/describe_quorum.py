"""DescribeQuorum (55), versions 0 to 2: voters and observers of the metadata quorum, as its leader sees them.

Log end offsets, last fetch and last caught-up times; from version 2 directory ids, and the nodes with their listeners.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest


async def handle(context: Context, request: DescribeQuorumRequest) -> Message:
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        raise KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return await context.services.ask_quorum(request, context.version, context.listener.name)
