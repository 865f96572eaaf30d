"""SyncGroup (14), versions 0 to 5.

Returns the assignment of a member of a classic group that has joined. The leader's request has the assignments of all
members. Needs READ on the group. All members wait until the leader's assignments are written to the log.
UNKNOWN_MEMBER_ID, FENCED_INSTANCE_ID and ILLEGAL_GENERATION mean that the caller is not a member of this generation;
REBALANCE_IN_PROGRESS means that it must join again. From version 5 on, the request must name the group's protocol
(INCONSISTENT_GROUP_PROTOCOL).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.classic.requests import Sync
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Breather
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
    assignments: dict[str, bytes] = {}
    others_first = Breather()
    for each in request.assignments:
        await others_first()
        assignments[each.member_id] = each.assignment
    sync = Sync(
        request.member_id,
        request.group_instance_id,
        request.generation_id,
        request.protocol_type,
        request.protocol_name,
        assignments,
    )
    return await context.services.groups.sync(request.group_id, sync)
