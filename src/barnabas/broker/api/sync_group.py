"""SyncGroup (14), versions 0 to 5.

A member of a classic group that has joined asks what is assigned to it; the leader brings the assignments of all. Needs
READ on the group. Answered once the leader's are written to the log: until then everyone waits. UNKNOWN_MEMBER_ID,
FENCED_INSTANCE_ID and ILLEGAL_GENERATION tell a caller that it has missed something, REBALANCE_IN_PROGRESS that it has to
join again. From version 5 on the protocol that was chosen has to be named, and must be the group's
(INCONSISTENT_GROUP_PROTOCOL).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.classic.requests import Sync
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.sync_group import SyncGroupRequest, SyncGroupResponse

PROTOCOL_FROM = 5


async def handle(context: Context, request: SyncGroupRequest) -> SyncGroupResponse:
    if context.version >= PROTOCOL_FROM and None in (request.protocol_type, request.protocol_name):
        raise KafkaError(ErrorCode.INCONSISTENT_GROUP_PROTOCOL)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    sync = Sync(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        {each.member_id: each.assignment for each in request.assignments},
    )
    return await context.services.groups.sync(request.group_id, sync)
