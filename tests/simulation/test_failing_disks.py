"""A disk that fails once while a node starts, runs or stops: the node says which file, and its next start is as any other."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.broker.node import Node, NodeError
from tests.simulation.scenario import Nodes
from tests.simulation.world import World

MACHINE = "n1"
LIMIT_S = 60
MAX_CALLS = 200  # more than a start and a stop need


class FailsOnce:
    """Makes one call of a disk fail, counted from now on."""

    def __init__(self, world: World, call: str, number: int) -> None:
        self.left = number
        self._world = world
        self._call = call
        self._name = {"flush": "fsync", "read": "_readable"}[call]
        self._real = getattr(world.disks, self._name)
        setattr(world.disks, self._name, self._count)

    def _count(self, descriptor: int) -> Any:
        self.left -= 1
        if not self.left:
            condition = self._world.disks.conditions[MACHINE]
            condition.failing_flushes, condition.failing_reads = int(self._call == "flush"), int(self._call == "read")
        return self._real(descriptor)


async def live(nodes: Nodes, *, is_clean: bool = True) -> list[str]:
    """Start and stop a node once, and return what it said."""
    process = nodes.world.start(MACHINE)
    node, said = Node(nodes.config(MACHINE), nodes.world.surroundings(process)), list[str]()

    async def work() -> None:
        try:
            await node.start()
            await asyncio.sleep(1)
            if node.failed.done():
                said.append(str(node.failed.exception()))
        except NodeError as error:
            said.append(str(error))
        try:
            await (node.stop() if is_clean else node.drop())
        except NodeError as error:
            said.append(str(error))

    working = nodes.world.spawn(process, work())
    done, _ = await asyncio.wait([working], timeout=LIMIT_S)
    assert done, f"does not end: {said}"
    working.result()
    nodes.world.kill(MACHINE, power=False)
    return said


def calls_left(call: str, number: int, *, is_clean: bool) -> int:
    """Have one call fail in the second of three lives of a node. Return how far away the failure still is."""
    world = World(1)
    nodes = Nodes(world, [1], flushes=True)

    async def scenario() -> int:
        nodes.format()
        assert await live(nodes, is_clean=is_clean) == []
        failing = FailsOnce(world, call, number)
        said = await live(nodes)
        assert all("Input/output error" in text and f"/{MACHINE}/data" in text for text in said), said
        left, failing.left = failing.left, 0
        assert await live(nodes) == []
        return left

    try:
        left: int = world.run(scenario())
    finally:
        world.loop.close()
        asyncio.set_event_loop(None)
    assert world.violations == []
    return left


@pytest.mark.parametrize("is_clean", [False, True])
@pytest.mark.parametrize("call", ["flush", "read"])
def test_one_failure_is_reported_by_its_file_and_forgotten_by_the_next_start(call: str, is_clean: bool) -> None:
    assert any(calls_left(call, number, is_clean=is_clean) > 0 for number in range(1, MAX_CALLS))
