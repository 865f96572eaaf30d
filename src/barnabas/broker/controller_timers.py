"""The periodic work of the active controller: fence silent brokers, restore preferred leaders, elect leaders, remove
expired delegation tokens.

Each task is a decision like any other. A decision that reports more work runs again at once. One that fails runs again
after its interval. Sessions are also checked when the next one expires, so that leaders move as soon as they may. On a
node that is not the active controller, the timers do nothing. A broker that is fenced because it is silent is named in
the log.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import Awaitable, Callable
from typing import Any

from barnabas.broker.active_controller import ActiveController
from barnabas.config.server_config import ServerConfig
from barnabas.controller import brokers, delegation_tokens, elections
from barnabas.controller.situation import Situation
from barnabas.replicated.decision import Result
from barnabas.security.delegation_token import SECRET_KEY
from barnabas.steps import Slices
from barnabas.wire import ErrorCode, KafkaError

_log = logging.getLogger(__name__)

Decision = Callable[[Situation], Result[Any] | Slices[Result[Any]]]
"""Its response is true if it must run again at once."""

MIN_WAIT_S = 0.005
"""Until sessions are checked again, whatever expires meanwhile."""


class ControllerTimers:
    """Runs from `start` to `stop`."""

    def __init__(
        self,
        controller: ActiveController,
        config: ServerConfig,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        self._controller = controller
        self._sleep = sleep
        self._session_ms = config.get_int("broker.session.timeout.ms")
        intervals_s: list[tuple[Decision, float]] = [
            (brokers.fence_stale_brokers, brokers.session_check_ms(config) / 1000),
            (elections.balance_leaders, config.get_int("leader.imbalance.check.interval.seconds")),
            (elections.elect_unclean_leaders, config.get_int("unclean.leader.election.interval.ms") / 1000),
        ]
        if config.get_str(SECRET_KEY):
            interval_ms = config.get_int("delegation.token.expiry.check.interval.ms")
            intervals_s.append((delegation_tokens.remove_expired, interval_ms / 1000))
        self._intervals_s = intervals_s
        self._tasks: list[asyncio.Task[None]] = []

    def start(self) -> None:
        self._tasks = [asyncio.create_task(self._repeat(*each)) for each in self._intervals_s]

    async def stop(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def _repeat(self, decision: Decision, interval_s: float) -> None:
        wait_s = interval_s
        while True:
            await self._sleep(wait_s)
            wait_s = interval_s
            try:
                while self._controller.loop.is_leader and await self._controller.write(decision, accepted=_report):
                    pass
                if decision is brokers.fence_stale_brokers:
                    wait_s = min(interval_s, self._until_session_expires_s())
            except KafkaError as error:
                if error.code is not ErrorCode.NOT_CONTROLLER:
                    _log.warning("%s failed and will be retried: %s", decision.__name__, error)
            except Exception:
                _log.exception("%s failed and will be retried", decision.__name__)

    def _until_session_expires_s(self) -> float:
        left_ms = self._controller.until_session_expires_ms(self._session_ms)
        return math.inf if left_ms is None else max(left_ms / 1000, MIN_WAIT_S)


def _report(response: object) -> None:
    if isinstance(response, brokers.Silence) and response.is_fenced:
        _log.warning(
            "fencing broker %d at epoch %d because its session has timed out: no heartbeat for %d ms",
            response.broker_id,
            response.epoch,
            response.silent_ms,
        )
