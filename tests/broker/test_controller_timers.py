"""When the active controller does its periodic work, with a clock of its own."""

from __future__ import annotations

import asyncio

from barnabas.broker.controller_timers import ControllerTimers
from tests.broker.harness import MemoryNode
from tests.broker.simulated_broker import SimulatedBroker

SETTINGS = {"broker.session.timeout.ms": "8000", "broker.heartbeat.interval.ms": "2000"}
CHECK_MS = 1000


class Clock:
    """Sleeps of the check of sessions end when they are told to. Those of other work never end."""

    def __init__(self, node: MemoryNode) -> None:
        self._node = node
        self._turns: asyncio.Queue[asyncio.Event] = asyncio.Queue()
        self.asked_ms = 0

    async def sleep(self, seconds: float) -> None:
        if seconds > 10:
            await asyncio.Event().wait()
        self.asked_ms = round(seconds * 1000)
        turn = asyncio.Event()
        await self._turns.put(turn)
        await turn.wait()

    async def pass_by(self) -> int:
        """Let the time pass that was asked for, and return how long that was. The next sleep has begun then."""
        turn = await self._turns.get()
        asked_ms = self.asked_ms
        self._node.now_ms += asked_ms
        turn.set()
        while self._turns.empty():
            await asyncio.sleep(0)
        return asked_ms


def test_a_silent_broker_is_fenced_when_its_session_expires_and_not_at_a_later_check() -> None:
    node = MemoryNode(SETTINGS, brokers=1)
    silent, alive = SimulatedBroker(node, 2).start(), SimulatedBroker(node, 3).start()
    began_ms = node.now_ms

    async def main() -> None:
        clock = Clock(node)
        timers = ControllerTimers(node.controller, node.config, clock.sleep)
        timers.start()
        node.now_ms += 300  # so that no periodic check comes when a session expires
        while not silent.registration.fenced:
            with node.controller.heard(alive.broker_id, alive.epoch):
                pass
            await clock.pass_by()
        assert node.now_ms - began_ms == 8001
        await timers.stop()

    asyncio.run(main())
    assert not alive.registration.fenced


def test_a_node_that_is_not_the_active_controller_waits_for_its_whole_interval() -> None:
    node = MemoryNode(SETTINGS, brokers=1)
    SimulatedBroker(node, 2).start()

    async def main() -> None:
        clock = Clock(node)
        timers = ControllerTimers(node.controller, node.config, clock.sleep)
        timers.start()
        node.controller.loop.lost()
        for _ in range(20):
            assert await clock.pass_by() == CHECK_MS
        await timers.stop()

    asyncio.run(main())
