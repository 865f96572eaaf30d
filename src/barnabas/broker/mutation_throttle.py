"""The quota on partitions created and deleted (KIP-599), as the handlers of three APIs apply it.

A client whose API version has THROTTLING_QUOTA_EXCEEDED gets that error with the time to wait. The request of an older
client is accepted. Both are throttled, see `throttling`.
"""

from __future__ import annotations

from typing import Any

from barnabas.broker.context import Context
from barnabas.controller.mutation_quotas import Charge, Charged


class MutationThrottle:
    """The quota for one request of a user and client. It is charged once the decision is accepted."""

    def __init__(self, context: Context, *, strict_from: int) -> None:
        self._context = context
        self._quotas = context.services.quotas.mutations
        self._began_ms = context.services.monotonic_ms()
        self._charge = Charge()
        self.quota = self._quotas.quota(
            context.peer.principal.name, context.client_id, self._began_ms, strict=context.version >= strict_from
        )

    def accepted(self, response: Charged[Any]) -> None:
        """Charge the quota for the decision. Pass this method to `Controller.write`."""
        self._charge = response.charge
        self._quotas.take(self.quota, response.charge)

    def apply(self) -> None:
        """Throttle the client if the decision says so."""
        elapsed_ms = self._context.services.monotonic_ms() - self._began_ms
        self._context.throttle(self._quotas, self._charge.remaining_ms(elapsed_ms))
