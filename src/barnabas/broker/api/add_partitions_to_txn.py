"""AddPartitionsToTxn (24), versions 0 to 5.

Up to version 3, a client adds partitions to its transaction. From version 4 on, brokers send it, for many transactions
at once: to add the partitions that clients of transaction version 2 write to, or only to verify that partitions were
added. Partitions are added together or not at all: if one is unknown or not authorized, the others are
OPERATION_NOT_ATTEMPTED. Clients need WRITE on the transactional id and on the topics, and cannot add internal topics.
Brokers need CLUSTER_ACTION.
"""

from __future__ import annotations

import asyncio

from barnabas.broker.context import Context
from barnabas.config.internal_topics import INTERNAL_TOPICS
from barnabas.replicated.decision import Producer
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Breather, in_slices
from barnabas.steps import Slices, stepwise
from barnabas.storage.checkpoints import TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnResponse

Transaction = AddPartitionsToTxnRequest.AddPartitionsToTxnTransaction
Errors = dict[TopicPartition, ErrorCode]


async def handle(context: Context, request: AddPartitionsToTxnRequest) -> AddPartitionsToTxnResponse:
    if context.version < 4:
        only = Transaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            topics=request.v3_and_below_topics,
        )
        rows = await in_slices(_rows(only, await _errors(context, only)))
        return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=rows)
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    others_first = Breather()
    results = []
    for some in stepwise(request.transactions):
        await others_first()
        found = await asyncio.gather(*(_errors(context, each) for each in some))
        for each, errors in zip(some, found, strict=True):
            rows = await in_slices(_rows(each, errors))
            results.append(
                AddPartitionsToTxnResponse.AddPartitionsToTxnResult(
                    transactional_id=each.transactional_id, topic_results=rows
                )
            )
    return AddPartitionsToTxnResponse(results_by_transaction=results)


async def _errors(context: Context, transaction: Transaction) -> Errors:
    """Add or verify the partitions and return the errors, empty if all succeeded."""
    partitions = await in_slices(_partitions(transaction))
    if refused := await in_slices(_refused(context, transaction, partitions)):
        return refused
    producer = Producer(transaction.producer_id, transaction.producer_epoch)
    coordinator = context.services.transactions
    try:
        if transaction.verify_only:
            return await coordinator.verify_partitions(transaction.transactional_id, producer, partitions)
        version = 2 if context.version >= 4 else 0
        await coordinator.add_partitions(transaction.transactional_id, producer, partitions, version)
    except KafkaError as error:
        is_old = error.code is ErrorCode.PRODUCER_FENCED and context.version < 2
        return dict.fromkeys(partitions, ErrorCode.INVALID_PRODUCER_EPOCH if is_old else error.code)
    return {}


def _partitions(transaction: Transaction) -> Slices[list[TopicPartition]]:
    """Return the partitions, each once."""
    found: dict[TopicPartition, None] = {}
    for topic in transaction.topics:
        yield
        for index in topic.partitions:
            found[TopicPartition(topic.name, index)] = None
            yield
    return list(found)


def _refused(context: Context, transaction: Transaction, partitions: list[TopicPartition]) -> Slices[Errors]:
    """Return the errors of partitions that are not authorized or unknown. If there are any, none is added."""
    is_client = context.version < 4
    if is_client and not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transaction.transactional_id):
        return dict.fromkeys(partitions, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    errors: Errors = {}
    for partition in partitions:
        yield
        name = partition.topic
        topic = context.image.topics.get(name)
        if is_client and (name in INTERNAL_TOPICS or not context.may(AclOperation.WRITE, ResourceType.TOPIC, name)):
            errors[partition] = ErrorCode.TOPIC_AUTHORIZATION_FAILED
        elif topic is None or not 0 <= partition.partition < len(topic.partitions):
            errors[partition] = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if errors:
        for some in stepwise(partitions):
            yield
            for partition in some:
                errors.setdefault(partition, ErrorCode.OPERATION_NOT_ATTEMPTED)
    return errors


def _rows(
    transaction: Transaction, errors: Errors
) -> Slices[list[AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult]]:
    rows = []
    for topic in transaction.topics:
        yield
        row = AddPartitionsToTxnResponse.AddPartitionsToTxnTopicResult(name=topic.name)
        for index in topic.partitions:
            yield
            code = errors.get(TopicPartition(topic.name, index), ErrorCode.NONE)
            row.results_by_partition.append(
                AddPartitionsToTxnResponse.AddPartitionsToTxnPartitionResult(
                    partition_index=index, partition_error_code=code
                )
            )
        rows.append(row)
    return rows
