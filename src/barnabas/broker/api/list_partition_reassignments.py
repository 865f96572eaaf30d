"""ListPartitionReassignments (46), version 0.

Lists the partitions being reassigned, all (null) or among the named ones, with the replicas being added and removed.
Partitions that are unknown or not being reassigned are left out. Needs DESCRIBE on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import reassignments
from barnabas.metadata.topics import TopicPartition
from barnabas.security.acl import AclOperation
from barnabas.steps import Slices, mapped
from barnabas.wire.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)

Row = ListPartitionReassignmentsResponse.OngoingPartitionReassignment


def handle(context: Context, request: ListPartitionReassignmentsRequest) -> Slices[ListPartitionReassignmentsResponse]:
    context.require_on_cluster(AclOperation.DESCRIBE)
    asked = request.topics
    wanted = None
    if asked is not None:
        wanted = yield from mapped(lambda topic: (topic.name, topic.partition_indexes), asked)
    topic_of = ListPartitionReassignmentsResponse.OngoingTopicReassignment
    ongoing = yield from reassignments.ongoing(context.image, wanted)
    topics = []
    for partitions in ongoing:
        rows = yield from mapped(_row, partitions)
        topics.append(topic_of(name=partitions[0].topic.name, partitions=rows))
    return ListPartitionReassignmentsResponse(error_message=None, topics=topics)


def _row(ongoing: TopicPartition) -> Row:
    partition = ongoing.partition
    return Row(
        partition_index=ongoing.partition_id,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )
