"""The simulated loop, network and processes: time is virtual, links can be cut, and a killed process never runs again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from dataclasses import fields
from random import Random
from typing import Any

import pytest

from barnabas.broker.surroundings import Surroundings
from barnabas.slices import in_slices
from barnabas.steps import Slices
from tests.simulation.loop import DeadlockError
from tests.simulation.world import World


@pytest.fixture
def world() -> Iterator[World]:
    world = World(1)
    for machine in ("a", "b"):
        world.add_machine(machine)
    yield world
    world.loop.close()
    asyncio.set_event_loop(None)


class Receiver(asyncio.Protocol):
    def __init__(self) -> None:
        self.data = b""
        self.is_lost = False

    def data_received(self, data: bytes) -> None:
        self.data += data

    def connection_lost(self, error: Exception | None) -> None:
        self.is_lost = True


async def connect(world: World) -> tuple[Any, Receiver, Receiver]:
    """A connection from `a` to `b`: the transport of `a`, and the two protocols."""

    async def accept() -> Receiver:
        listener = world.network.listen("b", 1)
        accepted, _ = await world.loop.sock_accept(listener)
        _, protocol = await world.loop.connect_accepted_socket(Receiver, accepted)
        assert isinstance(protocol, Receiver)
        return protocol

    accepting = world.spawn(world.start("b"), accept())
    await asyncio.sleep(0)
    opening = world.spawn(world.start("a"), world.loop.create_connection(Receiver, "b", 1))
    transport, protocol = await opening
    return transport, protocol, await accepting


def test_a_day_passes_at_once(world: World) -> None:
    world.run(asyncio.sleep(86_400))
    assert world.loop.time() == pytest.approx(86_400)


def test_a_node_takes_nothing_from_the_real_world(world: World) -> None:
    surroundings = world.surroundings(world.start("a"))
    same = {field.name for field in fields(Surroundings) if getattr(surroundings, field.name) == field.default}
    assert same == {"call_later", "sleep", "faults"}  # timers of the loop, whose time is virtual, and no faults


def test_waiting_for_nothing_is_an_error_instead_of_a_hang(world: World) -> None:
    async def wait() -> None:
        await asyncio.get_running_loop().create_future()

    with pytest.raises(DeadlockError):
        world.run(wait())


def test_bytes_arrive_in_order(world: World) -> None:
    async def scenario() -> bytes:
        transport, _, received = await connect(world)
        for number in range(300):
            transport.write(b"%d " % number)
        await asyncio.sleep(10)
        return received.data

    assert world.run(scenario()) == b"".join(b"%d " % number for number in range(300))


def test_a_cut_link_holds_bytes_in_one_direction_until_it_heals(world: World) -> None:
    async def scenario() -> list[bytes]:
        transport, _, received = await connect(world)
        found = []
        world.network.cut_link("a", "b")
        transport.write(b"late")
        await asyncio.sleep(5)
        found.append(received.data)
        world.network.heal_link("a", "b")
        await asyncio.sleep(1)
        return [*found, received.data]

    assert world.run(scenario()) == [b"", b"late"]


def test_what_was_given_up_arrives_after_what_was_sent_again(world: World) -> None:
    async def scenario() -> list[tuple[bytes, bytes]]:
        first, ours, received = await connect(world)
        accepting = world.spawn(world.processes["b"], accept_again())
        await asyncio.sleep(0)
        (held,) = world.network.hold_back("a", "b", Random(1), 1.0)
        first.write(b"once")
        await asyncio.sleep(1)
        held.lose(0.0)
        second, _ = await world.spawn(world.processes["a"], world.loop.create_connection(Receiver, "b", 2))
        second.write(b"once")
        await asyncio.sleep(1)
        again = await accepting
        found = [(received.data, again.data)]
        assert ours.is_lost and not received.is_lost
        world.network.deliver_late(held)
        await asyncio.sleep(1)
        assert received.is_lost
        return [*found, (received.data, again.data)]

    async def accept_again() -> Receiver:
        accepted, _ = await world.loop.sock_accept(world.network.listen("b", 2))
        _, protocol = await world.loop.connect_accepted_socket(Receiver, accepted)
        assert isinstance(protocol, Receiver)
        return protocol

    assert world.run(scenario()) == [(b"", b"once"), (b"once", b"once")]


def test_a_busy_loop_does_in_one_turn_what_became_due_meanwhile(world: World) -> None:
    times: list[float] = []

    async def wake(after_s: float) -> None:
        await asyncio.sleep(after_s)
        times.append(world.loop.time())

    async def scenario() -> None:
        await asyncio.gather(wake(1.0), wake(1.5), wake(4.0))

    world.loop.busy_s = lambda: 1.0
    world.run(scenario())
    assert times == pytest.approx([2, 2, 5])


def test_a_process_that_is_killed_in_its_turn_of_sliced_work_keeps_nobody_else_waiting(world: World) -> None:
    def work() -> Slices[int]:
        for _ in range(5):
            yield asyncio.sleep(0)
        return 1

    async def scenario() -> int:
        world.spawn(world.start("a"), in_slices(work()))
        for _ in range(4):
            await asyncio.sleep(0)
        world.kill("a", power=False)
        found: int = await world.spawn(world.start("b"), in_slices(work()))
        return found

    assert world.run(scenario()) == 1


@pytest.mark.parametrize("power", [False, True])
def test_peers_of_a_killed_process_notice_it_unless_the_power_is_gone(world: World, power: bool) -> None:
    async def scenario() -> list[bool]:
        transport, ours, _ = await connect(world)
        world.kill("b", power=power)
        await asyncio.sleep(5)
        found = [ours.is_lost]
        world.start("b")
        transport.write(b"x")  # refused by the machine that is back
        await asyncio.sleep(5)
        return [*found, ours.is_lost]

    assert world.run(scenario()) == [not power, True]


def test_nothing_of_a_killed_process_runs_again(world: World) -> None:
    ran: list[str] = []

    async def work() -> None:
        try:
            while True:
                await asyncio.sleep(1)
                ran.append("work")
        finally:
            ran.append("ended in order")

    async def scenario() -> None:
        world.spawn(world.start("a"), work())
        await asyncio.sleep(2.5)
        world.kill("a", power=False)
        await asyncio.sleep(10)
        assert ran == ["work", "work"]

    world.run(scenario())
    assert ran == ["work", "work"]


def test_a_paused_process_stands_still_and_goes_on(world: World) -> None:
    times: list[float] = []

    async def work() -> None:
        while True:
            await asyncio.sleep(1)
            times.append(world.loop.time())

    async def scenario() -> None:
        world.spawn(world.start("a"), work())
        await asyncio.sleep(1.5)
        world.pause("a")
        await asyncio.sleep(4)
        world.resume("a")
        await asyncio.sleep(2)
        world.kill("a", power=False)

    world.run(scenario())
    assert times == pytest.approx([1, 5.5, 6.5])


def test_work_in_threads_of_a_killed_process_is_not_done(world: World) -> None:
    done: list[int] = []

    async def scenario() -> None:
        process = world.start("a")
        world.spawn(process, asyncio.to_thread(done.append, 1))
        await asyncio.sleep(0)
        world.kill("a", power=True)
        await asyncio.sleep(1)

    world.run(scenario())
    assert done == []
