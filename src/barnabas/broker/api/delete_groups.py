"""DeleteGroups (42), versions 0 to 2.

Deletes empty groups of any type with their offsets. Needs DELETE on each group. A group that does not exist is
GROUP_ID_NOT_FOUND, one with members NON_EMPTY_GROUP. A duplicate name gets one row. Refused groups come last.
"""

from __future__ import annotations

from itertools import compress

from barnabas.broker.context import Context
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, mapped, stepwise
from barnabas.wire import ErrorCode
from barnabas.wire.messages.delete_groups import DeleteGroupsRequest, DeleteGroupsResponse


def handle(context: Context, request: DeleteGroupsRequest) -> Slices[DeleteGroupsResponse]:
    names: dict[str, None] = {}
    for some in stepwise(request.groups_names):
        names.update(dict.fromkeys(some))
        yield
    may = yield from mapped(lambda name: context.may(AclOperation.DELETE, ResourceType.GROUP, name), names)
    rows = yield from context.services.groups.delete_groups(list(compress(names, may)))
    rows += [
        (name, ErrorCode.GROUP_AUTHORIZATION_FAILED)
        for name, is_allowed in zip(names, may, strict=True)
        if not is_allowed
    ]
    return DeleteGroupsResponse(results=(yield from mapped(_row, rows)))


def _row(row: tuple[str, ErrorCode]) -> DeleteGroupsResponse.DeletableGroupResult:
    return DeleteGroupsResponse.DeletableGroupResult(group_id=row[0], error_code=row[1])
