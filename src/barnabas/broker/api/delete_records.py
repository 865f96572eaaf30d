"""DeleteRecords (21), versions 0 to 2.

Needs DELETE on the topic. Moves the log start offset, so that readers no longer get records before it. Files are
deleted at the next retention run. -1 means the high watermark, above which nothing can be deleted
(OFFSET_OUT_OF_RANGE). Returns the log start offset. A topic with cleanup.policy=compact is POLICY_VIOLATION, an
internal one INVALID_TOPIC_EXCEPTION. If a partition is named twice, the last offset counts. Rows have the order of the
request (Kafka: of a hash table). The response waits until all replicas on live brokers have deleted as much, or fails with
REQUEST_TIMED_OUT, or with NOT_LEADER_OR_FOLLOWER when another broker becomes the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable
from typing import NamedTuple

from barnabas.broker.context import Context
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.replicas.partition import Partition
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Slices
from barnabas.storage import StorageError
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.delete_records import DeleteRecordsRequest, DeleteRecordsResponse

Topic = DeleteRecordsResponse.DeleteRecordsTopicResult
Row = DeleteRecordsResponse.DeleteRecordsPartitionResult


class Unfinished(NamedTuple):
    """A row of the response that is valid once the low watermark of the partition has reached the offset."""

    row: Row
    partition: Partition
    offset: int


def handle(
    context: Context, request: DeleteRecordsRequest
) -> Slices[DeleteRecordsResponse | Awaitable[DeleteRecordsResponse]]:
    asked: dict[str, dict[int, int]] = {}
    for topic in request.topics:
        yield
        offsets = asked.setdefault(topic.name, {})
        for each in topic.partitions:
            offsets[each.partition_index] = each.offset
            yield
    topics = []
    unfinished: list[Unfinished] = []
    for name, offsets in asked.items():
        yield
        may = context.may(AclOperation.DELETE, ResourceType.TOPIC, name)
        rows = []
        for index, offset in offsets.items():
            yield context.services.replicas.opening_of(name, index) if may else None
            rows.append(_row(context, may, name, index, offset, unfinished))
        if rows:
            topics.append(Topic(name=name, partitions=rows))
    response = DeleteRecordsResponse(topics=topics)
    return _wait(response, unfinished, request.timeout_ms) if unfinished else response


async def _wait(
    response: DeleteRecordsResponse, unfinished: list[Unfinished], timeout_ms: int
) -> DeleteRecordsResponse:
    waiting = list(unfinished)
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            while waiting:
                row, partition, offset = waiting[-1]
                try:
                    await partition.wait_deleted(offset)
                    row.low_watermark = partition.low_watermark
                except KafkaError as error:
                    row.error_code, row.low_watermark = error.code, -1
                waiting.pop()
    except TimeoutError:
        for row, partition, offset in waiting:
            if partition.low_watermark < offset:
                row.error_code, row.low_watermark = ErrorCode.REQUEST_TIMED_OUT, -1
    return response


def _row(context: Context, may: bool, name: str, index: int, offset: int, unfinished: list[Unfinished]) -> Row:
    row = Row(partition_index=index, low_watermark=-1)
    replicas = context.services.replicas
    try:
        if not may:
            raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
        topic = context.image.topics.get(name)
        if topic is None or not 0 <= index < len(topic.partitions):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if name in INTERNAL_TOPICS:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        partition = replicas.leader(name, index)
        try:
            offset = partition.delete_records(offset)
            row.low_watermark = partition.low_watermark
            if row.low_watermark < offset:
                unfinished.append(Unfinished(row, partition, offset))
        except StorageError as error:
            row.error_code = partition.read_failed(error)
    except KafkaError as error:
        row.error_code = error.code
    return row
