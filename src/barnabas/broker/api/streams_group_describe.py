"""StreamsGroupDescribe (89), version 0: streams groups with their topology, members and tasks.

Needs DESCRIBE on each group, and on every topic of its topology: otherwise the whole group is
TOPIC_AUTHORIZATION_FAILED. A group that does not exist or has another protocol is GROUP_ID_NOT_FOUND. Refused groups come
first, then those without a name, then the others in the order of the request (Kafka: of a hash table of partitions).
UNSUPPORTED_VERSION if the protocol is not enabled, as for StreamsGroupHeartbeat.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.groups.image import group_not_found
from barnabas.groups.streams.description import described
from barnabas.groups.streams.group import StreamsGroup
from barnabas.groups.streams.heartbeat import not_a_streams_group
from barnabas.groups.streams.settings import is_streams_protocol_enabled
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.streams_group_describe import StreamsGroupDescribeRequest, StreamsGroupDescribeResponse

Row = StreamsGroupDescribeResponse.DescribedGroup


def handle(context: Context, request: StreamsGroupDescribeRequest) -> Slices[StreamsGroupDescribeResponse]:
    if not is_streams_protocol_enabled(context.config, context.image):
        code = ErrorCode.UNSUPPORTED_VERSION
        failed = yield from mapped(lambda each: Row(group_id=each, error_code=code), request.group_ids)
        return StreamsGroupDescribeResponse(groups=failed)
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
    return StreamsGroupDescribeResponse(groups=[*refused, *nameless, *rows])


def _row(context: Context, group_id: str, *, wants_operations: bool) -> Slices[Row]:
    groups = context.services.groups
    try:
        group = groups.committed_group(group_id)
        if group is None:
            raise group_not_found(group_id)
        if not isinstance(group, StreamsGroup):
            raise not_a_streams_group(group_id)
        row = yield from described(group, groups.streams.configured(group_id))
    except KafkaError as error:
        has_text = error.code is ErrorCode.GROUP_ID_NOT_FOUND
        return Row(group_id=group_id, error_code=error.code, error_message=error.message if has_text else None)
    for name in sorted(_topics(row)):
        yield
        if not context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name):
            message = "The described group uses topics that the client is not authorized to describe."
            return Row(group_id=group_id, error_code=ErrorCode.TOPIC_AUTHORIZATION_FAILED, error_message=message)
    if wants_operations:
        row.authorized_operations = context.authorized_operations(ResourceType.GROUP, group_id)
    return row


def _topics(row: Row) -> set[str]:
    names: set[str] = set()
    if row.topology is not None:
        for each in row.topology.subtopologies or ():
            names.update(each.source_topics, each.repartition_sink_topics)
            names.update(info.name for info in each.repartition_source_topics)
            names.update(info.name for info in each.state_changelog_topics)
    return names
