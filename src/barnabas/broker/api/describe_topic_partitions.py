"""DescribeTopicPartitions (75), version 0.

Returns topics by name, or all if none is named, sorted, with their eligible leader replicas. A response has at most
`response_partition_limit` partitions (at least 1, at most max.request.partition.size.limit) and a cursor for the next
request. The cursor is a topic, which need not exist, and a partition index. A cursor whose topic is not among the
requested ones, or with a negative partition, is INVALID_REQUEST for every topic. An empty name without a cursor is
UNKNOWN_SERVER_ERROR for every topic, as in Kafka. Topics that the caller may not DESCRIBE come last with an error if
they are named, and are left out otherwise.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable, Iterator
from functools import partial
from itertools import compress
from operator import not_

from barnabas.broker.context import Context
from barnabas.broker.encoded_topics import DESCRIBE_TOPIC_PARTITIONS, TopicsView
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.config.topic_names import is_valid
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.steps import Slices, in_order, mapped, stepwise
from barnabas.wire import ErrorCode, encode
from barnabas.wire.messages.describe_topic_partitions import (
    DescribeTopicPartitionsRequest,
    DescribeTopicPartitionsResponse,
)

Cursor = DescribeTopicPartitionsResponse.Cursor

_LIST_AT = 4  # the topics follow the throttle time


def handle(
    context: Context, request: DescribeTopicPartitionsRequest
) -> Slices[DescribeTopicPartitionsResponse | bytes]:
    cursor = request.cursor
    start = "" if cursor is None else cursor.topic_name
    if cursor is not None and cursor.partition_index < 0:
        return _failed(request, ErrorCode.INVALID_REQUEST)
    allowed: Iterable[str]
    refused: list[str] = []
    if request.topics:
        found: set[str] = set()
        for some in stepwise(request.topics):
            found.update(topic.name for topic in some if topic.name >= start)
            yield
        names = yield from in_order(found)
        if cursor is not None and start not in found:
            return _failed(request, ErrorCode.INVALID_REQUEST)
        may = yield from mapped(partial(_may_describe, context), names)
        allowed = list(compress(names, may))
        refused = list(compress(names, map(not_, may)))
        if cursor is None and "" in allowed:
            return _failed(request, ErrorCode.UNKNOWN_SERVER_ERROR)
    else:
        allowed = _all_from(context, start)
    view = context.services.encoded_topics.view(DESCRIBE_TOPIC_PARTITIONS, context.listener.name, context.image.brokers)
    rows, next_cursor = yield from _page(context, request, view, allowed)
    rows += [view.failed(ErrorCode.TOPIC_AUTHORIZATION_FAILED, name) + view.ending() for name in refused]
    body = encode(DescribeTopicPartitionsResponse(next_cursor=next_cursor), context.version)
    return b"".join((body[:_LIST_AT], view.length(len(rows)), *rows, body[_LIST_AT + 1 :]))


def _failed(request: DescribeTopicPartitionsRequest, code: ErrorCode) -> DescribeTopicPartitionsResponse:
    topic = DescribeTopicPartitionsResponse.DescribeTopicPartitionsResponseTopic
    return DescribeTopicPartitionsResponse(topics=[topic(error_code=code, name=each.name) for each in request.topics])


def _may_describe(context: Context, name: str) -> bool:
    return context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, name)


def _all_from(context: Context, start: str) -> Iterator[str]:
    """Yield the names lazily, so that a page costs only its own size."""
    names = context.image.topics.names
    for at in range(bisect_left(names, start), len(names)):
        if context.is_allowed(AclOperation.DESCRIBE, ResourceType.TOPIC, names[at]):
            yield names[at]


def _page(
    context: Context, request: DescribeTopicPartitionsRequest, view: TopicsView, names: Iterable[str]
) -> Slices[tuple[list[bytes], Cursor | None]]:
    """Return the topics of this response, and the cursor of the next one."""
    topics, cursor = context.image.topics, request.cursor
    left = max(min(request.response_partition_limit, context.config.get_int("max.request.partition.size.limit")), 1)
    operations = context.authorized_operations(ResourceType.TOPIC, "") if context.may_everything else None
    rows: list[bytes] = []
    for name in names:
        yield
        if left == 0:
            return rows, Cursor(topic_name=name)
        if operations is None:
            ending = view.ending(context.authorized_operations(ResourceType.TOPIC, name))
        else:
            ending = view.ending(operations)
        topic = topics.get(name)
        if topic is None:
            code = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if is_valid(name) else ErrorCode.INVALID_TOPIC_EXCEPTION
            rows.append(view.failed(code, name, internal=name in INTERNAL_TOPICS) + ending)
            continue
        first = cursor.partition_index if cursor is not None and cursor.topic_name == name else 0
        end = min(len(topic.partitions), first + left)
        rows.append(view.page(topic, first, end) + ending)
        if end < len(topic.partitions):
            return rows, Cursor(topic_name=name, partition_index=end)
        left -= max(end - first, 0)
    return rows, None
