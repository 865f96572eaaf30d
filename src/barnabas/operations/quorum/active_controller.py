"""The active controller of a cluster.

Its one rule: the leader of the metadata quorum is the active controller, so the quorum is asked. The controller id in
responses to Metadata and DescribeCluster is a random broker that forwards to it (KIP-590).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from barnabas.wire.errors import KafkaError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


class ActiveController(NamedTuple):
    """The id of the active controller. It is None if it is not known, and `problem` says why."""

    id: int | None
    problem: str | None = None


async def find_active_controller(cluster: Cluster) -> ActiveController:
    """Ask the metadata quorum for its leader. A cluster without a quorum (ZooKeeper) names its controller in Metadata."""
    from barnabas.client.admin.quorum import Quorum
    from barnabas.client.errors import CallTimeoutError

    if not (await cluster.versions()).serves("DescribeQuorum"):
        return _controller_of_zookeeper(cluster)
    try:
        leader_id = (await Quorum(cluster).describe_quorum()).leader_id
    except KafkaError as error:
        return ActiveController(None, f"the quorum cannot be described: {error.code.name}: {error.message}")
    except CallTimeoutError as error:
        return ActiveController(None, f"the quorum cannot be described: {error}")
    return ActiveController(leader_id) if leader_id >= 0 else ActiveController(None, "the quorum has no leader")


def _controller_of_zookeeper(cluster: Cluster) -> ActiveController:
    found = cluster.state.controller_id
    return ActiveController(found) if found >= 0 else ActiveController(None, "the cluster has no controller")
