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
from barnabas.wire import KafkaError
from barnabas.wire.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
)

Row = AlterPartitionReassignmentsResponse.ReassignablePartitionResponse


async def handle(context: Context, request: AlterPartitionReassignmentsRequest) -> AlterPartitionReassignmentsResponse:
    context.require_on_cluster(AclOperation.ALTER)
    if not request.topics:
        return AlterPartitionReassignmentsResponse(error_message="")
    wanted = [
        (topic.name, [(each.partition_index, each.replicas) for each in topic.partitions]) for topic in request.topics
    ]
    may_change_factor = request.allow_replication_factor_change
    altered = await context.controller.write(
        reassignments.alter, wanted, may_change_factor, timeout_ms=request.timeout_ms
    )
    topic_of = AlterPartitionReassignmentsResponse.ReassignableTopicResponse
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=may_change_factor,
        error_message=None,
        responses=[topic_of(name=name, partitions=[_row(*each) for each in rows]) for name, rows in altered],
    )


def _row(index: int, error: KafkaError | None) -> Row:
    if error is None:
        return Row(partition_index=index, error_message=None)
    message = shown_message(error.code, error.message)
    return Row(partition_index=index, error_code=error.code, error_message=message)
