"""Move the leader of a partition to another replica, with Kafka's own requests to the active controller.

The replica becomes the preferred leader, so that it stays the leader.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final

from barnabas.broker.controller_channel import ControllerChannel
from barnabas.broker.faults.rules import RuleError
from barnabas.metadata.image import MetadataImage
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

TIMEOUT_MS: Final = 30_000
LOOK_AGAIN_S: Final = 0.01
_REASSIGNMENTS_VERSION: Final = 1
_ELECTIONS_VERSION: Final = 2
_PREFERRED: Final = 0
_FINE: Final = (ErrorCode.NONE, ErrorCode.ELECTION_NOT_NEEDED)


async def move_leader(
    channel: ControllerChannel, image: Callable[[], MetadataImage], topic: str, partition: int, to: int | None = None
) -> int:
    """Move the leader to a replica, or to any other one in sync, and return its id when the image has it.

    Raises RuleError if that replica cannot lead, KafkaError and TimeoutError.
    """
    replicas, to = _chosen(image(), topic, partition, to)
    async with asyncio.timeout(TIMEOUT_MS / 1000):
        if replicas[0] != to:
            wanted = AlterPartitionReassignmentsRequest.ReassignablePartition(
                partition_index=partition, replicas=[to, *(each for each in replicas if each != to)]
            )
            request = AlterPartitionReassignmentsRequest(
                timeout_ms=TIMEOUT_MS,
                topics=[AlterPartitionReassignmentsRequest.ReassignableTopic(name=topic, partitions=[wanted])],
            )
            moved: AlterPartitionReassignmentsResponse = await channel.call(request, _REASSIGNMENTS_VERSION)
            rows = [(moved.error_code, moved.error_message)]
            rows += [(row.error_code, row.error_message) for each in moved.responses for row in each.partitions]
            _check(rows)
        asked = ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition])
        elect = ElectLeadersRequest(election_type=_PREFERRED, topic_partitions=[asked], timeout_ms=TIMEOUT_MS)
        elected: ElectLeadersResponse = await channel.call(elect, _ELECTIONS_VERSION)
        results = [row for each in elected.replica_election_results for row in each.partition_result]
        _check([(elected.error_code, None), *((row.error_code, row.error_message) for row in results)])
        while (found := image().topics.get(topic)) is not None and found.partitions[partition].leader != to:
            await asyncio.sleep(LOOK_AGAIN_S)
    return to


def _chosen(image: MetadataImage, topic: str, partition: int, to: int | None) -> tuple[tuple[int, ...], int]:
    """Return the replicas of a partition, and the one that is to lead it."""
    found = image.topics.get(topic)
    if found is None or not 0 <= partition < len(found.partitions):
        raise RuleError(f"there is no partition {topic}-{partition}")
    state = found.partitions[partition]
    others = [each for each in state.isr if each != state.leader]
    if to is None and not others:
        raise RuleError(f"{topic}-{partition} has no other in-sync replica that could lead it: {list(state.isr)}")
    chosen = others[0] if to is None else to
    if chosen not in state.isr:
        raise RuleError(f"{topic}-{partition} cannot be led by {chosen}: its in-sync replicas are {list(state.isr)}")
    return state.replicas, chosen


def _check(rows: list[tuple[int, str | None]]) -> None:
    for code, message in rows:
        if code not in _FINE:
            raise KafkaError(ErrorCode(code), message)
