"""The quota on partitions created and deleted (KIP-599), as the handlers of three APIs apply it.

A client whose API version has THROTTLING_QUOTA_EXCEEDED gets that error with the time to wait. The request of an older
client is accepted. Both are throttled, see `throttling`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from barnabas.broker.context import Context
from barnabas.controller.mutation_quotas import UNBOUNDED, Charge, Charged

R = TypeVar("R")


class MutationThrottle:
    """The quota for one request of a user and client. It is charged once the decision is accepted."""

    def __init__(self, context: Context, *, strict_from: int) -> None:
        self._context = context
        self._quotas = context.services.quotas.mutations
        self._is_strict = context.version >= strict_from
        self._decided_ms = 0
        self._quota = UNBOUNDED
        self._charge = Charge()

    def limited(self, decision: Callable[..., R]) -> Callable[..., R]:
        """Return the decision with the quota as its last argument.

        The quota is read when the decision begins: the decisions that it had to wait for have been charged then.
        """

        def decide(*arguments: Any) -> R:
            context = self._context
            self._decided_ms = context.services.monotonic_ms()
            self._quota = self._quotas.quota(
                context.peer.principal.name, context.client_id, self._decided_ms, strict=self._is_strict
            )
            return decision(*arguments, self._quota)

        return decide

    def accepted(self, response: Charged[Any]) -> None:
        """Charge the quota for the decision. Pass this method to `Controller.write`."""
        self._charge = response.charge
        self._quotas.take(self._quota, response.charge)

    def apply(self) -> None:
        """Throttle the client if the decision says so."""
        elapsed_ms = self._context.services.monotonic_ms() - self._decided_ms
        self._context.throttle(self._quotas, self._charge.remaining_ms(elapsed_ms))
