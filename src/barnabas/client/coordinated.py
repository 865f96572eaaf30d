"""API versions and features of the coordinator of a group or a transactional id, with retries until a timeout."""

from __future__ import annotations

import asyncio
import random

from barnabas.client.cluster import Cluster
from barnabas.client.errors import PERMANENT
from barnabas.client.routing import CoordinatorType, node
from barnabas.client.versions import NodeVersions
from barnabas.wire import ErrorCode, KafkaError


async def coordinator_versions(
    cluster: Cluster, key: str, type: CoordinatorType = CoordinatorType.GROUP, *, timeout_ms: float | None = None
) -> NodeVersions:
    """Find the coordinator and return its versions and features. Raises `KafkaError`, and OSError if it is not reached."""
    total_ms = cluster.settings.get_int("default.api.timeout.ms") if timeout_ms is None else timeout_ms
    deadline_s = asyncio.get_running_loop().time() + total_ms / 1000
    for attempt in range(1 << 30):
        found = (await cluster.coordinators([key], type, timeout_ms=total_ms))[key]
        if isinstance(found, KafkaError):
            raise found
        try:
            return await cluster.versions(node(found))
        except (OSError, KafkaError) as error:
            is_gone = not isinstance(error, KafkaError) or error.code is ErrorCode.BROKER_NOT_AVAILABLE
            if isinstance(error, PERMANENT) or not is_gone or asyncio.get_running_loop().time() > deadline_s:
                raise
        cluster.forget_coordinator(key, type)
        await asyncio.sleep(cluster.settings.retry_backoff.delay_ms(attempt, random.random()) / 1000)
    raise AssertionError("unreachable: the loop ends by return or raise")
