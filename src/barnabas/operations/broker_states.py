"""Which brokers a cluster has, and which are running: one small request, which a front end may repeat every few seconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

_FIRST_WITH_FENCED: Final = 2
WAIT_S = 4.0
"""A broker that needs longer for so small an answer is as good as silent."""


class BrokerState(NamedTuple):
    """A registered broker. One that is fenced does not run, or has not caught up yet."""

    broker_id: int
    is_fenced: bool


async def running_brokers(cluster: Cluster) -> frozenset[int]:
    """Return the ids of the brokers that are running. Raises OperationError if none of them answers soon."""
    return frozenset(each.broker_id for each in await broker_states(cluster) if not each.is_fenced)


async def broker_states(cluster: Cluster) -> frozenset[BrokerState]:
    """Return all brokers, without fenced ones before Kafka 4.0. Raises OperationError if none of them answers soon."""
    from barnabas.client.admin.brokers import Brokers

    try:
        async with asyncio.timeout(WAIT_S):
            asks_brokers = not cluster.settings.bootstrap_controllers  # controllers refuse to tell of fenced ones
            tells = asks_brokers and (await cluster.versions()).serves("DescribeCluster", _FIRST_WITH_FENCED)
            found = await Brokers(cluster).describe_cluster(include_fenced_brokers=tells)
    except TimeoutError:
        raise OperationError(f"no broker has answered within {WAIT_S:g} s") from None
    return frozenset(BrokerState(each.id, each.is_fenced) for each in found.nodes)
