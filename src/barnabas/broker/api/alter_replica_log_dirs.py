"""AlterReplicaLogDirs (34), versions 0 to 2.

Needs ALTER on the cluster. The directory is checked first: LOG_DIR_NOT_FOUND if it is not one of this node's absolute
paths, KAFKA_STORAGE_ERROR if it has failed, INVALID_REPLICA_ASSIGNMENT if it is cordoned. Then the partition is
checked: UNKNOWN_TOPIC_OR_PARTITION, or REPLICA_NOT_AVAILABLE if the replica is not on this node. In both cases the
directory is remembered and used when the replica is created. If a partition is named twice, the last directory counts.
Rows have the order of the request (Kafka: of a hash table).

A replica in another directory starts to move (replicas.moving), and the response does not wait for it. A move in
progress to a different directory is cancelled, also if the request names the replica's current directory.
KAFKA_STORAGE_ERROR while any log dir of the node is offline.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.steps import Slices, mapped, stepwise
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.log_dirs import MAX_DIRECTORY_NAME, DirectoryState, directory_name
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_replica_log_dirs import AlterReplicaLogDirsRequest, AlterReplicaLogDirsResponse

Topic = AlterReplicaLogDirsResponse.AlterReplicaLogDirTopicResult
Partition = AlterReplicaLogDirsResponse.AlterReplicaLogDirPartitionResult

_UNIQUE = "0" * 32


def handle(context: Context, request: AlterReplicaLogDirsRequest) -> Slices[AlterReplicaLogDirsResponse]:
    if not context.may(AclOperation.ALTER, ResourceType.CLUSTER, CLUSTER_NAME):
        refused = int(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        rows = []
        for each in request.dirs:
            yield
            for t in each.topics:
                yield
                partitions = yield from mapped(
                    lambda index: Partition(partition_index=index, error_code=refused), t.partitions
                )
                rows.append(Topic(topic_name=t.name, partitions=partitions))
        return AlterReplicaLogDirsResponse(results=rows)
    asked: dict[TopicPartition, str] = {}
    for each in request.dirs:
        yield
        for topic in each.topics:
            yield
            for some in stepwise(topic.partitions):
                asked.update((TopicPartition(topic.name, index), each.path) for index in some)
                yield
    topics: dict[str, Topic] = {}
    for partition, path in asked.items():
        row = topics.setdefault(partition.topic, Topic(topic_name=partition.topic))
        yield context.services.replicas.opening_of(*partition)
        code = _alter(context, partition, path)
        row.partitions.append(Partition(partition_index=partition.partition, error_code=code))
    return AlterReplicaLogDirsResponse(results=list(topics.values()))


def _alter(context: Context, asked: TopicPartition, path: str) -> ErrorCode:
    directories = context.services.log_directories
    if len(directory_name(asked, DirectoryState.FUTURE, _UNIQUE)) > MAX_DIRECTORY_NAME:
        return ErrorCode.INVALID_TOPIC_EXCEPTION
    if path not in directories.paths:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if not directories.is_online(path):
        return ErrorCode.KAFKA_STORAGE_ERROR
    if directories.is_cordoned(path):
        return ErrorCode.INVALID_REPLICA_ASSIGNMENT
    replica = context.services.replicas.get(asked.topic, asked.partition)
    if replica is None:
        directories.choose(asked, path)
        topic = context.image.topics.get(asked.topic)
        is_known = topic is not None and 0 <= asked.partition < len(topic.partitions)
        return ErrorCode.REPLICA_NOT_AVAILABLE if is_known else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if replica.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        context.services.replicas.move(replica, path)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
