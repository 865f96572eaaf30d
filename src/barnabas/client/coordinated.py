"""What the coordinator of a group or a transactional id can do: found, and asked, until it answers or the time is over."""

from __future__ import annotations

import asyncio
import random

from barnabas.client.cluster import Cluster
from barnabas.client.errors import PERMANENT
from barnabas.client.routing import CoordinatorType, node
from barnabas.client.versions import NodeVersions
from barnabas.wire import KafkaError


async def coordinator_versions(
    cluster: Cluster, key: str, type: CoordinatorType = CoordinatorType.GROUP, *, timeout_ms: float | None = None
) -> NodeVersions:
    """Its versions and features. Raises `KafkaError`, and OSError when it cannot be reached in time."""
    total_ms = cluster.settings.get_int("default.api.timeout.ms") if timeout_ms is None else timeout_ms
    deadline_s = asyncio.get_running_loop().time() + total_ms / 1000
    for attempt in range(1 << 30):
        found = (await cluster.coordinators([key], type, timeout_ms=total_ms))[key]
        if isinstance(found, KafkaError):
            raise found
        try:
            return await cluster.versions(node(found))
        except OSError as error:
            if isinstance(error, PERMANENT) or asyncio.get_running_loop().time() > deadline_s:
                raise
        cluster.forget_coordinator(key, type)
        await asyncio.sleep(cluster.settings.retry_backoff.delay_ms(attempt, random.random()) / 1000)
    raise AssertionError("the time is never over")
