"""JoinGroup (11), versions 0 to 9.

Adds the caller to a classic group, or lets a member join the next generation. The response is sent when all members
have joined, or when those that have not are removed. Needs READ on the group. A caller without a member id is new. From
version 4 on it gets an id to join with (MEMBER_ID_REQUIRED), unless it has an instance id: then it replaces the member
with the same instance id, without a rebalance if the group is stable. The leader gets the list of members and sends the
assignments in SyncGroup. From version 9 on, a static leader that rejoins is told to skip that. All members need the
same protocol type and a common protocol (INCONSISTENT_GROUP_PROTOCOL). The session timeout must be within
`group.min/max.session.timeout.ms`, and the group's size within `group.max.size`.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.classic.requests import Join
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Breather
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.join_group import JoinGroupRequest, JoinGroupResponse

REBALANCE_TIMEOUT_FROM = 1
MEMBER_ID_REQUIRED_FROM = 4
NULL_PROTOCOL_FROM = 7
SKIP_ASSIGNMENT_FROM = 9


async def handle(context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    try:
        response = await _join(context, request)
    except KafkaError as error:
        response = JoinGroupResponse(error_code=error.code)
    if context.version >= NULL_PROTOCOL_FROM:
        response.protocol_name = response.protocol_name or None
    else:
        response.protocol_name = response.protocol_name or ""
    return response


async def _join(context: Context, request: JoinGroupRequest) -> JoinGroupResponse:
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_GROUP_ID, member_id=request.member_id)
    config = context.config
    least_ms, most_ms = (config.get_int(f"group.{which}.session.timeout.ms") for which in ("min", "max"))
    if not least_ms <= request.session_timeout_ms <= most_ms:
        return JoinGroupResponse(error_code=ErrorCode.INVALID_SESSION_TIMEOUT, member_id=request.member_id)
    protocols: dict[str, bytes] = {}
    others_first = Breather()
    for protocol in request.protocols:
        await others_first()
        protocols.setdefault(protocol.name, protocol.metadata)
    has_rebalance_timeout = context.version >= REBALANCE_TIMEOUT_FROM
    join = Join(
        request.member_id,
        request.group_instance_id,
        context.client_id or "",
        f"/{context.peer.host}",
        request.protocol_type,
        tuple(protocols.items()),
        request.rebalance_timeout_ms if has_rebalance_timeout else request.session_timeout_ms,
        request.session_timeout_ms,
        context.version >= MEMBER_ID_REQUIRED_FROM and request.group_instance_id is None and not request.member_id,
        context.version >= SKIP_ASSIGNMENT_FROM,
    )
    return await context.services.groups.join(request.group_id, join)
