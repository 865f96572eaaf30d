"""ElectLeaders (43), versions 0 to 2.

Elects the preferred replica, or from version 1 on a replica that is not in sync if no other is left (unclean). A null
list means all partitions; the response then lists every topic, but only the partitions that needed an election. A
partition that needs no election is ELECTION_NOT_NEEDED. If no replica can be elected, the error is
PREFERRED_LEADER_NOT_AVAILABLE or ELIGIBLE_LEADERS_NOT_AVAILABLE. Needs ALTER on the cluster.
"""

from __future__ import annotations

from barnabas.broker.context import Context
from barnabas.controller import elections
from barnabas.security.acl import AclOperation
from barnabas.slices import in_slices
from barnabas.steps import Slices, mapped
from barnabas.wire import KafkaError
from barnabas.wire.messages.elect_leaders import ElectLeadersRequest, ElectLeadersResponse

Row = ElectLeadersResponse.PartitionResult


async def handle(context: Context, request: ElectLeadersRequest) -> ElectLeadersResponse:
    context.require_on_cluster(AclOperation.ALTER)
    asked = request.topic_partitions
    if asked is not None and not asked:
        return ElectLeadersResponse()
    wanted = None
    if asked is not None:
        wanted = await in_slices(mapped(lambda each: (each.topic, each.partitions), asked))
    elected = await context.controller.write(
        elections.elect, request.election_type, wanted, timeout_ms=request.timeout_ms
    )
    return ElectLeadersResponse(replica_election_results=await in_slices(_rows(elected)))


def _rows(elected: elections.Elected) -> Slices[list[ElectLeadersResponse.ReplicaElectionResult]]:
    rows = []
    for name, partitions in elected:
        results = yield from mapped(lambda each: _row(*each), partitions)
        rows.append(ElectLeadersResponse.ReplicaElectionResult(topic=name, partition_result=results))
        yield
    return rows


def _row(index: int, error: KafkaError | None) -> Row:
    if error is None:
        return Row(partition_id=index, error_message=None)
    return Row(partition_id=index, error_code=error.code, error_message=error.message)
