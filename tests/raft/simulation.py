"""A cluster of replicas in one thread, with a clock, a network and disks that a seed decides about.

Its one rule: everything that happens is an event at a time, in an order that follows from the seed alone, so that a run
that went wrong goes wrong again. The cores are the real ones; messages go through the wire's own encoding. What must
always hold is checked while it runs: see `Truth`.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from hashlib import blake2b
from random import Random
from typing import Any

from barnabas import wire
from barnabas.batches import decode_header, decode_records, iterate_batches
from barnabas.raft import records
from barnabas.raft.core import RaftCore
from barnabas.raft.disk import Disk
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, MemoryLog, OffsetAndEpoch
from barnabas.raft.quorum_state import MemoryQuorumState
from barnabas.raft.ready import NotLeaderError, RaftConfig, Ready, Request, Response
from barnabas.raft.roles import Leader
from barnabas.raft.voters import Endpoint, ReplicaKey, Voter, VoterSet
from barnabas.wire import Message, Uuid
from barnabas.wire.messages.api_versions import ApiVersionsRequest, ApiVersionsResponse
from tests.raft.snapshots import SnapshotBuilder, bootstrap_snapshot

CLUSTER_ID = "c2ltdWxhdGVkLWNsdXN0ZQ"
LISTENER = "CONTROLLER"
START_MS = 1_700_000_000_000
SNAPSHOT_STATE_SIZE = 16

# As Apache Kafka 4.3 speaks them.
VERSIONS = {52: 2, 53: 1, 54: 1, 1: 18, 59: 1, 55: 2, 80: 1, 81: 0, 82: 0, 18: 4}


def directory_of(node_id: int) -> Uuid:
    return Uuid(node_id.to_bytes(16, "big"))


def key_of(node_id: int) -> ReplicaKey:
    return ReplicaKey(node_id, directory_of(node_id))


def voter_of(node_id: int) -> Voter:
    return Voter(key_of(node_id), (Endpoint(LISTENER, f"host{node_id}", 9093),))


def voter_set(*node_ids: int) -> VoterSet:
    return VoterSet(map(voter_of, node_ids))


def config_of(node_id: int, **changes: Any) -> RaftConfig:
    config = RaftConfig(
        node_id, directory_of(node_id), CLUSTER_ID, LISTENER, voter_of(node_id).listeners, request_timeout_ms=1000
    )
    return replace(config, **changes)


class Violation(AssertionError):  # noqa: N818 - the word says what it is
    """Something that must never be so."""


class Truth:
    """What the whole cluster has seen: one leader in an epoch, and one history of committed batches."""

    def __init__(self) -> None:
        self.leaders: dict[int, int] = {}
        self.states: dict[int, bytes] = {0: bytes(SNAPSHOT_STATE_SIZE)}  # end offset -> digest of all that is committed
        self.batches: dict[int, tuple[int, int]] = {}  # base offset -> end offset and epoch
        self.committed_offset = 0

    def elected(self, node: SimNode, epoch: int) -> None:
        before = self.leaders.setdefault(epoch, node.id)
        if before != node.id:
            raise Violation(f"{before} and {node.id} both lead epoch {epoch}")
        if node.log.end_offset < self.committed_offset:
            raise Violation(f"{node.id} leads epoch {epoch} without {node.log.end_offset}-{self.committed_offset}")
        for base_offset, end_offset, batch_epoch, _ in node.log.batches():
            if self.batches.get(base_offset, (end_offset, batch_epoch)) != (end_offset, batch_epoch):
                raise Violation(f"{node.id} leads epoch {epoch} with another batch at {base_offset}")

    def applied(self, node: SimNode, base_offset: int, end_offset: int, epoch: int, state: bytes) -> None:
        if self.batches.setdefault(base_offset, (end_offset, epoch)) != (end_offset, epoch):
            raise Violation(f"{node.id} commits ({end_offset}, {epoch}) at {base_offset}: {self.batches[base_offset]}")
        if self.states.setdefault(end_offset, state) != state:
            raise Violation(f"{node.id} commits something else before {end_offset}")
        self.committed_offset = max(self.committed_offset, end_offset)


@dataclass
class Faults:
    """How bad the world is."""

    min_delay_ms: int = 1
    max_delay_ms: int = 10
    loss: float = 0.0
    duplication: float = 0.0
    max_flush_ms: int = 5
    blocked: set[tuple[int, int]] = field(default_factory=set)


class SimNode:
    """A machine with a disk that survives, and a process on it that may not."""

    def __init__(self, cluster: Cluster, node_id: int, config: RaftConfig, static_voters: VoterSet) -> None:
        self.cluster = cluster
        self.id = node_id
        self.config = config
        self.static_voters = static_voters
        self.log = MemoryLog()
        self.store = MemoryQuorumState()
        self.skew_ms = 0  # by how much its clock is ahead
        self.incarnation = 0
        self.core: RaftCore | None = None
        self.was_leader_of = -1
        self.answers: dict[int, Callable[[Message], None]] = {}
        self.state = bytes(SNAPSHOT_STATE_SIZE)
        self.applied_offset = 0
        self.applied_epoch = 0
        self.high_watermark = 0

    @property
    def now_ms(self) -> int:
        return self.cluster.now_ms + self.skew_ms

    @property
    def is_up(self) -> bool:
        return self.core is not None

    def start(self) -> None:
        view, voters = records.load(self.log, self.static_voters)
        self.disk = Disk(self.log, self.static_voters)
        self.incarnation += 1
        self.applied_offset = 0
        self.high_watermark = 0
        self.state = bytes(SNAPSHOT_STATE_SIZE)
        self.core = RaftCore(self.config, view, voters, self.store.load(), self.now_ms, self.cluster.random)
        self.process()

    def crash(self) -> None:
        self.core = None
        self.incarnation += 1
        self.answers.clear()
        self.log.crash(self.cluster.random.randint)

    def tick(self) -> None:
        if self.core is not None:
            self.core.tick(self.now_ms)
            self.process()
            if self.core.deadline_ms() <= self.now_ms:
                raise Violation(f"{self.id} wants to be told the time again and again, as {self.core.role}")

    def step(self, message: Request | Response) -> None:
        if self.core is not None:
            self.core.step(self.now_ms, message)
            self.process()

    def propose(self, values: list[bytes]) -> int | None:
        if self.core is None or not self.core.is_leader:
            return None
        try:
            offset = self.core.propose(self.now_ms, self.core.epoch, values)
        except NotLeaderError:
            return None
        self.process()
        return offset

    def process(self) -> None:
        """Do what the core says, in its order, until it has nothing more to say."""
        core = self.core
        while core is not None:
            ready = core.ready()
            self._check_leader(core, ready)
            if ready.quorum_state is not None:
                self.store.save(ready.quorum_state)
            if ready.disk is not None:
                voters = self.disk.write(ready.disk)
                if voters is not None:
                    assert ready.disk.chunk is not None
                    core.on_snapshot_installed(self.now_ms, ready.disk.chunk.snapshot_id, voters)
                else:
                    core.on_appended(self.now_ms)
                    self._flush_later()
            for send in ready.sends:
                self.cluster.network_send(self, send.destination.id, send.correlation_id, send.message)
            for answer in ready.answers:
                complete = self.answers.pop(answer.request_id, None)
                if complete is not None:
                    complete(self.disk.fill(answer))
            if ready.high_watermark is not None:
                self._apply(ready.high_watermark)
            if not (ready.quorum_state or ready.disk or ready.sends or ready.answers):
                break
        if core is not None:
            self.cluster.wake(self, core.deadline_ms() - self.skew_ms)

    def _flush_later(self) -> None:
        incarnation = self.incarnation
        flushes_to = self.log.end_offset

        def flushed() -> None:
            if self.incarnation == incarnation and self.core is not None:
                assert self.log.end_offset == flushes_to, "the log changed while it was flushed"
                self.log.flush()
                self.core.on_flushed(self.now_ms)
                self.process()

        self.cluster.after(self.cluster.random.randint(0, self.cluster.faults.max_flush_ms), flushed)

    def _check_leader(self, core: RaftCore, ready: Ready) -> None:
        if core.is_leader and ready.leadership is not None:
            self.cluster.truth.elected(self, core.epoch)

    def _apply(self, high_watermark: int) -> None:
        """Hand the committed batches to the state machine, which is a digest of them."""
        if high_watermark < self.high_watermark:
            raise Violation(f"the high watermark of {self.id} went from {self.high_watermark} to {high_watermark}")
        self.high_watermark = high_watermark
        if self.applied_offset < self.log.start_offset:
            self._load_snapshot()
        while self.applied_offset < high_watermark:
            data = self.log.read(self.applied_offset, 1 << 16, high_watermark)
            if not data:
                raise Violation(f"{self.id} has committed {high_watermark} but has {self.log.end_offset}")
            for position, header in iterate_batches(data):
                batch = data[position : position + header.size_in_bytes]
                self.state = blake2b(self.state + batch, digest_size=SNAPSHOT_STATE_SIZE).digest()
                self.applied_offset, self.applied_epoch = header.next_offset, header.partition_leader_epoch
                self.cluster.truth.applied(
                    self, header.base_offset, header.next_offset, header.partition_leader_epoch, self.state
                )

    def _load_snapshot(self) -> None:
        snapshot_id = max(each for each in self.log.snapshot_ids() if each.offset <= self.log.start_offset)
        snapshot = self.log.open_snapshot(snapshot_id)
        assert snapshot is not None
        values = [
            record.value
            for header, found in records.snapshot_batches(snapshot, 64)
            for record in found
            if not header.is_control
        ]
        self.state = values[0] or b""
        self.applied_offset, self.applied_epoch = snapshot_id
        known = self.cluster.truth.states.get(snapshot_id.offset)
        if known != self.state:
            raise Violation(f"{self.id} was given a snapshot of something else than was committed")

    def take_snapshot(self) -> None:
        """As the layer above would: a snapshot of what is applied, and a log that begins there."""
        core = self.core
        if core is None or self.applied_offset <= self.log.start_offset:
            return
        snapshot_id = OffsetAndEpoch(self.applied_offset, self.applied_epoch)
        version, voters = core.voters.at(snapshot_id.offset)
        builder = SnapshotBuilder(snapshot_id)
        writer = self.log.create_snapshot(snapshot_id)
        writer.append(builder.header(START_MS, START_MS, version, voters))
        writer.append(builder.records([self.state], START_MS))
        writer.append(builder.footer(START_MS))
        writer.freeze()
        core.on_snapshot_created(snapshot_id)
        if self.log.flushed_offset >= snapshot_id.offset and not core._disk_is_busy:
            self.log.trim(snapshot_id)
            core.on_trimmed(snapshot_id)


class Cluster:
    """All machines, the network between them, and the clock."""

    def __init__(self, seed: int) -> None:
        self.random = Random(seed)
        self.now_ms = START_MS
        self.faults = Faults()
        self.truth = Truth()
        self.nodes: dict[int, SimNode] = {}
        self.events = 0
        self._queue: list[tuple[int, int, Callable[[], None]]] = []
        self._order = 0
        self._wakes: dict[int, int] = {}
        self._next_request_id = 0

    # --- building

    def add(self, node_id: int, *, voters: Iterable[int], dynamic: bool = True, **changes: Any) -> SimNode:
        """A node, formatted with these voters in a checkpoint, or with them in its configuration."""
        voter_ids = sorted(voters)
        servers = tuple((f"host{each}", 9093) for each in voter_ids)
        config = config_of(node_id, bootstrap_servers=servers if dynamic else (), **changes)
        static = VoterSet(replace(voter_of(each), key=ReplicaKey(each)) for each in voter_ids)
        node = SimNode(self, node_id, config, VoterSet() if dynamic else static)
        if dynamic and node_id in voter_ids:
            writer = node.log.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
            writer.append(bootstrap_snapshot(1, voter_set(*voter_ids), START_MS))
            writer.freeze()
        self.nodes[node_id] = node
        node.start()
        return node

    # --- time

    def after(self, delay_ms: int, action: Callable[[], None]) -> None:
        self._order += 1
        heapq.heappush(self._queue, (self.now_ms + delay_ms, self._order, action))

    def wake(self, node: SimNode, at_ms: int) -> None:
        """Tick the node then, unless it is woken before anyway."""
        at_ms = max(at_ms, self.now_ms + 1)
        if at_ms - self.now_ms > 1 << 40 or self.now_ms < self._wakes.get(node.id, 0) <= at_ms:
            return
        self._wakes[node.id] = at_ms

        def tick() -> None:
            if self._wakes.get(node.id) == at_ms:
                del self._wakes[node.id]
                node.tick()

        self.after(at_ms - self.now_ms, tick)

    def run(self, duration_ms: int, until: Callable[[], bool] | None = None) -> bool:
        """Let time pass; whether `until` came true."""
        end_ms = self.now_ms + duration_ms
        while self._queue and self._queue[0][0] <= end_ms:
            self.now_ms, _, action = heapq.heappop(self._queue)
            self.events += 1
            action()
            if until is not None and until():
                return True
        self.now_ms = end_ms
        return until is not None and until()

    # --- network

    def network_send(self, source: SimNode, destination_id: int, correlation_id: int, message: Message) -> None:
        """A request on its way, and its answer on the way back; either may be lost, late or doubled."""
        if destination_id <= -2:
            host, _ = source.config.bootstrap_servers[-2 - destination_id]
            destination_id = int(host.removeprefix("host"))
        key = message.schema().key
        assert key is not None
        version = VERSIONS[key]
        data = wire.encode(message, version)
        incarnation = source.incarnation

        def answered(answer: bytes | None, cls: type[Message]) -> None:
            if source.incarnation == incarnation:
                found = None if answer is None else wire.decode(cls, version, answer)
                source.step(Response(correlation_id, found))

        def deliver() -> None:
            node = self.nodes.get(destination_id)
            if node is None or not node.is_up or (source.id, destination_id) in self.faults.blocked:
                if self.random.random() < 0.5:  # refused at once, or never answered
                    self.after(self._delay(), lambda: answered(None, type(message)))
                return

            def complete(response: Message) -> None:
                encoded = wire.encode(response, version)
                if (destination_id, source.id) not in self.faults.blocked:
                    self._transmit(lambda: answered(encoded, type(response)))

            self._deliver_request(node, wire.decode(type(message), version, data), version, complete)

        self._transmit(deliver)

    def _deliver_request(
        self, node: SimNode, message: Message, version: int, complete: Callable[[Message], None]
    ) -> None:
        if isinstance(message, ApiVersionsRequest):
            feature = ApiVersionsResponse.SupportedFeatureKey(name="kraft.version", min_version=0, max_version=1)
            complete(ApiVersionsResponse(supported_features=[feature]))
            return
        self._next_request_id += 1
        node.answers[self._next_request_id] = complete
        node.step(Request(self._next_request_id, message, version, LISTENER))

    def _transmit(self, action: Callable[[], None]) -> None:
        if self.random.random() >= self.faults.loss:
            self.after(self._delay(), action)
            if self.random.random() < self.faults.duplication:
                self.after(self._delay() * 3, action)

    def _delay(self) -> int:
        return self.random.randint(self.faults.min_delay_ms, self.faults.max_delay_ms)

    # --- asking

    def ask(self, node_id: int, message: Message) -> list[Message]:
        """Send a request from outside; its answer will be in the list."""
        found: list[Message] = []
        key = message.schema().key
        assert key is not None
        node = self.nodes[node_id]
        if node.is_up:
            self._deliver_request(node, message, VERSIONS[key], found.append)
        return found

    def leaders(self) -> list[SimNode]:
        return [node for node in self.nodes.values() if node.core is not None and node.core.is_leader]

    def leader(self) -> SimNode:
        """The one leader of the highest epoch."""
        found = self.leaders()
        assert found, "nobody leads"
        return max(found, key=lambda node: node.core.epoch if node.core is not None else -1)

    def has_caught_up(self) -> bool:
        """Whether somebody leads, and everybody who is up has committed all that the leader has."""
        leaders = self.leaders()
        if len(leaders) != 1:
            return False
        leader = leaders[0].core
        assert leader is not None and isinstance(leader.role, Leader)
        end_offset = leader.log.end_offset
        return leader.role.high_watermark == end_offset == leader.next_offset and all(
            node.applied_offset == end_offset for node in self.nodes.values() if node.is_up
        )

    def check_logs(self) -> None:
        """Where two logs have a batch of the same epoch at the same offset, they are the same up to there."""
        nodes = list(self.nodes.values())
        for index, left in enumerate(nodes):
            for right in nodes[index + 1 :]:
                theirs = {base: (epoch, data) for base, _, epoch, data in right.log.batches()}
                is_same = False
                for base, _, epoch, data in reversed(list(left.log.batches())):
                    other = theirs.get(base)
                    if other is None:
                        continue
                    if other[0] == epoch:
                        is_same = True
                    if is_same and other != (epoch, data):
                        raise Violation(f"the logs of {left.id} and {right.id} agree after {base}, but not there")


def values_of(log: MemoryLog) -> list[bytes]:
    """The values of all records that are not control records."""
    found: list[bytes] = []
    for _, _, _, data in log.batches():
        header = decode_header(data)
        if not header.is_control:
            found += (record.value or b"" for record in decode_records(data))
    return found
