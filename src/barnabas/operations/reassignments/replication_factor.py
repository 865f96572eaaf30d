"""Change of the replication factor of topics, by a reassignment that adds or removes replicas."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.client.admin.reassignments import Reassignments
from barnabas.client.cluster import Cluster
from barnabas.client.reassignment_plan import PlanError, plan
from barnabas.client.state import Partition
from barnabas.operations.errors import OperationError, refused
from barnabas.operations.partitions import Key
from barnabas.operations.proposal import Proposal
from barnabas.wire import ErrorCode, KafkaError


class ReplicaChange(NamedTuple):
    """The new replicas of a partition, and the error if that failed."""

    replicas: tuple[int, ...]
    error: KafkaError | None


async def propose_replication_factor(
    cluster: Cluster, names: Sequence[str], replication_factor: int
) -> Proposal[Key, ReplicaChange]:
    """Propose to reassign all partitions of these topics that have another number of replicas. Raises OperationError."""
    state = await cluster.metadata(None)
    for name in names:
        if name not in state.topics:
            raise refused(KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), f"topic {name}")
    others: Counter[int] = Counter()
    found: dict[Key, Partition] = {}
    for name, topic in state.topics.items():
        for number, partition in topic.partitions.items():
            if name in names:
                found[name, number] = partition
            else:
                others.update(partition.replicas)
    current = {key: each.replicas for key, each in found.items()}
    try:
        targets = plan(
            current,
            {node.id: node.rack for node in state.nodes.values()},
            replication_factor=replication_factor,
            others=others,
            isr={key: each.isr for key, each in found.items()},
            leaders={key: each.leader_id for key, each in found.items()},
        ).targets
    except PlanError as error:
        raise OperationError(str(error)) from None
    if not targets:
        return Proposal({}, notes=(f"nothing to do: each partition has {replication_factor} replicas",))

    async def carry_out() -> dict[Key, ReplicaChange]:
        results = await Reassignments(cluster).alter_partition_reassignments(targets)
        return {key: ReplicaChange(target, results[key]) for key, target in targets.items()}

    removes = any(len(target) < len(current[key]) for key, target in targets.items())
    return Proposal(
        {key: ReplicaChange(target, None) for key, target in targets.items()},
        tuple(_step(key, current[key], target) for key, target in targets.items()),
        question="Remove replicas?" if removes else None,
        carry_out=carry_out,
        done_notes=("replicas are being moved; see the progress with: barnabas reassign status",),
    )


def _step(key: Key, before: Iterable[int], after: Iterable[int]) -> str:
    was, to = (",".join(map(str, each)) for each in (before, after))
    return f"move {key[0]}-{key[1]} from replicas {was} to {to}"
