"""ShareGroupDescribe (77), version 1: share groups with their members and assignments.

Needs DESCRIBE on each group, and on every topic assigned in it: otherwise the whole group is TOPIC_AUTHORIZATION_FAILED. A
group that does not exist or has another type is GROUP_ID_NOT_FOUND. Refused groups come first, then those without a name,
then the others in the order of the request (Kafka: of a hash table of partitions). UNSUPPORTED_VERSION while
`share.version` is 0.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.share.description import described
from barnabas.groups.share.heartbeat import share_group
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.share_state.coordinator import supports_share_groups
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.share_group_describe import ShareGroupDescribeRequest, ShareGroupDescribeResponse

Row = ShareGroupDescribeResponse.DescribedGroup


def handle(context: Context, request: ShareGroupDescribeRequest) -> Slices[ShareGroupDescribeResponse]:
    if not supports_share_groups(context.image):
        code = ErrorCode.UNSUPPORTED_VERSION
        failed = yield from mapped(lambda each: Row(group_id=each, error_code=code), request.group_ids)
        return ShareGroupDescribeResponse(groups=failed)
    refused, nameless, rows = [], [], []
    known: dict[str, Row] = {}  # a group that is asked for again is not described again
    for group_id in request.group_ids:
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.GROUP, group_id):
            refused.append(Row(group_id=group_id, error_code=ErrorCode.GROUP_AUTHORIZATION_FAILED))
        elif not group_id:
            nameless.append(Row(error_code=ErrorCode.INVALID_GROUP_ID))
        else:
            row = known.get(group_id)
            if row is None:
                wants_operations = request.include_authorized_operations
                row = known[group_id] = yield from _row(context, group_id, wants_operations=wants_operations)
            rows.append(row)
    return ShareGroupDescribeResponse(groups=[*refused, *nameless, *rows])


def _row(context: Context, group_id: str, *, wants_operations: bool) -> Slices[Row]:
    try:
        group = share_group(context.services.groups.committed_group(group_id), group_id)
        row = yield from described(group, context.image.topics)
    except KafkaError as error:
        has_text = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return Row(group_id=group_id, error_code=error.code, error_message=error.message if has_text else None)
    for name in (yield from _topics(row)):
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            message = "The group has described topic(s) that the client is not authorized to describe."
            return Row(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message)
    if wants_operations:
        row.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
    return row


def _topics(row: Row) -> Slices[list[str]]:
    names: set[str] = set()
    for member in row.members:
        names.update(topic.topic_name for topic in member.assignment.topic_partitions)
        yield
    return sorted(names)
