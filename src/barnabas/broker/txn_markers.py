"""Writes the markers that end a transaction into partitions that this node leads.

A marker in `__consumer_offsets` is written by the group coordinator's state machine, so that offsets take effect with
it. Any other marker is appended to the log. Each partition has its own error, and a failure does not affect other
partitions. The function returns when every marker is committed or has failed.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from barnabas.broker.context import Services
from barnabas.config.internal_topics import GROUP_METADATA_TOPIC
from barnabas.replicas.partition import Partition
from barnabas.slices import Breather
from barnabas.storage.checkpoints import TopicPartition
from barnabas.transactions.markers import EndedTransaction
from barnabas.wire import ErrorCode, KafkaError

# The transaction coordinator handles errors of partition leaders, not those of group coordinators.
_NOT_READY = frozenset(
    {ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR}
)


async def write_markers(
    services: Services, partitions: Sequence[TopicPartition], ended: EndedTransaction
) -> dict[TopicPartition, ErrorCode]:
    """Write the markers and return an error code for each partition, NONE if its marker is committed."""
    others_first = Breather()
    errors: dict[TopicPartition, ErrorCode] = {}
    appended: list[tuple[TopicPartition, Partition, int]] = []
    for name in partitions:
        await others_first()
        try:
            partition = services.replicas.partition(*name)
            await partition.open()
            if name.topic == GROUP_METADATA_TOPIC:
                machine = services.groups.machines.machine(name.partition)
                await machine.write_marker(ended.producer, ended.marker, ended.transaction_version)
                errors[name] = ErrorCode.NONE
            else:
                leader_epoch = partition.leader_epoch
                info = partition.append_marker(ended.producer, ended.marker, leader_epoch, ended.transaction_version)
                appended.append((name, partition, info.last_offset))
        except KafkaError as error:
            errors[name] = ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in _NOT_READY else error.code
    timeout_ms = services.config.get_int("request.timeout.ms")
    for name, partition, last_offset in appended:
        await others_first()
        errors[name] = await _wait_committed(partition, last_offset, timeout_ms)
    return errors


async def _wait_committed(partition: Partition, offset: int, timeout_ms: int) -> ErrorCode:
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            await partition.wait_committed(offset)
    except TimeoutError:
        return ErrorCode.REQUEST_TIMED_OUT
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE
