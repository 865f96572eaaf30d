"""The quota on partitions created and deleted (KIP-599), as the handlers of three APIs apply it.

A client whose API version has THROTTLING_QUOTA_EXCEEDED gets that error with the time to wait. The request of an older
client is accepted. Both are answered at once, with the throttle time, and then the connection is muted for that time:
no request is read from it. A client that honours the throttle time notices nothing of it.
"""

from __future__ import annotations

from typing import Any, TypeVar

from barnabas.broker.context import Context
from barnabas.controller.mutation_quotas import Charge, Charged
from barnabas.wire import Message

M = TypeVar("M", bound=Message)


class MutationThrottle:
    """The quota for one request of a user and client. It is charged once the decision is accepted."""

    def __init__(self, context: Context, *, strict_from: int) -> None:
        services = context.services
        self._services = services
        self._information = context.peer.information
        self._now_ms = services.monotonic_ms()
        self._charge = Charge()
        self.quota = services.mutation_quotas.quota(
            context.image.quotas,
            context.peer.principal.name,
            context.client_id,
            self._now_ms,
            strict=context.version >= strict_from,
        )

    def accepted(self, response: Charged[Any]) -> None:
        """Charge the quota for the decision. Pass this method to `Controller.write`."""
        self._charge = response.charge
        self._services.mutation_quotas.take(self.quota, response.charge)

    def throttled(self, response: M) -> M:
        """Return the response with its throttle time, and mute the connection for that time."""
        throttle_time_ms = self._charge.remaining_ms(self._services.monotonic_ms() - self._now_ms)
        if throttle_time_ms:
            response.throttle_time_ms = throttle_time_ms  # type: ignore[attr-defined]
            if self._information is not None:
                self._information.mute_ms = throttle_time_ms
        return response
