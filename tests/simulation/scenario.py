"""One run: nodes, clients, the faults of a plan, then peace; and the verdict.

Nodes run under a supervisor, as in production: one that fails or cannot start is started again after a while. When the faults
have ended, everything must recover by itself.
"""

from __future__ import annotations

import asyncio
import contextlib
import gc
from collections.abc import Mapping, Sequence
from contextvars import Context
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from barnabas.broker.node import Node, NodeError
from barnabas.config.server import load
from barnabas.config.server_config import ServerConfig
from barnabas.metadata.snapshot import to_records
from barnabas.raft.formatting import Formatting, bootstrap_records, effective_features, write_format
from barnabas.steps import at_once
from barnabas.testing.settings import TEST_DEFAULTS
from barnabas.wire import random_uuid
from tests.simulation.clients import Clients
from tests.simulation.history import History
from tests.simulation.loop import Process
from tests.simulation.observe import Truth, observed
from tests.simulation.plan import CLIENT, NEEDS_FLUSHES, NEEDS_NODES, Fault, Kind, draw_plan
from tests.simulation.sizes import draw_busyness, draw_far, draw_sizes
from tests.simulation.turns import Turns
from tests.simulation.world import World

START_AGAIN_S = 1.0
START_LIMIT_S = 120.0
STOP_LIMIT_S = 60.0
QUIET_S = 5.0
LOOK_S = 0.1
MAX_SHOWN = 20
WEAK_MOMENT_S = 6.0  # for an election, or until a node is in an ISR again
OUT_OF_ISR_S = 6.0  # more than replica.lag.time.max.ms, and the time until the next check
SOON_S = 0.2
WATCH_S = 0.002
MOST_HELD_S = 2.0  # until a sender gives up a connection that holds back what it sends
MOST_STILL_S, MOST_BETWEEN_S = 0.3, 0.05  # of a machine that stutters
HOLD_S, HOLD_AGAIN, STILL_S = 1.0, 5, 0.2  # of fetches that are held back until a log is trimmed
MANY_PARTITIONS = 100  # of topics that come and go, where the length of turns matters


class Settings(NamedTuple):
    """The form of a run."""

    nodes: int = 3
    duration_s: float = 20.0
    keeps_trace: bool = False
    only: Kind | None = None  # draw faults of this kind alone
    counts_turns: bool = False


@dataclass
class Result:
    """What a run showed."""

    seed: int
    plan: list[Fault]
    violations: list[str]
    digest: str
    virtual_s: float
    events: int
    counts: dict[str, int]
    trace: list[str] = field(default_factory=list)
    is_counted: bool = False


class Nodes:
    """The nodes of a run, each on a machine of its own, under supervision."""

    def __init__(
        self, world: World, ids: Sequence[int], *, flushes: bool, sizes: Mapping[str, str] | None = None
    ) -> None:
        self.world = world
        self.ids = ids
        self.nodes: dict[str, Node] = {}
        self.has_peace = False
        self._flushes = flushes
        self._sizes = sizes or {}
        self._serving: dict[str, Process] = {}
        for machine in self.machines:
            world.add_machine(machine)

    @property
    def machines(self) -> list[str]:
        return [f"n{number}" for number in self.ids]

    @property
    def servers(self) -> str:
        return ",".join(f"{machine}:9092" for machine in self.machines)

    def config(self, machine: str) -> ServerConfig:
        replicas = str(min(3, len(self.ids)))
        least = "2" if len(self.ids) > 1 else "1"
        settings = {
            **TEST_DEFAULTS,
            "process.roles": "broker,controller",
            "node.id": machine.removeprefix("n"),
            "listeners": f"PLAINTEXT://{machine}:9092,CONTROLLER://{machine}:9093",
            "controller.listener.names": "CONTROLLER",
            "controller.quorum.voters": ",".join(f"{number}@n{number}:9093" for number in self.ids),
            "log.dirs": f"/{machine}/data",
            "broker.heartbeat.interval.ms": "500",
            "broker.session.timeout.ms": "3000",
            "replica.lag.time.max.ms": "3000",
            "default.replication.factor": replicas,
            "min.insync.replicas": least,
            "offsets.topic.replication.factor": replicas,
            "transaction.state.log.replication.factor": replicas,
            "transaction.state.log.min.isr": least,
            "group.initial.rebalance.delay.ms": "0",
            "log.flush.interval.messages": "1" if self._flushes else "9223372036854775807",
            "transaction.abort.timed.out.transaction.cleanup.interval.ms": "1000",
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS",
            **self._sizes,
        }
        return load(settings)

    def format(self) -> None:
        """Format the log dirs of all nodes for one cluster. Call it in the simulated world."""
        random = self.world.random_for("format")
        cluster_id, bootstrap = str(random_uuid(random)), bootstrap_records(effective_features())
        for number, machine in zip(self.ids, self.machines, strict=True):
            log_dir = Path(f"/{machine}/data")
            directory_ids = {log_dir: random_uuid(random)}
            write_format(Formatting(cluster_id, number, log_dir, directory_ids, bootstrap, None), self.world.wall_ms)

    def start(self, machine: str) -> None:
        """Start the program on a machine, unless it runs already."""
        if machine not in self.world.processes:
            process = self.world.start(machine)
            self.world.spawn(process, self._live(machine, process))

    def is_serving(self, machine: str) -> bool:
        process = self._serving.get(machine)
        return process is not None and process.is_alive

    def is_serving_in(self, process: Process) -> bool:
        return self._serving.get(process.machine) is process

    async def wait_started(self) -> None:
        """Wait until all nodes serve clients, however often they are started meanwhile."""
        until_s = self.world.loop.time() + START_LIMIT_S
        while waiting := [machine for machine in self.machines if not self.is_serving(machine)]:
            await asyncio.sleep(LOOK_S)
            if self.world.loop.time() > until_s:
                self.world.violated(f"{', '.join(waiting)} does not start")
                return

    async def stop(self, machine: str) -> None:
        """Stop a node cleanly."""
        process = self.world.processes.get(machine)
        if process is None or not self.is_serving(machine):
            return
        self.world.say("stopping", machine)
        stopping = self.world.spawn(process, self.nodes[machine].stop())
        await asyncio.wait([stopping], timeout=STOP_LIMIT_S)
        if process.is_alive:
            if not stopping.done():
                self.world.say("a stop takes too long", machine)
            elif (error := stopping.exception()) is not None:
                if not (isinstance(error, NodeError) and self.world.disks.conditions[machine].has_failed):
                    self.world.violated(f"{machine} cannot stop: {error!r}")
                self.world.say("stopped badly", machine, str(error)[:300])
            self.world.kill(machine, power=False)

    async def _live(self, machine: str, process: Process) -> None:
        node = self.nodes[machine] = Node(self.config(machine), self.world.surroundings(process))
        try:
            await node.start()
            self._serving[machine] = process
            await node.failed
        except (NodeError, OSError) as error:
            self.ended(machine, error)
        except Exception as error:
            if node.failed.done() and error is node.failed.exception():
                self.ended(machine, error)
            else:
                self.world.violated(f"{machine} cannot start: {error!r}")
                raise

    def ended(self, machine: str, error: Exception) -> None:
        """Start a failed node again after a while. In peace there is no reason to fail, unless its disk failed before."""
        self.world.say("failed", machine, str(error)[:300])
        has_no_reason = self.has_peace and not self.world.disks.conditions[machine].has_failed

        def again() -> None:
            self.world.kill(machine, power=False)
            if has_no_reason:
                self.world.violated(f"{machine} fails without a fault: {error}")
            self.start(machine)

        self.world.loop.call_later(START_AGAIN_S, again, context=Context())


class Run:
    """One run of one seed."""

    def __init__(self, seed: int, plan: Sequence[Fault] | None, settings: Settings) -> None:
        self.world = World(seed, keeps_trace=settings.keeps_trace)
        self.history = History()
        self.duration_s = settings.duration_s
        self.counts_turns = settings.counts_turns
        self.flushes = self.world.random_for("flushes").random() < 0.6 or settings.only in NEEDS_FLUSHES
        self.sizes = draw_sizes(self.world.random_for("sizes"))
        self.world.loop.busy_s = draw_busyness(self.world.random_for("busyness"))
        self.nodes = Nodes(self.world, range(1, settings.nodes + 1), flushes=self.flushes, sizes=self.sizes)
        self.turns = Turns(self.world.loop, self.nodes.is_serving_in, self.world.violated)
        self.truth = Truth(self.world, self.turns.aside)
        self.world.network.far = draw_far(self.world.random_for("far"), self.nodes.machines)
        without = (*(() if self.flushes else NEEDS_FLUSHES), *(() if settings.nodes > 2 else NEEDS_NODES))
        drawn = draw_plan(
            self.world.random_for("plan"), self.nodes.machines, self.duration_s, without=without, only=settings.only
        )
        self.plan = drawn if plan is None else list(plan)
        late = [fault for fault in self.plan if fault.kind is Kind.LATE]
        self.history.offsets_may_be_old = any(fault.machine == CLIENT for fault in late)
        self.history.topics_may_be_old = bool(late)
        replicas, partitions = min(3, settings.nodes), MANY_PARTITIONS if settings.counts_turns else 1
        self.clients = Clients(self.world, self.history, self.nodes.servers, replicas, partitions)

    def run(self) -> Result:
        with observed(self.truth), self._counted():
            try:
                self.world.run(self._scenario())
            except Exception as error:
                self.world.violated(f"the run ended early: {error!r}")
        world = self.world
        counts = {
            **self.history.counts,
            **self.truth.counts,
            "epochs": len(self.truth.leaders),
            "faults": len(self.plan),
        }
        return Result(
            int(world.seed),
            self.plan,
            world.violations,
            world.digest,
            world.loop.time(),
            world.events,
            counts,
            list(world.trace),
            self.counts_turns,
        )

    def _counted(self) -> contextlib.AbstractContextManager[None]:
        return self.turns.counted() if self.counts_turns else contextlib.nullcontext()

    async def _scenario(self) -> None:
        self.nodes.format()
        for machine in self.nodes.machines:
            self.nodes.start(machine)
        await self.nodes.wait_started()
        self.clients.start_process()
        await self.clients.make_topics()
        self.clients.start()
        await self._carry_out()
        self._make_peace()
        await self.nodes.wait_started()
        await asyncio.sleep(QUIET_S)
        await self.clients.stop()
        final = await self.clients.look()
        for what in list(self.history.check(final))[:MAX_SHOWN]:
            self.world.violated(what)
        self._compare_images()
        for machine in self.nodes.machines:
            await self.nodes.stop(machine)

    def _compare_images(self) -> None:
        """Compare the metadata of each node with what the committed records make."""
        for machine in self.nodes.machines:
            if self.nodes.is_serving(machine):
                image = self.nodes.nodes[machine].image
                self.truth.has_image(machine, "has an image", image.offset, (each for each, _ in to_records(image)))

    async def _carry_out(self) -> None:
        began_s = self.world.loop.time()
        under_way: list[asyncio.Task[None]] = []
        for fault in self.plan:
            await asyncio.sleep(began_s + fault.at_s - self.world.loop.time())
            self.world.say("fault", str(fault))
            under_way.append(asyncio.create_task(self._inflict(fault)))
        await asyncio.sleep(max(0.0, began_s + self.duration_s - self.world.loop.time()))
        for task in under_way:
            if task.done():
                task.result()
            else:
                task.cancel()

    def _make_peace(self) -> None:
        world = self.world
        world.say("peace")
        self.nodes.has_peace = True
        for source, target in sorted(world.network.cut):
            world.network.heal_link(source, target)
        world.network.slow.clear()
        for transport in list(world.network.late):
            world.network.deliver_late(transport)
        for machine, condition in world.disks.conditions.items():
            condition.is_full = False
            condition.failing_flushes = condition.failing_reads = 0
            condition.slowness = 1.0
            if machine in world.processes and world.processes[machine].is_paused:
                world.resume(machine)
            self.nodes.start(machine)

    async def _inflict(self, fault: Fault) -> None:
        world, machine, lasts_s = self.world, fault.machine, fault.duration_s
        others = [each for each in (*self.nodes.machines, CLIENT) if each != machine]
        condition = world.disks.conditions.get(machine)
        match fault.kind:
            case Kind.KILL | Kind.POWER:
                world.kill(machine, power=fault.kind is Kind.POWER)
                await asyncio.sleep(lasts_s)
                self.nodes.start(machine)
            case Kind.BLACKOUT:
                for each in self.nodes.machines:
                    world.kill(each, power=True)
                for each in self.nodes.machines:
                    await asyncio.sleep(lasts_s * fault.amount / 3)
                    self.nodes.start(each)
            case Kind.RESTART:
                await self.nodes.stop(machine)
                await asyncio.sleep(lasts_s * fault.amount)
                self.nodes.start(machine)
            case Kind.PAUSE:
                world.pause(machine)
                await asyncio.sleep(lasts_s)
                world.resume(machine)
            case Kind.STUTTER:
                await self._stutter(machine, fault)
            case Kind.CUT:
                await self._cut([(machine, fault.other)], lasts_s)
            case Kind.ISOLATE:
                await self._cut([link for each in others for link in ((machine, each), (each, machine))], lasts_s)
            case Kind.LOSE:
                world.network.lose_connections(machine, fault.other, world.random_for(f"lose/{fault.at_s}"))
            case Kind.LATE:
                held = world.network.hold_back(machine, fault.other, world.random_for(f"late/{fault.at_s}"))
                await asyncio.sleep(fault.amount * MOST_HELD_S)
                for transport in held:
                    transport.lose(0.0)
                await asyncio.sleep(lasts_s)
                for transport in held:
                    world.network.deliver_late(transport)
            case Kind.SLOW_LINK:
                world.network.slow[machine, fault.other] = 1 + fault.amount * 100
                await asyncio.sleep(lasts_s)
                world.network.slow.pop((machine, fault.other), None)
            case Kind.SLOW_DISK if condition is not None:
                condition.slowness = 1 + fault.amount * 200
                await asyncio.sleep(lasts_s)
                condition.slowness = 1.0
            case Kind.FULL_DISK if condition is not None:
                condition.is_full = True
                await asyncio.sleep(lasts_s)
                condition.is_full = False
            case Kind.FLUSH_ERROR if condition is not None:
                condition.failing_flushes = 1
            case Kind.READ_ERROR if condition is not None:
                condition.failing_reads = 1
            case Kind.BALLOT:
                await self._disturb_ballot(fault)
            case Kind.LAGGARD:
                await self._lag(fault)
            case Kind.TRIM:
                await self._fetch_while_trimmed(fault)
            case Kind.CLOCK:
                world.clock_errors_ms[machine] += round((fault.amount - 0.5) * 10_000)
            case _:
                raise AssertionError(fault)

    async def _stutter(self, machine: str, fault: Fault) -> None:
        world, random = self.world, self.world.random_for(f"stutter/{fault.at_s}")
        until_s = world.loop.time() + fault.duration_s
        while world.loop.time() < until_s:
            world.pause(machine)
            await asyncio.sleep(random.uniform(0, fault.amount * MOST_STILL_S))
            world.resume(machine)
            await asyncio.sleep(random.uniform(0, MOST_BETWEEN_S))

    async def _disturb_ballot(self, fault: Fault) -> None:
        """Have a leader of the metadata elected and at once cut off, and kill those that elected it."""
        elected = self.truth.next_leader()
        leader = self.truth.leader
        if leader is not None:
            self.world.kill(f"n{leader}", power=False)
        try:
            async with asyncio.timeout(WEAK_MOMENT_S):
                winner = f"n{await elected}"
        except TimeoutError:
            winner = ""
        self.world.say("ballot", winner)
        others = [each for each in self.nodes.machines if each != winner]
        links = [link for each in others for link in ((winner, each), (each, winner))] if winner else []
        for link in links:
            self.world.network.cut_link(*link)
        for each in others:
            self.world.kill(each, power=False)
        for each in others:
            await asyncio.sleep(fault.amount * SOON_S)
            self.nodes.start(each)
        await asyncio.sleep(max(fault.duration_s, WEAK_MOMENT_S))
        for link in links:
            self.world.network.heal_link(*link)

    async def _fetch_while_trimmed(self, fault: Fault) -> None:
        """Hold back what a follower of the metadata sends, until the leader has written a snapshot and stands still."""
        world, truth = self.world, self.truth
        random = world.random_for(f"trim/{fault.at_s}")
        for _ in range(HOLD_AGAIN):
            leader = f"n{truth.leader}"
            late = next(each for each in (fault.machine, *self.nodes.machines) if each != leader)
            held = world.network.hold_back(late, leader, random, 1.0)
            written = asyncio.get_running_loop().create_future()

            def stand_still(node_id: int, leader: str = leader, written: asyncio.Future[None] = written) -> None:
                if f"n{node_id}" == leader and not written.done():
                    world.pause(leader)
                    written.set_result(None)

            truth.at_snapshot = stand_still
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(HOLD_S):
                    await written
            truth.at_snapshot = lambda node_id: None
            for transport in held:
                world.network.deliver_late(transport)
            if written.done() and not written.cancelled():
                world.say("trims", leader, "with fetches of", late)
                await asyncio.sleep(fault.amount * STILL_S)
                world.resume(leader)
            await asyncio.sleep(fault.amount * HOLD_S)

    async def _lag(self, fault: Fault) -> None:
        """Cut a follower off from a leader, let it fetch slowly after that, and kill the leader when the ISR has it again."""
        world, controller = self.world, f"n{self.truth.leader}"
        late = fault.machine
        leader = fault.other if fault.other in self.nodes.machines else late
        if controller not in self.nodes.machines or len({controller, late, leader}) < 3:
            late, leader = [each for each in self.nodes.machines if each != controller][:2]
        await self._cut([(late, leader), (leader, late)], OUT_OF_ISR_S)
        world.network.slow[leader, late] = 1 + fault.amount * 1000
        gone = self._led_with(controller, leader, late)
        until_s = world.loop.time() + WEAK_MOMENT_S
        while self._led_with(controller, leader, late) <= gone and world.loop.time() < until_s:
            await asyncio.sleep(WATCH_S)
        world.say("again in the ISR", late, leader)
        world.kill(leader, power=False)
        await asyncio.sleep(fault.duration_s)
        world.network.slow.pop((leader, late), None)
        self.nodes.start(leader)

    def _led_with(self, controller: str, leader: str, follower: str) -> int:
        """Return of how many partitions of a leader a follower is in the ISR, as a controller knows it."""
        if not self.nodes.is_serving(controller):
            return 0
        topics = self.nodes.nodes[controller].image.topics
        led = at_once(topics.led_by(int(leader.removeprefix("n"))))
        return sum(int(follower.removeprefix("n")) in partition.isr for _, _, partition in led)

    async def _cut(self, links: Sequence[tuple[str, str]], lasts_s: float) -> None:
        for link in links:
            self.world.network.cut_link(*link)
        await asyncio.sleep(lasts_s)
        for link in links:
            self.world.network.heal_link(*link)


DEFAULT = Settings()


def run(seed: int, plan: Sequence[Fault] | None = None, settings: Settings = DEFAULT) -> Result:
    """Run one seed, or another plan with its randomness. Call it in a process of its own."""
    gc.disable()  # what is freed must not depend on when
    return Run(seed, plan, settings).run()
