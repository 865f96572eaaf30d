"""AlterPartition (56), versions 2 and 3; on the controller's listener.

The leader of a partition proposes its in-sync replicas, in version 3 each with its broker epoch. An older leader epoch
is FENCED_LEADER_EPOCH, an older partition epoch INVALID_UPDATE_VERSION, a newer epoch NOT_CONTROLLER. Replicas that are
fenced, shutting down or have another broker epoch are INELIGIBLE_REPLICA. A change that completes a reassignment may
move leadership: then it takes effect and the response is NEW_LEADER_ELECTED. Needs CLUSTER_ACTION.
"""

from __future__ import annotations

from collections.abc import Sequence

from barnabas.broker.context import Context
from barnabas.controller import replicas
from barnabas.controller.replicas import Proposal, State
from barnabas.security.acl import AclOperation
from barnabas.wire import ErrorCode
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

Row = AlterPartitionResponse.PartitionData
Isr = Sequence[tuple[int, int]]


async def handle(context: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    if not request.topics:
        return AlterPartitionResponse()
    wanted = [(topic.topic_id, [_proposal(context, each) for each in topic.partitions]) for topic in request.topics]
    answers = await context.controller.write(replicas.alter, request.broker_id, request.broker_epoch, wanted)
    topic_of = AlterPartitionResponse.TopicData
    topics = [topic_of(topic_id=i, partitions=[_row(index, each) for index, each in rows]) for i, rows in answers]
    return AlterPartitionResponse(topics=topics)


def _proposal(context: Context, wanted: AlterPartitionRequest.PartitionData) -> Proposal:
    isr: Isr = [(replica, -1) for replica in wanted.new_isr]
    if context.version >= 3:
        isr = [(each.broker_id, each.broker_epoch) for each in wanted.new_isr_with_epochs]
    return Proposal(
        wanted.partition_index, isr, wanted.leader_recovery_state, wanted.leader_epoch, wanted.partition_epoch
    )


def _row(index: int, answer: State | ErrorCode) -> Row:
    if isinstance(answer, ErrorCode):
        return Row(partition_index=index, error_code=answer)
    return Row(
        partition_index=index,
        leader_id=answer.leader,
        leader_epoch=answer.leader_epoch,
        isr=list(answer.isr),
        leader_recovery_state=answer.leader_recovery_state,
        partition_epoch=answer.partition_epoch,
    )
