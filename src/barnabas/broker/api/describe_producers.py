"""DescribeProducers (61), version 0.

Needs READ on the topic. A bad name is INVALID_TOPIC_EXCEPTION whoever asks. A partition that is not on this node is
NOT_LEADER_OR_FOLLOWER, one in a directory that has failed KAFKA_STORAGE_ERROR, both without a text, as Kafka has it.

Nothing was produced to a replica whose log was not begun, so it has no producers. Not done: producers of logs that another
broker has begun; these logs are not open, so NOT_LEADER_OR_FOLLOWER.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import topic_names
from barnabas.security.acl import AclOperation, ResourceType
from barnabas.storage.checkpoints import TopicPartition
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.describe_producers import DescribeProducersRequest, DescribeProducersResponse

Topic = DescribeProducersResponse.TopicResponse
Partition = DescribeProducersResponse.PartitionResponse


def handle(context: Context, request: DescribeProducersRequest) -> DescribeProducersResponse:
    rows = []
    for topic in request.topics:
        try:
            _check(context, topic.name)
        except KafkaError as error:
            partitions = [
                Partition(partition_index=index, error_code=error.code, error_message=error.message)
                for index in topic.partition_indexes
            ]
        else:
            partitions = [
                Partition(partition_index=index, error_code=_state(context, TopicPartition(topic.name, index)))
                for index in topic.partition_indexes
            ]
        rows.append(Topic(name=topic.name, partitions=partitions))
    return DescribeProducersResponse(topics=rows)


def _check(context: Context, name: str) -> None:
    topic_names.check(name)
    if not context.may(AclOperation.READ, ResourceType.TOPIC, name):
        raise KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    if context.image.topics.get(name) is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)


def _state(context: Context, asked: TopicPartition) -> ErrorCode:
    topics = context.image.topics
    partition = topics.partition(topics.ids[asked.topic], asked.partition)
    if partition is None:
        return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    node_id = context.config.node_id
    if node_id not in partition.replicas:
        return ErrorCode.NOT_LEADER_OR_FOLLOWER
    directories = context.services.log_directories
    begun = directories.find(asked)
    place = begun or directories.assigned(partition.directory(node_id))
    if place is not None and not directories.is_online(place):
        return ErrorCode.KAFKA_STORAGE_ERROR
    return ErrorCode.NONE if begun is None else ErrorCode.NOT_LEADER_OR_FOLLOWER
