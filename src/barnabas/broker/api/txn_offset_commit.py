"""TxnOffsetCommit (28), versions 0 to 5.

Commits offsets in a producer's transaction: they take effect when the transaction is committed. Needs WRITE on the
transactional id, READ on the group and on each topic. The transaction coordinator must agree first. From version 5 on,
it adds the group's partition of `__consumer_offsets` to the transaction. Before, the producer has added it, and the
coordinator verifies that. The group is checked as for OffsetCommit, but may be rebalancing. A group that does not exist
is ILLEGAL_GENERATION.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.offset_topics import TopicRows, touchable
from barnabas.groups.shards import TOPIC
from barnabas.replicated.decision import Producer
from barnabas.replicated.errors import response_error
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.storage import TopicPartition
from barnabas.transactions.coordinator import Operation, operation_of_txn_offset_commit
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.txn_offset_commit import TxnOffsetCommitRequest, TxnOffsetCommitResponse

KNOWS_LOADING_FROM = 2  # older producers treat COORDINATOR_LOAD_IN_PROGRESS as fatal

TopicRow = TxnOffsetCommitResponse.TxnOffsetCommitResponseTopic
PartitionRow = TxnOffsetCommitResponse.TxnOffsetCommitResponsePartition


async def handle(context: Context, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    rows = TopicRows(_topic_row, _partition_row)
    code = ErrorCode.NONE
    if not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, request.transactional_id):
        code = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    elif not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        code = ErrorCode.GROUP_AUTHORIZATION_FAILED
    if code:
        await in_slices(rows.add_all(request.topics, code))
        return TxnOffsetCommitResponse(topics=rows.rows)
    request.topics = await in_slices(touchable(context, request.topics, rows))
    if not request.topics:
        return TxnOffsetCommitResponse(topics=rows.rows)
    try:
        committed = await _commit(context, request)
    except KafkaError as error:
        code = error.code
        if code is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS and context.version < KNOWS_LOADING_FROM:
            code = ErrorCode.COORDINATOR_NOT_AVAILABLE
        await in_slices(rows.add_all(request.topics, code))
        return TxnOffsetCommitResponse(topics=rows.rows)
    return TxnOffsetCommitResponse(topics=await in_slices(rows.merge(committed.topics)))


async def _commit(context: Context, request: TxnOffsetCommitRequest) -> TxnOffsetCommitResponse:
    if not request.group_id:
        raise KafkaError(ErrorCode.INVALID_GROUP_ID)
    groups = context.services.groups
    partition = TopicPartition(TOPIC, groups.partition_for(request.group_id))
    try:
        producer = await _agreed(context, request, partition)
    except KafkaError as error:
        raise KafkaError(response_error(error.code)) from error
    return await groups.commit_transactional_offsets(request, context.version, producer)


async def _agreed(context: Context, request: TxnOffsetCommitRequest, partition: TopicPartition) -> Producer:
    """Return the producer, with the guard for appending to the group's partition if it needs one."""
    producer = Producer(request.producer_id, request.producer_epoch)
    operation = operation_of_txn_offset_commit(context.version)
    is_added = operation is Operation.ADD
    if not is_added and not context.config.get_bool("transaction.partition.verification.enable"):
        return producer
    log = context.services.replicas.partition(*partition)
    await log.open()
    guard = log.start_verification(producer, -1, supports_epoch_bump=is_added)
    if guard is None:
        return producer  # the partition already has records of the transaction
    errors = await context.services.transactions.add_or_verify(
        request.transactional_id, request.producer_id, request.producer_epoch, [partition], operation
    )
    if errors.get(partition):
        raise KafkaError(errors[partition])
    return producer._replace(guard=guard)


def _topic_row(topic: TxnOffsetCommitRequest.TxnOffsetCommitRequestTopic) -> TopicRow:
    return TopicRow(name=topic.name)


def _partition_row(index: int, code: ErrorCode) -> PartitionRow:
    return PartitionRow(partition_index=index, error_code=code)
