"""What a local cluster looks like now: its processes, and what its brokers and controllers say of each other."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.operations.local_cluster.directory import LocalCluster
from barnabas.operations.local_cluster.layout import CLIENTS, CONTROLLER
from barnabas.operations.local_cluster.processes import pid_of, state_of

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster
    from barnabas.operations.quorum.health import Replica

ASK_TIMEOUT_MS = 5000


class Status(NamedTuple):
    """A row for each node, and facts of the whole cluster. `problem` says why the cluster could not be asked.

    `partitions` is None if no broker answered. Brokers answer for a while when the quorum of controllers no longer does.
    """

    rows: list[dict[str, Any]]
    partitions: int | None = None
    under_replicated: int = 0
    offline: int = 0
    reassignments: int = 0
    problem: str | None = None


def processes(local: LocalCluster) -> list[dict[str, Any]]:
    """Return a row for each node, as this machine sees it."""
    return [
        {
            "node": node_id,
            "program": "Apache Kafka" if node.is_apache else "barnabas",
            "roles": node.roles,
            "state": state_of(local, node_id).value,
            "pid": pid_of(local, node_id),
            "rack": node.rack,
            "clients": node.address(CLIENTS) if node.is_broker else None,
            "controller": node.address(CONTROLLER) if node.is_controller else None,
        }
        for node_id, node in local.nodes.items()
    ]


async def look(local: LocalCluster, cluster: Cluster) -> Status:
    """Ask the cluster. Raises what the client raises if no broker answers."""
    from barnabas.wire import KafkaError

    state = await cluster.metadata(None, timeout_ms=ASK_TIMEOUT_MS)
    rows = processes(local)
    partitions = [each for topic in state.topics.values() for each in topic.partitions.values()]
    problem, moving = None, 0
    try:
        replicas, moving = await _ask_controllers(cluster)
    except (KafkaError, OSError) as error:
        replicas, problem = {}, str(error)
    for row in rows:
        node_id = row["node"]
        found = replicas.get(node_id)
        row["quorum"] = None if found is None else found.role.value
        row["lag"] = None if found is None else found.lag
        row["leaders"] = sum(each.leader_id == node_id for each in partitions)
        row["replicas"] = sum(node_id in each.replicas for each in partitions)
        row["outOfSync"] = sum(node_id in each.replicas and node_id not in each.isr for each in partitions)
    return Status(
        rows,
        len(partitions),
        sum(len(each.isr) < len(each.replicas) for each in partitions),
        sum(each.leader_id in (None, -1) for each in partitions),
        moving,
        problem,
    )


async def _ask_controllers(cluster: Cluster) -> tuple[dict[int, Replica], int]:
    """Return the state of each replica of the metadata log, and the number of partitions that are being reassigned."""
    from barnabas.client.admin.quorum import Quorum
    from barnabas.client.admin.reassignments import Reassignments
    from barnabas.operations.quorum.health import judge

    info = await Quorum(cluster).describe_quorum(timeout_ms=ASK_TIMEOUT_MS)
    health = judge(info, time.time_ns() // 1_000_000)
    moving = await Reassignments(cluster).list_partition_reassignments(timeout_ms=ASK_TIMEOUT_MS)
    return {each.state.replica_id: each for each in health.replicas}, len(moving)
