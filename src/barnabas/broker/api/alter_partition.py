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
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import ErrorCode, Uuid
from barnabas.wire.messages.alter_partition import AlterPartitionRequest, AlterPartitionResponse

Row = AlterPartitionResponse.PartitionData
Isr = Sequence[tuple[int, int]]


async def handle(context: Context, request: AlterPartitionRequest) -> AlterPartitionResponse:
    context.require_on_cluster(AclOperation.CLUSTER_ACTION)
    if not request.topics:
        return AlterPartitionResponse()
    wanted = await in_slices(_wanted(context, request))
    answers = await context.controller.write(replicas.alter, request.broker_id, request.broker_epoch, wanted)
    return AlterPartitionResponse(topics=await in_slices(_topics(answers)))


def _wanted(context: Context, request: AlterPartitionRequest) -> Slices[list[tuple[Uuid, list[Proposal]]]]:
    wanted = []
    for topic in request.topics:
        yield
        proposals = yield from mapped(lambda each: _proposal(context, each), topic.partitions)
        wanted.append((topic.topic_id, proposals))
    return wanted


def _topics(answers: replicas.Answers) -> Slices[list[AlterPartitionResponse.TopicData]]:
    topics = []
    for topic_id, rows in answers:
        yield
        partitions = yield from mapped(lambda each: _row(*each), rows)
        topics.append(AlterPartitionResponse.TopicData(topic_id=topic_id, partitions=partitions))
    return topics


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
