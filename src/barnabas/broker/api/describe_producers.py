"""DescribeProducers (61), version 0.

Needs READ on the topic. An invalid name is INVALID_TOPIC_EXCEPTION for every caller. Returns the producer state in a
replica's log, leader or not: epoch, last sequence, and the start offset of an open transaction. A partition that is not
on this node is NOT_LEADER_OR_FOLLOWER, one in a failed directory KAFKA_STORAGE_ERROR, both without a message, as in
Kafka.
"""

from __future__ import annotations

from functools import partial

from barnabas.broker.context import Context
from barnabas.config import topic_names
from barnabas.config.hash_order import hash_order_in_slices
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.slices import Slices
from barnabas.steps import mapped
from barnabas.storage.producers import ProducerState
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

Topic = DescribeProducersResponse.TopicResponse
Row = DescribeProducersResponse.PartitionResponse
Producer = DescribeProducersResponse.ProducerState


def handle(context: Context, request: DescribeProducersRequest) -> Slices[DescribeProducersResponse]:
    topics = []
    for topic in request.topics:
        yield
        try:
            _check(context, topic.name)
        except KafkaError as error:
            refused = partial(_refused, error)
            rows = yield from mapped(refused, topic.partition_indexes)
        else:
            rows = []
            for index in topic.partition_indexes:
                yield context.services.replicas.opening_of(topic.name, index)
                rows.append((yield from _row(context, topic.name, index)))
        topics.append(Topic(name=topic.name, partitions=rows))
    return DescribeProducersResponse(topics=topics)


def _check(context: Context, name: str) -> None:
    topic_names.check(name)
    if not context.may(AclOperation.READ, ResourceType.TOPIC, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.image.topics.get(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _refused(error: KafkaError, index: int) -> Row:
    return Row(partition_index=index, error_code=error.code, error_message=error.message)


def _row(context: Context, name: str, index: int) -> Slices[Row]:
    try:
        states = context.services.replicas.partition(name, index).log.active_producers()
    except KafkaError as error:
        return Row(partition_index=index, error_code=error.code)
    ordered = yield from hash_order_in_slices(states, hash_of=_hash)
    return Row(partition_index=index, active_producers=(yield from mapped(_shown, ordered)))


def _shown(state: ProducerState) -> Producer:
    return Producer(
        producer_id=state.producer_id,
        producer_epoch=state.producer_epoch,
        last_sequence=state.last_sequence,
        last_timestamp=state.last_timestamp,
        coordinator_epoch=state.coordinator_epoch,
        current_txn_start_offset=state.current_txn_first_offset,
    )


def _hash(state: ProducerState) -> int:
    """Return Java's hash of the producer id."""
    return (state.producer_id ^ state.producer_id >> 32) & 0xFFFFFFFF
