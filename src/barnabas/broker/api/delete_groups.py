"""DeleteGroups (42), versions 0 to 2.

Deletes empty groups of any type with their offsets. Needs DELETE on each group. A group that does not exist is
GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP. A duplicate name gets one row. Refused groups come last.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.wire import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


async def handle(context: Context, request: DeleteGroupsRequest) -> DeleteGroupsResponse:
    names = list(dict.fromkeys(request.groups_names))
    allowed = [name for name in names if context.may(AclOperation.DELETE, ResourceType.GROUP, name)]
    rows = await context.services.groups.delete_groups(allowed)
    if len(allowed) < len(names):
        may = set(allowed)
        rows += [(name, ErrorCode.GROUP_AUTHORIZATION_FAILED) for name in names if name not in may]
    return DeleteGroupsResponse(
        results=[DeleteGroupsResponse.DeletableGroupResult(group_id=name, error_code=code) for name, code in rows]
    )
