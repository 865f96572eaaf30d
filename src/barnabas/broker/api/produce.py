"""Produce (0), versions 3 to 13.

Needs WRITE on each topic, and WRITE on the transactional id if there are records of a transaction. Each partition's
batch is validated and appended as received, byte for byte. With acks=all the response waits until all in-sync replicas
have the batches, or fails with REQUEST_TIMED_OUT, or at once when another broker becomes the leader. Topics have names
up to version 12 and ids from 13 on. With acks=0 there is no response, and an error closes the connection. Errors are per
partition. The whole request fails only without permission on the transactional id, or if its transactional batches have
different producers. Rows have the order of the request (Kafka: of a hash table).
"""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Iterable
from typing import NamedTuple

from barnabas.batches import BatchHeader, InvalidBatch, check_produce
from barnabas.batches.format import Buffer
from barnabas.broker.context import Context
from barnabas.broker.current_leader import tell_leader
from barnabas.broker.dispatch import Refused
from barnabas.broker.transactional_produce import (
    NOTHING_VERIFIED,
    Verified,
    decode_headers,
    is_transactional,
    verify,
)
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.replicas.partition import Partition
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Slices, in_slices
from barnabas.steps import ROWS_PER_STEP
from barnabas.storage import AppendInfo, TopicPartition
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.produce import ProduceRequest, ProduceResponse

Row = ProduceResponse.PartitionProduceResponse
Topic = ProduceResponse.TopicProduceResponse
Answer = ProduceResponse | None

ACKS = (-1, 0, 1)
ADMIN_CLIENT_ID = "__admin_client"
FIRST_WITH_TOPIC_IDS = 13
FIRST_WITH_LEADERS = 10
# Kafka sends the log start offset with every error except these.
_BARE = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.MESSAGE_TOO_LARGE,
        ErrorCode.RECORD_LIST_TOO_LARGE,
        ErrorCode.CORRUPT_MESSAGE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INVALID_TOPIC_EXCEPTION,
        ErrorCode.INVALID_REQUIRED_ACKS,
    }
)


class Uncommitted(NamedTuple):
    """A row of the response that is valid once the partition's high watermark has passed the offset."""

    row: Row
    partition: Partition
    offset: int


def handle(context: Context, request: ProduceRequest) -> Slices[Answer | Awaitable[Answer]]:
    context.is_exempt = request.acks == 0
    if (yield from is_transactional(request)):
        return _throttled(context, _handle_transactional(context, request))
    answer = yield from _handle(context, request, NOTHING_VERIFIED, ())
    if context.services.quotas.produce.bounds.is_any:
        if inspect.isawaitable(answer):
            return _throttled(context, answer)
        _apply_quota(context)
    return answer


async def _throttled(context: Context, answer: Awaitable[Answer]) -> Answer:
    try:
        return await answer
    finally:
        _apply_quota(context)


def _apply_quota(context: Context) -> None:
    quota = context.services.quotas.produce
    if quota.bounds.is_any:
        now_ms, user = context.services.monotonic_ms(), context.peer.principal.name
        context.throttle(quota, quota.record(user, context.client_id, context.request_bytes, now_ms))


async def _handle_transactional(context: Context, request: ProduceRequest) -> Answer:
    headers = await in_slices(decode_headers(request))
    try:
        verified = await verify(context, request, headers)
    except KafkaError as error:
        if request.acks == 0:
            raise _refused(context, error.code) from error
        raise
    answer = await in_slices(_handle(context, request, verified, headers))
    return await answer if inspect.isawaitable(answer) else answer


def _handle(
    context: Context, request: ProduceRequest, verified: Verified, headers: Iterable[BatchHeader | None]
) -> Slices[Answer | Awaitable[Answer]]:
    """Append the batches. `headers` are those already decoded, in the order of the request."""
    decoded = iter(headers)
    replicas = context.services.replicas
    topics: list[Topic] = []
    uncommitted: list[Uncommitted] = []
    for topic_data in request.topic_data:
        if topics:
            yield
        rows: list[Row] = []
        name, error = _name(context, topic_data.name, topic_data.topic_id)
        traffic = replicas.traffic.get(name)
        for data in topic_data.partition_data:
            row = Row(index=data.index, base_offset=-1, log_append_time_ms=-1, log_start_offset=-1)
            rows.append(row)
            header = next(decoded, None)
            if error is not None:
                row.error_code = error
                yield
            else:
                partition = replicas.get(name, data.index)
                opening = None if partition is None else partition.opening()
                if opening is not None or len(rows) > 1:
                    yield opening
                    partition = replicas.get(name, data.index)
                yield from _append(
                    context, request.acks, name, partition, data.records, header, row, uncommitted, verified
                )
            traffic.produce_requests += 1
            if row.error_code:
                traffic.failed_produce_requests += 1
                traffic.bytes_rejected += len(data.records or b"")
            data.records = None  # a view of the whole frame, which must not stay in memory while the response waits
        topics.append(Topic(name=topic_data.name, topic_id=topic_data.topic_id, partition_responses=rows))
    return (yield from _respond(context, request, ProduceResponse(responses=topics), uncommitted))


def _respond(
    context: Context, request: ProduceRequest, response: ProduceResponse, uncommitted: list[Uncommitted]
) -> Slices[Answer | Awaitable[Answer]]:
    failed = None
    count = 0
    for topic in response.responses:
        count += 1
        for row in topic.partition_responses:
            count += 1
            if count >= ROWS_PER_STEP:
                count = 0
                yield
            if row.error_code:
                failed = failed or ErrorCode(row.error_code)
                if context.version >= FIRST_WITH_LEADERS:
                    _tell_leader(context, response, topic, row)
    if request.acks == 0:
        if failed is not None:
            raise _refused(context, failed)
        return None
    if uncommitted:
        return _wait(context, response, uncommitted, request)
    return response


def _refused(context: Context, code: ErrorCode) -> Refused:
    return Refused(f"Produce with acks=0 from client {context.client_id!r} failed: {code.name}")


def _name(context: Context, name: str, topic_id: Uuid) -> tuple[str, ErrorCode | None]:
    if context.version >= FIRST_WITH_TOPIC_IDS:
        topic = context.image.topics.by_id.get(topic_id)
        if topic is None:
            return "", ErrorCode.UNKNOWN_TOPIC_ID
        name = topic.name
    if not context.may(AclOperation.WRITE, ResourceType.TOPIC, name):
        return name, ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return name, None


def _append(
    context: Context,
    acks: int,
    name: str,
    partition: Partition | None,
    records: Buffer | None,
    header: BatchHeader | None,
    row: Row,
    uncommitted: list[Uncommitted],
    verified: Verified,
) -> Slices[None]:
    try:
        if partition is None and not _exists(context, name, row.index):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        checked = check_produce(records, context.version, header)
        if isinstance(checked, InvalidBatch):
            row.error_code = checked.error_code
            return
        if acks not in ACKS:
            raise KafkaError(ErrorCode.INVALID_REQUIRED_ACKS)
        if name in INTERNAL_TOPICS and context.client_id != ADMIN_CLIENT_ID:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION)
        if partition is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)
        guard = None
        if verified is not NOTHING_VERIFIED:
            refusal = verified.refused.get(TopicPartition(name, row.index))
            if refusal is not None:
                row.error_code, row.error_message = refusal.code, refusal.message
                return
            guard = verified.guards.get(TopicPartition(name, row.index))
        yield from _append_to(partition, acks, records or b"", checked, row, uncommitted, guard)
    except KafkaError as error:
        row.error_code = error.code
        if error.code not in _BARE and partition is not None and not partition.is_offline:
            row.log_start_offset = partition.log_start_offset


def _append_to(
    partition: Partition,
    acks: int,
    records: Buffer,
    header: BatchHeader,
    row: Row,
    uncommitted: list[Uncommitted],
    guard: int | None,
) -> Slices[None]:
    _check_may_append(partition, acks)
    state = partition.state
    found = yield from partition.validate(records, header)
    if isinstance(found, InvalidBatch):
        _refuse(partition, found, row)
        return
    if partition.state is not state or partition.is_offline:  # while a large batch was checked
        _check_may_append(partition, acks)
    info: AppendInfo = partition.append(found, guard)
    row.base_offset = info.base_offset
    row.log_append_time_ms = found.log_append_time_ms
    row.log_start_offset = partition.log_start_offset
    if partition.is_flush_due or (acks == -1 and partition.high_watermark <= info.last_offset):
        uncommitted.append(Uncommitted(row, partition, info.last_offset))


def _check_may_append(partition: Partition, acks: int) -> None:
    partition.require_leader()
    if acks == -1:
        partition.require_in_sync()


def _refuse(partition: Partition, found: InvalidBatch, row: Row) -> None:
    row.error_code = found.error_code
    if found.error_code not in _BARE:
        row.log_start_offset = partition.log_start_offset
    row.error_message = found.answer_message
    row.record_errors = [
        ProduceResponse.BatchIndexAndErrorMessage(batch_index=each.batch_index, batch_index_error_message=each.message)
        for each in found.record_errors
    ]


def _exists(context: Context, name: str, index: int) -> bool:
    topic = context.image.topics.get(name)
    return topic is not None and 0 <= index < len(topic.partitions)


def _tell_leader(context: Context, response: ProduceResponse, topic: Topic, row: Row) -> None:
    if row.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER:
        known = context.image.topics.by_id.get(topic.topic_id)
        tell_leader(context, topic.name if known is None else known.name, row.index, row, response)


async def _wait(
    context: Context, response: ProduceResponse, uncommitted: list[Uncommitted], request: ProduceRequest
) -> ProduceResponse:
    """Wait until all batches are flushed, where the topic requires it, and committed, or the timeout has passed.

    If another broker becomes the leader meanwhile, the response says so at once.
    """
    for row, partition, _ in uncommitted:
        if partition.is_flush_due:
            try:
                await context.services.replicas.flush(partition)
            except KafkaError as error:
                _fail(row, error.code)
    if request.acks == -1:
        await _wait_committed(uncommitted, request.timeout_ms)
        if context.version >= FIRST_WITH_LEADERS:
            for topic in response.responses:
                for row in topic.partition_responses:
                    _tell_leader(context, response, topic, row)
    return response


async def _wait_committed(uncommitted: list[Uncommitted], timeout_ms: int) -> None:
    """Wait for all batches, each of which may fail on its own. As in Kafka, a row with an error keeps its offset."""
    waiting = list(uncommitted)
    try:
        async with asyncio.timeout(max(timeout_ms, 0) / 1000):
            while waiting:
                row, partition, offset = waiting[-1]
                try:
                    await partition.wait_committed(offset)
                except KafkaError as error:
                    row.error_code = error.code
                waiting.pop()
    except TimeoutError:
        for row, partition, offset in waiting:
            if partition.high_watermark <= offset:
                row.error_code = ErrorCode.REQUEST_TIMED_OUT


def _fail(row: Row, code: ErrorCode) -> None:
    row.error_code = code
    row.base_offset = row.log_append_time_ms = row.log_start_offset = -1
