"""Which brokers of a cluster are running: one small request, which a front end may repeat every few seconds."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from barnabas.operations.errors import OperationError

if TYPE_CHECKING:
    from barnabas.client.cluster import Cluster

WAIT_S = 4.0
"""A broker that needs longer for so small an answer is as good as silent."""


async def running_brokers(cluster: Cluster) -> frozenset[int]:
    """Return the ids of the brokers that are running. Raises OperationError if none of them answers soon."""
    from barnabas.client.admin.brokers import Brokers

    try:
        async with asyncio.timeout(WAIT_S):
            found = await Brokers(cluster).describe_cluster()
    except TimeoutError:
        raise OperationError(f"no broker has answered within {WAIT_S:g} s") from None
    return frozenset(each.id for each in found.nodes)
