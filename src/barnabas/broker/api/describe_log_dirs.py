"""DescribeLogDirs (35), versions 0 to 5.

Needs DESCRIBE on the cluster; without it there are no rows, and from version 3 on a top-level error. There is one row
for each of this node's log dirs, in the order of log.dirs, with the requested partitions or all. Partitions that are
not on this node are left out. A directory that has failed is KAFKA_STORAGE_ERROR. Topics and partitions are sorted
(Kafka: in the order of a hash table).

The size is the total of the segments. A replica whose log does not exist yet is listed where it will be created, with
size 0. The lag of a replica is its distance to the high watermark; the lag of a future log is its distance to the
current log. A stray log has lag -1 (unknown).
"""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Mapping

from barnabas.broker.context import Context
from barnabas.replicas.log_directories import DirectoryUsage, StoredPartition
from barnabas.replicas.partition import Partition as Replica
from barnabas.security.acl import CLUSTER_NAME, AclOperation, ResourceType
from barnabas.slices import in_slices
from barnabas.steps import Slices, stepwise
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
        except StorageError as error:
            context.services.replicas.fail_dir(path, error)
    return DescribeLogDirsResponse(results=await in_slices(_rows(context, request, usages)))


def _rows(context: Context, request: DescribeLogDirsRequest, usages: Mapping[str, DirectoryUsage]) -> Slices[list[Row]]:
    directories = context.services.log_directories
    wanted = yield from _wanted(request)
    held = yield from _held(context, wanted)
    begun: set[TopicPartition] = set()
    for usage in usages.values():
        for some in stepwise(usage.partitions):
            begun.update(each.partition for each in some if not each.is_future)
            yield
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
            yield
            if wanted is None or stored.partition in wanted:
                lag = _lag(context, held.get(stored.partition), stored)
                found[stored.partition.topic].append(
                    _row(stored.partition, stored.size_in_bytes, lag, stored.is_future)
                )
        for partition, replica in held.items():
            yield
            if replica.log_dir == path and partition not in begun:
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
    return rows


def _wanted(request: DescribeLogDirsRequest) -> Slices[set[TopicPartition] | None]:
    """Return the requested partitions, or None for all."""
    if request.topics is None:
        return None
    wanted: set[TopicPartition] = set()
    for topic in request.topics:
        yield
        for some in stepwise(topic.partitions):
            wanted.update(TopicPartition(topic.topic, index) for index in some)
            yield
    return wanted


def _held(context: Context, wanted: set[TopicPartition] | None) -> Slices[dict[TopicPartition, Replica]]:
    """Return the replicas of this node, or the wanted ones among them."""
    replicas = context.services.replicas
    held: dict[TopicPartition, Replica] = {}
    if wanted is None:
        for some in stepwise(list(replicas)):
            held.update((each.name, each) for each in some)
            yield
        return held
    for each in wanted:
        replica = replicas.get(each.topic, each.partition)
        if replica is not None:
            held[each] = replica
        yield
    return held


def _lag(context: Context, replica: Replica | None, stored: StoredPartition) -> int:
    if replica is None or replica.is_offline:
        return NOT_KNOWN
    opened = replica.opened_log
    if stored.is_future:
        move = context.services.replicas.moves.get(replica)
        if move is None or move.log is None or opened is None:
            return NOT_KNOWN
        return opened.log_end_offset - move.log.log_end_offset
    return 0 if opened is None else max(0, replica.high_watermark - opened.log_end_offset)


def _row(partition: TopicPartition, size_in_bytes: int, lag: int, is_future: bool) -> Partition:
    return Partition(
        partition_index=partition.partition, partition_size=size_in_bytes, offset_lag=lag, is_future_key=is_future
    )


def _in_order(partitions: list[Partition]) -> list[Partition]:
    return sorted(partitions, key=lambda each: (each.partition_index, each.is_future_key))
