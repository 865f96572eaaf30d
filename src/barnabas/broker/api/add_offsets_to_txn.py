"""AddOffsetsToTxn (25), versions 0 to 4.

Adds the partition of `__consumer_offsets` that stores a group's offsets to a transaction. Clients of transaction
version 2 do not need it. Needs WRITE on the transactional id and READ on the group.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.replicated.decision import Producer
from barnabas.replicated.placement import partition_for
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.storage.checkpoints import TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse


async def handle(context: Context, request: AddOffsetsToTxnRequest) -> AddOffsetsToTxnResponse:
    transactional_id = request.transactional_id
    if not context.may(AclOperation.WRITE, ResourceType.TRANSACTIONAL_ID, transactional_id):
        raise KafkaError(ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.may(AclOperation.READ, ResourceType.GROUP, request.group_id):
        raise KafkaError(ErrorCode.GROUP_AUTHORIZATION_FAILED)
    topic = context.image.topics.get(GROUP_METADATA_TOPIC)
    count = context.config.get_int("offsets.topic.num.partitions") if topic is None else len(topic.partitions)
    partition = TopicPartition(GROUP_METADATA_TOPIC, partition_for(request.group_id, count))
    producer = Producer(request.producer_id, request.producer_epoch)
    try:
        await context.services.transactions.add_partitions(transactional_id, producer, [partition], 0)
    except KafkaError as error:
        if error.code is ErrorCode.PRODUCER_FENCED and context.version < 2:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_EPOCH) from error
        raise
    return AddOffsetsToTxnResponse()
