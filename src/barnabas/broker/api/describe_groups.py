"""DescribeGroups (15), versions 0 to 6.

Returns classic groups with their state, protocol and members, and while a group is stable with its members' metadata
and assignments. Needs DESCRIBE on each group. A group that does not exist or has another type is shown as Dead, from
version 6 on with GROUP_ID_NOT_FOUND. Refused groups come first, then the others in the order of the request (Kafka: of
a hash table of partitions).
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.classic.group import ClassicGroup
from barnabas.groups.classic.member import ClassicMember
from barnabas.groups.classic.state import State
from barnabas.groups.image import group_not_found
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_groups import DescribeGroupsRequest, DescribeGroupsResponse

OPERATIONS_FROM = 3
NOT_FOUND_FROM = 6

Row = DescribeGroupsResponse.DescribedGroup


def handle(context: Context, request: DescribeGroupsRequest) -> Slices[DescribeGroupsResponse]:
    refused, rows = [], []
    for group_id in request.groups:
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(Row(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
            continue
        try:
            row = yield from _described(context, group_id)
        except KafkaError as error:
            row = _failed(context, group_id, error)
        if request.include_authorized_operations and context.version >= OPERATIONS_FROM and not row.error_code:
            row.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
        rows.append(row)
    return DescribeGroupsResponse(groups=[*refused, *rows])


def _failed(context: Context, group_id: str, error: KafkaError) -> Row:
    if error.code is not ErrorCode.GROUP_ID_NOT_FOUND:
        return Row(group_id=group_id, error_code=error.code)
    row = Row(group_id=group_id, group_state=State.DEAD)
    if context.version >= NOT_FOUND_FROM:
        row.error_code, row.error_message = error.code, error.message
    return row


def _described(context: Context, group_id: str) -> Slices[Row]:
    group = context.services.groups.committed_group(group_id)
    if group is None:
        raise group_not_found(group_id)
    if not isinstance(group, ClassicGroup):
        raise KafkaError(ErrorCode.GROUP_ID_NOT_FOUND, f"Group {group_id} is not a classic group.")
    is_stable, name = group.state is State.STABLE, group.protocol_name

    def member_row(member: ClassicMember) -> DescribeGroupsResponse.DescribedGroupMember:
        return DescribeGroupsResponse.DescribedGroupMember(
            member_id=member.member_id,
            group_instance_id=member.group_instance_id,
            client_id=member.client_id,
            client_host=member.client_host,
            member_metadata=member.metadata(name) if is_stable else b"",
            member_assignment=member.assignment,
        )

    row = Row(
        group_id=group_id,
        group_state=group.state,
        protocol_type=group.protocol_type or "",
        protocol_data=(name or "") if is_stable else "",
    )
    row.members = yield from mapped(member_row, list(group.members))  # members may come and go meanwhile
    return row
