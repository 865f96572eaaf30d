"""Waiting for the metadata of a topic that a producer writes to for the first time."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from barnabas.client.backoff import Backoff
from barnabas.client.cluster import Cluster
from barnabas.client.errors import CallTimeoutError
from barnabas.wire import ErrorCode, KafkaError


async def wait_for_topic(
    cluster: Cluster, topic: str, timeout_ms: int, backoff: Backoff, random: Callable[[], float]
) -> None:
    """Request a topic until the cluster has it; brokers that create topics automatically create it.

    Raises `KafkaError`: the last error of the topic after `timeout_ms`, or one that is not retriable at once.
    """
    last: KafkaError | None = None
    try:
        async with asyncio.timeout(timeout_ms / 1000):
            for attempt in range(1 << 30):
                state = await cluster.metadata([topic], allow_auto_topic_creation=True, timeout_ms=timeout_ms)
                code = state.errors.get(topic)
                if code is None and topic in (await cluster.refresh([topic])).topics:
                    return
                code = code or ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
                last = KafkaError(code, f"topic {topic}: {code.message}")
                if not code.retriable:
                    raise last
                await asyncio.sleep(backoff.delay_ms(attempt, random()) / 1000)
    except (TimeoutError, CallTimeoutError) as error:
        raise last or error from None
