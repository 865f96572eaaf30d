"""ListGroups (16), versions 0 to 5.

Lists the groups of all types that this broker coordinates, sorted by name. Without DESCRIBE on the cluster, only the
groups that the caller may DESCRIBE. From version 4 on with states and a filter by state, from version 5 on with types
and a filter by type. Filters ignore case, and an unknown state or type matches nothing. A streams group that is not ready is
found by its state, NotReady, and by not_ready, the only one that Kafka 4.3.1 finds it by.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.streams.group import State
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, stepwise
from barnabas.wire.messages.list_groups import ListGroupsRequest, ListGroupsResponse

NOT_READY_IN_KAFKA = "not_ready"


def handle(context: Context, request: ListGroupsRequest) -> Slices[ListGroupsResponse]:
    states = yield from _words(request.states_filter)
    if NOT_READY_IN_KAFKA in states:
        states.add(State.NOT_READY.lower())
    types = yield from _words(request.types_filter)
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


def _words(asked: list[str]) -> Slices[set[str]]:
    words: set[str] = set()
    for some in stepwise(asked):
        words.update(word.lower().strip() for word in some)
        yield
    return words
