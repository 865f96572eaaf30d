"""ConsumerGroupDescribe (69), versions 0 and 1: groups of the consumer protocol with their members and assignments.

Needs DESCRIBE on each group, and on every topic assigned in it: otherwise the whole group is
TOPIC_AUTHORIZATION_FAILED. A group that does not exist or has another protocol is GROUP_ID_NOT_FOUND. Version 1 marks
members that use the classic protocol. Refused groups come first, then those without a name, then the others in the
order of the request (Kafka: of a hash table of partitions). UNSUPPORTED_VERSION if the protocol is not enabled, as for
ConsumerGroupHeartbeat.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.consumer_description import described
from barnabas.groups.consumer_group import ConsumerGroup
from barnabas.groups.consumer_heartbeat import not_a_consumer_group
from barnabas.groups.consumer_settings import is_consumer_protocol_enabled
from barnabas.groups.image import group_not_found
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.consumer_group_describe import ConsumerGroupDescribeRequest, ConsumerGroupDescribeResponse

Row = ConsumerGroupDescribeResponse.DescribedGroup


def handle(context: Context, request: ConsumerGroupDescribeRequest) -> Slices[ConsumerGroupDescribeResponse]:
    if not is_consumer_protocol_enabled(context.config, context.image):
        code = ErrorCode.UNSUPPORTED_VERSION
        failed = yield from mapped(lambda each: Row(group_id=each, error_code=code), request.group_ids)
        return ConsumerGroupDescribeResponse(groups=failed)
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
    return ConsumerGroupDescribeResponse(groups=[*refused, *nameless, *rows])


def _row(context: Context, group_id: str, *, wants_operations: bool) -> Slices[Row]:
    try:
        row = yield from _described(context, group_id)
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


def _described(context: Context, group_id: str) -> Slices[Row]:
    groups = context.services.groups
    group = groups.committed_group(group_id)
    if group is None:
        raise group_not_found(group_id)
    if not isinstance(group, ConsumerGroup):
        raise not_a_consumer_group(group_id)
    return (yield from described(group, groups.consumer.settings(group_id).assignors[0], context.image.topics))


def _topics(row: Row) -> Slices[set[str]]:
    names: set[str] = set()
    for member in row.members:
        for assignment in (member.assignment, member.target_assignment):
            names.update(topic.topic_name for topic in assignment.topic_partitions)
        yield
    return names
