"""Addresses of controllers, found through brokers, and of brokers, found through controllers.

Its one rule: addresses are those that the nodes advertise. Their listeners may need other client settings than the node that
was asked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from barnabas.config.endpoints import address_text
from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster


async def find_controllers(cluster: Cluster) -> list[str]:
    """Return the addresses of the voters, the leader first. Raises OperationError if brokers do not report them."""
    from barnabas.client.admin.quorum import Quorum

    info = await Quorum(cluster).describe_quorum()
    order = sorted(info.voters, key=lambda voter: (voter.replica_id != info.leader_id, voter.replica_id))
    found = [
        address_text(endpoint.host, endpoint.port)
        for voter in order
        for endpoint in info.nodes.get(voter.replica_id, ())[:1]
    ]
    if not found:
        raise OperationError(
            "these brokers do not report the addresses of controllers (Kafka 3.9 and newer do)",
            advice="pass a controller with --bootstrap-controller",
        )
    return found


async def find_brokers(cluster: Cluster) -> list[str]:
    """Return the addresses of unfenced brokers, from the metadata log that controllers serve. Needs CLUSTER_ACTION.

    A broker with several listeners is listed by one with the security protocol of the client, if it has one.
    """
    from barnabas.config.endpoints import SECURITY_PROTOCOLS
    from barnabas.operations.metadata_image import read_image

    wanted = list(SECURITY_PROTOCOLS).index(cluster.settings.security_protocol)
    found = []
    for broker in (await read_image(cluster)).brokers.values():
        endpoints = sorted(broker.listeners.values(), key=lambda each: each.security_protocol != wanted)
        if endpoints and not broker.fenced:
            found.append(address_text(endpoints[0].host, endpoints[0].port))
    return found
