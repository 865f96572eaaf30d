"""ListGroups (16), versions 0 to 5.

Lists the groups of all types that this broker coordinates, sorted by name. Without DESCRIBE on the cluster, only the
groups that the caller may DESCRIBE. From version 4 on with states and a filter by state, from version 5 on with types
and a filter by type. Filters ignore case, and an unknown state or type matches nothing.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse


def handle(context: Context, request: ListGroupsRequest) -> Slices[ListGroupsResponse]:
    states = {state.lower().strip() for state in request.states_filter}
    types = {name.lower().strip() for name in request.types_filter}
    may_all = context.is_allowed(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME)
    rows = []
    for group in (yield from context.services.groups.listed()):
        yield
        if (
            (not states or group.state.lower() in states)
            and (not types or group.type in types)
            and (may_all or context.is_allowed(AclOperation.DESCRIBE, ResourceType.GROUP, group.group_id))
        ):
            rows.append(
                ListGroupsResponse.ListedGroup(
                    group_id=group.group_id,
                    protocol_type=group.protocol_type or "",
                    group_state=group.state,
                    group_type=group.type,
                )
            )
    return ListGroupsResponse(groups=rows)
