"""LeaveGroup (13), versions 0 to 5; from version 3 on for several members.

Removes members from a classic group: by member id, or static ones by instance id alone. Needs READ on the group. Each
member has its own error, UNKNOWN_MEMBER_ID also if the group does not exist; before version 3 it is the top-level
error. The reason in version 5 is only logged.
"""

from __future__ import annotations

import logging

from barnabas.broker.context import Context
from barnabas.groups.classic.requests import Leaver
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.leave_group import LeaveGroupRequest, LeaveGroupResponse

_log = logging.getLogger(__name__)

SEVERAL_FROM = 3


async def handle(context: Context, request: LeaveGroupRequest) -> LeaveGroupResponse:
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    if context.version >= SEVERAL_FROM:
        leavers = await in_slices(mapped(lambda each: Leaver(each.member_id, each.group_instance_id), request.members))
    else:
        leavers = [Leaver(request.member_id, None)]
    errors = await context.services.groups.leave(request.group_id, leavers)
    await in_slices(_log_reasons(request, errors))
    if context.version < SEVERAL_FROM:
        return LeaveGroupResponse(error_code=errors[0])
    rows = await in_slices(mapped(lambda each: _row(*each), zip(leavers, errors, strict=True)))
    return LeaveGroupResponse(members=rows)


def _log_reasons(request: LeaveGroupRequest, errors: list[ErrorCode]) -> Slices[None]:
    """Log why members have left. Members that do not exist have no line."""
    for each, error in zip(request.members, errors, strict=False):
        if not error:
            name = each.member_id or each.group_instance_id
            _log.info("group %s: %s has left: %s", request.group_id, name, each.reason)
        yield


def _row(leaver: Leaver, error: ErrorCode) -> LeaveGroupResponse.MemberResponse:
    member_id, instance_id = leaver
    return LeaveGroupResponse.MemberResponse(member_id=member_id, group_instance_id=instance_id, error_code=error)
