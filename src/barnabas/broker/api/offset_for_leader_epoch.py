"""OffsetForLeaderEpoch (23), versions 2 to 4.

Needs CLUSTER_ACTION on the cluster, or DESCRIBE on the topic. Followers and consumers ask for the end of an epoch, to
find out if their log or position has diverged. Returns the largest epoch up to the requested one, and the offset at
which the next epoch starts; -1 and -1 for an epoch after the last. Only the leader answers, and only in the given
leader epoch, if there is one. Topics that the caller may not DESCRIBE come last.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.replicas import reading
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import Slices
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest, OffsetForLeaderEpochResponse

Topic = OffsetForLeaderEpochResponse.OffsetForLeaderTopicResult
Row = OffsetForLeaderEpochResponse.EpochEndOffset
Asked = OffsetForLeaderEpochRequest.OffsetForLeaderPartition


def handle(context: Context, request: OffsetForLeaderEpochRequest) -> Slices[OffsetForLeaderEpochResponse]:
    may_all = context.is_allowed(AclOperation.CLUSTER_ACTION, ResourceType.CLUSTER, CLUSTER_NAME)
    topics: list[Topic] = []
    refused: list[Topic] = []
    for topic in request.topics:
        yield
        if may_all or context.may(AclOperation.DESCRIBE, ResourceType.TOPIC, topic.topic):
            rows = []
            for asked in topic.partitions:
                yield context.services.replicas.opening_of(topic.topic, asked.partition)
                rows.append(_row(context, topic.topic, asked))
            topics.append(Topic(topic=topic.topic, partitions=rows))
        else:
            code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
            rows = []
            for asked in topic.partitions:
                rows.append(Row(partition=asked.partition, error_code=code))
                yield
            refused.append(Topic(topic=topic.topic, partitions=rows))
    return OffsetForLeaderEpochResponse(topics=topics + refused)


def _row(context: Context, topic: str, asked: Asked) -> Row:
    row = Row(partition=asked.partition)
    try:
        partition = context.services.replicas.partition(topic, asked.partition)
        reading.check_leadership(partition, asked.current_leader_epoch, only_leader=True)
        row.leader_epoch, row.end_offset = partition.log.end_offset_for_epoch(asked.leader_epoch)
    except KafkaError as error:
        row.error_code = error.code
    return row
