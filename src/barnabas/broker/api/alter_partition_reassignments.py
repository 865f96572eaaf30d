"""AlterPartitionReassignments (45), versions 0 and 1.

Changes the replicas of partitions: new replicas are added, and once they are in sync the unwanted ones are removed.
Null replicas cancel a reassignment (NO_REASSIGNMENT_IN_PROGRESS if there is none). Replicas that are empty, duplicate
or not registered are INVALID_REPLICA_ASSIGNMENT. Version 1 can forbid a change of the replication factor
(INVALID_REPLICATION_FACTOR). Each partition succeeds or fails on its own. The response to a request without topics has
"" as its message. Needs ALTER on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.broker.errors import shown_message
from barnabas.controller import reassignments
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

TopicRow = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
Row = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


async def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    context.require_on_cluster(AclOperation.ALTER)
    if not request.topics:
        return AlterPartitionReassignmentsResponse(error_message="")
    wanted = await in_slices(_wanted(request))
    may_change_factor = request.allow_replication_factor_change
    altered = await context.controller.write(
        reassignments.alter, wanted, may_change_factor, timeout_ms=request.timeout_ms
    )
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=await in_slices(_rows(altered)),
    )


def _wanted(request: AlterPartitionReassignmentsRequest) -> Slices[list[tuple[str, list[reassignments.Target]]]]:
    wanted = []
    for topic in request.topics:
        wanted.append((topic.name, (yield from mapped(_target, topic.partitions))))
        yield
    return wanted


def _target(partition: AlterPartitionReassignmentsRequest.ReassignablePartition) -> reassignments.Target:
    return partition.partition_index, partition.replicas


def _rows(altered: reassignments.Altered) -> Slices[list[TopicRow]]:
    rows = []
    for name, partitions in altered:
        rows.append(TopicRow(name=name, partitions=(yield from mapped(lambda each: _row(*each), partitions))))
        yield
    return rows


def _row(index: int, error: KafkaError | None) -> Row:
    if error is None:
        return Row(partition_index=index, error_message=None)
    message = shown_message(error.code, error.message)
    return Row(partition_index=index, error_code=error.code, error_message=message)
