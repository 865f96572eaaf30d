"""The quota on partitions created and deleted, as requests meet it.

From the version that knows THROTTLING_QUOTA_EXCEEDED a client is told, with the time to wait; a client of an older version is
made to wait by an answer that comes later.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from barnabas.broker.context import Context
from barnabas.controller.mutation_quotas import MutationQuota
from barnabas.wire import Message

M = TypeVar("M", bound=Message)


def mutation_quota(context: Context, *, strict_from: int) -> MutationQuota:
    """The quota of this request's user and client."""
    services = context.services
    user, strict = context.peer.principal.name, context.version >= strict_from
    return services.mutation_quotas.quota(
        context.image.quotas, user, context.client_id, services.monotonic_ms(), strict=strict
    )


async def throttled(context: Context, quota: MutationQuota, response: M, strict_from: int) -> M:
    """The response, with the time that the client has to wait; for an old client, after that time."""
    throttle_time_ms = quota.throttle_time_ms(context.services.monotonic_ms())
    if throttle_time_ms:
        response.throttle_time_ms = throttle_time_ms  # type: ignore[attr-defined]
        if context.version < strict_from:
            await asyncio.sleep(throttle_time_ms / 1000)
    return response
