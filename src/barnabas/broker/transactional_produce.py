"""Transactional batches in a Produce request: the coordinator must agree before a partition's first one is appended.

From Produce 12 on, the broker adds the partition to the transaction. Before, the client does that, and the broker asks
the coordinator to verify it. A partition that already has records of the transaction needs neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import NamedTuple

from barnabas.batches import HEADER_SIZE, BatchHeader, decode_whole_header
from barnabas.batches.errors import BatchError
from barnabas.batches.format import ATTRIBUTES_POSITION, TRANSACTIONAL_BIT, Buffer
from barnabas.broker.context import Context
from barnabas.replicated.decision import Producer
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Slices, in_slices
from barnabas.steps import ROWS_PER_STEP
from barnabas.storage import TopicPartition
from barnabas.transactions.coordinator import Operation, operation_of_produce
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.produce import ProduceRequest

_RETRY = frozenset(
    {
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
        ErrorCode.COORDINATOR_NOT_AVAILABLE,
        ErrorCode.NOT_COORDINATOR,
    }
)


class Refusal(NamedTuple):
    """The error for a partition whose batch is not appended, with a text where Kafka sends one."""

    code: ErrorCode
    message: str | None = None


class Verified(NamedTuple):
    """The guards to append with, and the partitions to which nothing is appended."""

    guards: dict[TopicPartition, int]
    refused: dict[TopicPartition, Refusal]


NOTHING_VERIFIED = Verified({}, {})


def is_transactional(request: ProduceRequest) -> Slices[bool]:
    """Return True if the request has records of a transaction."""
    count = 0
    for topic in request.topic_data:
        count += 1
        if count % ROWS_PER_STEP == 0:
            yield
        for data in topic.partition_data:
            records = data.records or b""
            if len(records) >= HEADER_SIZE and records[ATTRIBUTES_POSITION + 1] & TRANSACTIONAL_BIT:
                return True
            count += 1
            if count % ROWS_PER_STEP == 0:
                yield
    return False


def decode_headers(request: ProduceRequest) -> Slices[list[BatchHeader | None]]:
    """Return the header of each partition's batch in the order of the request, None where it cannot be decoded."""
    headers = []
    for topic in request.topic_data:
        yield
        for data in topic.partition_data:
            headers.append(_header(data.records or b""))
            yield
    return headers


def _header(records: Buffer) -> BatchHeader | None:
    try:
        return decode_whole_header(records)
    except BatchError:
        return None  # the batch is refused later, with an error for its partition


async def verify(context: Context, request: ProduceRequest, headers: Iterable[BatchHeader | None]) -> Verified:
    """Ask the coordinator about all partitions of the request. `headers` are those of `decode_headers`.

    Raises KafkaError if nothing of the request may be appended.
    """
    transactional_id = request.transactional_id
    if transactional_id is None or not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    producers, sequences = await in_slices(_sequences(context, request, headers))
    if not producers:
        return NOTHING_VERIFIED
    if len(producers) > 1:
        raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING)
    return await _ask(context, transactional_id, producers.pop(), sequences)


def _sequences(
    context: Context, request: ProduceRequest, headers: Iterable[BatchHeader | None]
) -> Slices[tuple[set[Producer], dict[TopicPartition, int]]]:
    """Return the producers of the transactional batches, and the first sequence number for each partition."""
    sequences: dict[TopicPartition, int] = {}
    producers: set[Producer] = set()
    remaining = iter(headers)
    for topic_data in request.topic_data:
        topic = context.image.topics.by_id.get(topic_data.topic_id)
        name = topic_data.name if topic is None else topic.name
        for data in topic_data.partition_data:
            yield
            header = next(remaining)
            if header is not None and header.is_transactional and header.has_producer_id:
                producers.add(Producer(header.producer_id, header.producer_epoch))
                sequences[TopicPartition(name, data.index)] = header.base_sequence
    return producers, sequences


async def _ask(
    context: Context, transactional_id: str, producer: Producer, sequences: dict[TopicPartition, int]
) -> Verified:
    operation = operation_of_produce(context.version)
    config = context.config
    if operation is not Operation.ADD and not config.get_bool("transaction.partition.verification.enable"):
        return NOTHING_VERIFIED
    clock = asyncio.get_running_loop().time
    retry_ms = config.get_int("add.partitions.to.txn.retry.backoff.max.ms")
    until = clock() + min(retry_ms, config.get_int("request.timeout.ms")) / 1000
    for each in sequences:
        opening = context.services.replicas.opening_of(*each)
        if opening is not None:
            await opening
    while True:
        found = await in_slices(_start(context, producer, sequences, operation))
        if not found.guards:
            return found
        errors = await context.services.transactions.add_or_verify(
            transactional_id, producer.producer_id, producer.producer_epoch, list(found.guards), operation
        )
        is_busy = ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()
        if operation is not Operation.ADD or not is_busy or clock() >= until:
            break
        backoff_ms = config.get_int("add.partitions.to.txn.retry.backoff.ms")
        await context.services.transactions.wait_ended(transactional_id, backoff_ms)
    refused = {each: _refusal(code, operation) for each, code in errors.items() if code}
    return Verified(found.guards, {**found.refused, **refused})


def _start(
    context: Context, producer: Producer, sequences: dict[TopicPartition, int], operation: Operation
) -> Slices[Verified]:
    guards, refused = {}, {}
    for each, sequence in sequences.items():
        yield
        try:
            partition = context.services.replicas.partition(*each)
            guard = partition.start_verification(producer, sequence, supports_epoch_bump=operation is Operation.ADD)
        except KafkaError as error:
            refused[each] = _refusal(error.code, operation)
        else:
            if guard is not None:
                guards[each] = guard
    return Verified(guards, refused)


def _refusal(code: ErrorCode, operation: Operation) -> Refusal:
    """Return the refusal with Kafka's code: an error that producers should retry but would not gets another code."""
    if code is ErrorCode.INVALID_TXN_STATE:
        return Refusal(code, "Partition was not added to the transaction")
    if code in _RETRY or (code is ErrorCode.CONCURRENT_TRANSACTIONS and operation is not Operation.ADD):
        text = f"Unable to verify the partition has been added to the transaction. Underlying error: {code.name}"
        return Refusal(ErrorCode.NOT_ENOUGH_REPLICAS, text)
    return Refusal(code)
