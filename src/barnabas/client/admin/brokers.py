"""Nodes: DescribeCluster (60), or Metadata (3) for older brokers; UnregisterBroker (64); ApiVersions (18).

Clients with `bootstrap.servers` describe brokers, clients with `bootstrap.controllers` describe controllers (KIP-919).
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass

from barnabas import __version__
from barnabas.client.admin.part import Part, change_one
from barnabas.client.errors import UnsupportedByNodeError, error_code
from barnabas.client.routing import any_broker, controller, node
from barnabas.client.state import BROKERS, CONTROLLERS, Node, operations_of
from barnabas.client.versions import NodeVersions, versions_of
from barnabas.security.acl import AclOperation
from barnabas.wire.errors import ErrorCode, KafkaError
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from barnabas.wire.messages.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from barnabas.wire.messages.metadata import MetadataRequest, MetadataResponse
from barnabas.wire.messages.unregister_broker import UnregisterBrokerRequest

_FIRST_WITH_FENCED = 2


@dataclass(frozen=True, slots=True)
class ClusterDescription:
    """A cluster and its nodes, brokers or controllers, in the order of their ids. Fenced brokers only if asked for.

    `controller_id` is the active controller if controllers were asked, else a random broker that forwards to it:
    `Quorum.describe_quorum` has the active one.
    """

    cluster_id: str | None
    controller_id: int
    nodes: tuple[Node, ...]
    endpoint_type: int
    authorized_operations: frozenset[AclOperation] | None = None  # None: not asked for

    @property
    def has_controllers(self) -> bool:
        return self.endpoint_type == CONTROLLERS


class Brokers(Part):
    """Brokers and controllers of a cluster.

    >>> from barnabas.client import Cluster
    >>> from barnabas.testing import Broker
    >>> async def main() -> None:
    ...     async with Broker() as broker, Cluster({"bootstrap.servers": broker.bootstrap_servers}) as cluster:
    ...         described = await Brokers(cluster).describe_cluster()
    ...         versions = (await Brokers(cluster).api_versions())[1]
    ...         print([node.id for node in described.nodes], versions.serves("DescribeTopicPartitions"))
    >>> asyncio.run(main())
    [1] True
    """

    async def describe_cluster(
        self,
        *,
        include_fenced_brokers: bool = False,
        include_authorized_operations: bool = False,
        timeout_ms: float | None = None,
    ) -> ClusterDescription:
        """Return the cluster id, the nodes and the controller. Listing fenced brokers needs Kafka 4.0."""
        endpoint_type = CONTROLLERS if self.cluster.settings.bootstrap_controllers else BROKERS
        if endpoint_type == BROKERS and not (await self.cluster.versions()).serves("DescribeCluster"):
            return await self._describe_by_metadata(include_fenced_brokers, include_authorized_operations, timeout_ms)
        request = DescribeClusterRequest(
            endpoint_type=endpoint_type,
            include_fenced_brokers=include_fenced_brokers,
            include_cluster_authorized_operations=include_authorized_operations,
        )
        response: DescribeClusterResponse = await self.cluster.call(
            request,
            any_broker(),
            feature="listing fenced brokers" if include_fenced_brokers else "",
            timeout_ms=timeout_ms,
        )
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=_sorted(Node(row.broker_id, row.host, row.port, row.rack, row.is_fenced) for row in response.brokers),
            endpoint_type=endpoint_type,
            authorized_operations=operations_of(response.cluster_authorized_operations),
        )

    async def _describe_by_metadata(
        self, include_fenced: bool, include_operations: bool, timeout_ms: float | None
    ) -> ClusterDescription:
        if include_fenced:
            raise UnsupportedByNodeError("listing fenced brokers needs DescribeCluster, which came with Kafka 2.8")
        if not include_operations:
            state = await self.cluster.metadata([], timeout_ms=timeout_ms)
            return ClusterDescription(state.cluster_id, state.controller_id, _sorted(state.nodes.values()), BROKERS)
        request = MetadataRequest(topics=[], include_cluster_authorized_operations=True)
        response: MetadataResponse = await self.cluster.call(
            request, any_broker(), least_version=8, feature="asking for authorized operations", timeout_ms=timeout_ms
        )
        return ClusterDescription(
            cluster_id=response.cluster_id,
            controller_id=response.controller_id,
            nodes=_sorted(Node(row.node_id, row.host, row.port, row.rack) for row in response.brokers),
            endpoint_type=BROKERS,
            authorized_operations=operations_of(response.cluster_authorized_operations),
        )

    async def can_list_fenced_brokers(self) -> bool:
        """Return whether the cluster supports `include_fenced_brokers`."""
        return (await self.cluster.versions()).serves("DescribeCluster", _FIRST_WITH_FENCED)

    async def unregister_broker(self, broker_id: int, *, timeout_ms: float | None = None) -> None:
        """Remove the registration of a broker that was stopped for good. A running broker registers itself again.

        Raises `KafkaError`, such as BROKER_ID_NOT_REGISTERED.
        """

        async def ask() -> None:
            request = UnregisterBrokerRequest(broker_id=broker_id)
            await self.cluster.call(request, controller(), feature="unregistering a broker", timeout_ms=timeout_ms)

        async def look() -> bool:
            described = await self.describe_cluster(include_fenced_brokers=True, timeout_ms=timeout_ms)
            return all(each.id != broker_id for each in described.nodes)

        await change_one(ask, look, f"unregistering broker {broker_id}")

    async def api_versions(
        self, node_ids: Iterable[int] | None = None, *, timeout_ms: float | None = None
    ) -> dict[int, NodeVersions | KafkaError]:
        """Return the API versions and features of these nodes, or of all. The result of an unreachable node is
        BROKER_NOT_AVAILABLE."""
        if node_ids is None:
            node_ids = [each.id for each in (await self.describe_cluster(timeout_ms=timeout_ms)).nodes]
        ids = list(dict.fromkeys(node_ids))
        found = await asyncio.gather(*(self._api_versions(node_id, timeout_ms) for node_id in ids))
        return dict(zip(ids, found, strict=True))

    async def _api_versions(self, node_id: int, timeout_ms: float | None) -> NodeVersions | KafkaError:
        request = ApiVersionsRequest(client_software_name="barnabas", client_software_version=__version__)
        try:
            response: ApiVersionsResponse = await self.cluster.call(request, node(node_id), timeout_ms=timeout_ms)
        except KafkaError as error:
            return error
        except OSError as error:
            return KafkaError(ErrorCode.BROKER_NOT_AVAILABLE, str(error))
        if response.error_code:
            return KafkaError(error_code(response.error_code))
        return versions_of(response)


def _sorted(nodes: Iterable[Node]) -> tuple[Node, ...]:
    return tuple(sorted(nodes))
