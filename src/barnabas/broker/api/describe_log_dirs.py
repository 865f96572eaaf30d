"""DescribeLogDirs (35), versions 0 to 5.

Needs DESCRIBE on the cluster; without it there is no row, and from version 3 an error on top. One row for each of this node's
log dirs, in the order of log.dirs, with the partitions that were asked for, or all; names of what is not here are passed over.
A directory that has failed is KAFKA_STORAGE_ERROR. Topics stand by name and partitions by number (Kafka: by hash).

A replica whose log was not begun yet is listed where the cluster has put it, with no bytes. The lag is 0 for a replica that
this node holds; it is -1, not known, for a future log and for a log that is left over in the directory.
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from barnabas.broker.context import Context
from barnabas.broker.log_directories import DirectoryUsage
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.storage.checkpoints import TopicPartition
from barnabas.storage.errors import StorageError
from barnabas.wire import ErrorCode
from barnabas.wire.messages.describe_log_dirs import DescribeLogDirsRequest, DescribeLogDirsResponse

Row = DescribeLogDirsResponse.DescribeLogDirsResult
Topic = DescribeLogDirsResponse.DescribeLogDirsTopic
Partition = DescribeLogDirsResponse.DescribeLogDirsPartition

NOT_KNOWN = -1


async def handle(context: Context, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    if not context.may(AclOperation.DESCRIBE, ResourceType.CLUSTER, CLUSTER_NAME):
        return DescribeLogDirsResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    directories = context.services.log_directories
    usages: dict[str, DirectoryUsage] = {}
    for path in directories.paths:
        try:
            usages[path] = await asyncio.to_thread(directories.usage, path)
        except StorageError:
            continue
    wanted = None
    if request.topics is not None:
        wanted = {TopicPartition(each.topic, index) for each in request.topics for index in each.partitions}
    held = _held(context, wanted)
    begun = {each.partition for usage in usages.values() for each in usage.partitions if not each.is_future}
    version = context.image.metadata_version
    shows_cordoned = version is not None and version.is_cordoned_log_dirs_supported
    rows = []
    for path in directories.paths:
        if path not in usages:
            rows.append(Row(log_dir=path, error_code=ErrorCode.KAFKA_STORAGE_ERROR))
            continue
        usage = usages[path]
        found: defaultdict[str, list[Partition]] = defaultdict(list)
        for stored in usage.partitions:
            if wanted is None or stored.partition in wanted:
                lag = 0 if stored.partition in held and not stored.is_future else NOT_KNOWN
                found[stored.partition.topic].append(
                    _row(stored.partition, stored.size_in_bytes, lag, stored.is_future)
                )
        for partition, place in held.items():
            if place == path and partition not in begun:
                found[partition.topic].append(_row(partition, 0, 0, False))
        rows.append(
            Row(
                log_dir=path,
                topics=[Topic(name=name, partitions=_in_order(found[name])) for name in sorted(found)],
                total_bytes=usage.total_bytes,
                usable_bytes=usage.usable_bytes,
                is_cordoned=shows_cordoned and directories.is_cordoned(path),
            )
        )
    return DescribeLogDirsResponse(results=rows)


def _held(context: Context, wanted: set[TopicPartition] | None) -> Mapping[TopicPartition, str | None]:
    """The replicas of this node, and where the cluster has put them."""
    node_id = context.config.node_id
    topics = context.image.topics
    assigned = context.services.log_directories.assigned
    if wanted is None:
        return {
            TopicPartition(each.topic.name, each.partition_id): assigned(each.partition.directory(node_id))
            for each in topics.on_broker(node_id)
        }
    held = {}
    for each in wanted:
        topic = topics.get(each.topic)
        partition = None if topic is None else topics.partition(topic.topic_id, each.partition)
        if partition is not None and node_id in partition.replicas:
            held[each] = assigned(partition.directory(node_id))
    return held


def _row(partition: TopicPartition, size_in_bytes: int, lag: int, is_future: bool) -> Partition:
    return Partition(
        partition_index=partition.partition, partition_size=size_in_bytes, offset_lag=lag, is_future_key=is_future
    )


def _in_order(partitions: list[Partition]) -> list[Partition]:
    return sorted(partitions, key=lambda each: (each.partition_index, each.is_future_key))
