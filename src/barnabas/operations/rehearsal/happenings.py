"""What can happen to a cluster in a rehearsal: nodes die, stop and return, log dirs fail, replicas are moved.

Its one rule: only what nodes and clients would send is made up here: silence, heartbeats, registrations, reports of leaders and
requests. What follows from it is decided by `controller`. A follower that can reach its leader catches up with it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Protocol

from barnabas.controller import brokers, elections, reassignments, replicas, topics
from barnabas.controller.elections import ElectionType
from barnabas.controller.heartbeats import BrokerState
from barnabas.metadata.brokers import Broker
from barnabas.metadata.topics import RECOVERED, RECOVERING, Partition, TopicPartition
from barnabas.operations.errors import OperationError
from barnabas.operations.partitions import Key
from barnabas.operations.rehearsal.stage import NoQuorumError, Stage, Step
from barnabas.wire import ErrorCode, KafkaError, Uuid
from barnabas.wire.messages.broker_heartbeat import BrokerHeartbeatRequest
from barnabas.wire.messages.broker_registration import BrokerRegistrationRequest

_REGISTRATION_VERSION = 4
_MAX_ROUNDS = 1000
"""More than a copy or a shutdown can take, so that a mistake here cannot go on for ever."""


class Happening(Protocol):
    """Something that happens to the cluster on a stage."""

    def carry_out(self, stage: Stage) -> None:
        """Let it happen. Raises OperationError if the cluster has no such thing."""


@dataclass(frozen=True, slots=True)
class Kill:
    """Nodes die at once, without a word: their brokers are fenced when their sessions end."""

    nodes: Sequence[int]
    because: str = ""

    def carry_out(self, stage: Stage) -> None:
        _require(stage, self.nodes)
        if again := [node for node in self.nodes if node in stage.dead]:
            raise OperationError("it is dead already", resource=f"node {again[0]}")
        stage.lose(self.nodes)
        with stage.step(self.because or f"{_nodes(self.nodes)} {'dies' if len(self.nodes) == 1 else 'die'}"):
            _let_sessions_end(stage)


@dataclass(frozen=True, slots=True)
class Stop:
    """A node stops cleanly: it hands over its leaderships first."""

    node: int

    def carry_out(self, stage: Stage) -> None:
        _require(stage, [self.node])
        with stage.step(f"node {self.node} stops"):
            if stage.image.brokers.get(self.node) in stage.alive():
                _shut_down(stage, self.node)
            stage.lose([self.node], cleanly=True)


@dataclass(frozen=True, slots=True)
class Start:
    """Nodes return: their brokers register again, are unfenced, and catch up."""

    nodes: Sequence[int]
    because: str = ""

    def carry_out(self, stage: Stage) -> None:
        _require(stage, self.nodes)
        if running := [node for node in self.nodes if stage.image.brokers.get(node) in stage.alive()]:
            raise OperationError("it runs already", resource=f"node {running[0]}", advice="kill or stop it first")
        with stage.step(self.because or f"{_nodes(self.nodes)} {'returns' if len(self.nodes) == 1 else 'return'}"):
            stage.dead.difference_update(self.nodes)
            _let_sessions_end(stage)  # until then, another process of a broker cannot register
            for node in self.nodes:
                stage.silent.discard(node)
                stage.returned.add(node)
                if node in stage.image.brokers:
                    _register(stage, stage.image.brokers[node])
                    _beat(stage, stage.image.brokers[node])
                stage.killed.discard(node)


@dataclass(frozen=True, slots=True)
class FailLogDir:
    """A log dir of a broker fails. It is named by its id."""

    node: int
    directory: Uuid

    def carry_out(self, stage: Stage) -> None:
        _require(stage, [self.node])
        broker = stage.image.brokers.get(self.node)
        if broker is None or self.directory not in broker.log_dirs:
            known = ", ".join(map(str, () if broker is None else broker.log_dirs))
            raise OperationError(f"it has no log dir {self.directory}; it has {known}", resource=f"broker {self.node}")
        with stage.step(f"log dir {self.directory} of broker {self.node} fails"):
            if len(broker.log_dirs) == 1:
                stage.lose([self.node])  # a broker without a log dir ends
                _let_sessions_end(stage)
            else:
                _beat(stage, broker, offline=[self.directory])


@dataclass(frozen=True, slots=True)
class Unregister:
    """A broker is unregistered."""

    node: int

    def carry_out(self, stage: Stage) -> None:
        with stage.step(f"broker {self.node} is unregistered"):
            stage.decide(brokers.unregister, self.node)


@dataclass(frozen=True, slots=True)
class Reassign:
    """Partitions get other replicas; None cancels. They are copied, and then the old ones are removed."""

    targets: Mapping[Key, Sequence[int] | None]
    name: str = ""

    def carry_out(self, stage: Stage) -> None:
        count = len(self.targets)
        what = f"{count} partition{' is' if count == 1 else 's are'} reassigned"
        with stage.step(what + (f" ({self.name})" if self.name else "")) as step:
            reassign(stage, step, self.targets)


@dataclass(frozen=True, slots=True)
class DeleteTopics:
    """Topics are deleted."""

    names: Sequence[str]

    def carry_out(self, stage: Stage) -> None:
        with stage.step(f"{', '.join(self.names)} {'is' if len(self.names) == 1 else 'are'} deleted") as step:
            delete_topics(stage, step, self.names)


@dataclass(frozen=True, slots=True)
class Elect:
    """Leaders of all partitions are elected, as by kafka-leader-election: `preferred` or `unclean`."""

    kind: str

    def carry_out(self, stage: Stage) -> None:
        with stage.step(f"{self.kind} leaders of all partitions are elected") as step:
            for name, rows in stage.decide(elections.elect, ElectionType[self.kind.upper()], None):
                step.refusals.extend(_refused(f"{name}-{index}", error) for index, error in rows if error is not None)


# --- what follows after a while


def catch_up(stage: Stage) -> None:
    """Let followers copy what they lack: new replicas of reassignments, and replicas of brokers that have returned."""
    with stage.step("followers catch up", is_shown_if_empty=False):
        for _ in range(_MAX_ROUNDS):
            before = stage.image.offset
            for leader, partitions in _by_leader(stage):
                rows = [(each.topic.topic_id, [_proposal(stage, each, isr)]) for each, isr in partitions]
                stage.decide(replicas.alter, leader, stage.image.brokers[leader].epoch, rows)
            if stage.image.offset == before:
                return


def pass_time(stage: Stage) -> None:
    """Let the periodic elections of the controller happen."""
    with stage.step("leaders are elected where the settings allow unclean ones", is_shown_if_empty=False):
        _until_done(lambda: stage.decide(elections.elect_unclean_leaders))
    catch_up(stage)
    with stage.step(
        "preferred replicas lead again, within leader.imbalance.check.interval.seconds", is_shown_if_empty=False
    ):
        _until_done(lambda: stage.decide(elections.balance_leaders))


def _until_done(decide: Callable[[], bool]) -> None:
    for _ in range(_MAX_ROUNDS):
        if not decide():
            return


def _by_leader(stage: Stage) -> Iterator[tuple[int, list[tuple[TopicPartition, list[int]]]]]:
    """Yield each leader with the partitions that it would report, and their new in-sync replicas."""
    alive = {broker.broker_id for broker in stage.alive() if not broker.in_controlled_shutdown}
    found = []
    for topic in stage.image.topics.by_id.values():
        for index, partition in enumerate(topic.partitions):
            if partition.leader in alive and (isr := _next_isr(stage, partition, alive)) is not None:
                found.append((TopicPartition(topic, index, partition), isr))
    found.sort(key=lambda each: (each[0].partition.leader, each[0].topic.name, each[0].partition_id))
    for leader, group in groupby(found, key=lambda each: each[0].partition.leader):
        yield leader, list(group)


def _next_isr(stage: Stage, partition: Partition, alive: set[int]) -> list[int] | None:
    """Return what the leader would report next: one more follower in sync. None: nothing.

    After an unclean election, all followers begin again. The leader reports its own recovery together with the first.
    """
    for replica in partition.replicas:
        may = replica in partition.adding_replicas or replica in stage.returned
        may = may or partition.leader_recovery_state == RECOVERING
        if may and replica in alive and replica not in partition.isr:
            return [*partition.isr, replica]
    return None


def _proposal(stage: Stage, found: TopicPartition, isr: Sequence[int]) -> replicas.Proposal:
    partition = found.partition
    with_epochs = [(each, stage.image.brokers[each].epoch) for each in isr]
    return replicas.Proposal(
        found.partition_id, with_epochs, RECOVERED, partition.leader_epoch, partition.partition_epoch
    )


# --- requests


def reassign(stage: Stage, step: Step, targets: Mapping[Key, Sequence[int] | None]) -> None:
    """Send a reassignment, and note what is refused."""
    by_topic: dict[str, list[reassignments.Target]] = {}
    for (name, index), wanted in targets.items():
        by_topic.setdefault(name, []).append((index, wanted))
    for name, rows in stage.decide(reassignments.alter, list(by_topic.items())):
        step.refusals.extend(_refused(f"{name}-{index}", error) for index, error in rows if error is not None)


def delete_topics(stage: Stage, step: Step, names: Iterable[str]) -> None:
    """Send a deletion of topics, and note what is refused."""
    known = []
    for name in names:
        topic = stage.image.topics.get(name)
        if topic is None:
            step.refusals.append(_refused(name, KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)))
        else:
            known.append(topic.topic_id)
    stage.decide(topics.delete, known)


def _refused(what: str, error: KafkaError) -> str:
    return f"{what}: {error.code.name}: {error.message}"


# --- what nodes send


def _let_sessions_end(stage: Stage) -> None:
    """Let as much time pass as a session lasts, in which only the living send heartbeats."""
    if stage.has_lost_quorum:
        stage.decide(brokers.fence_stale_brokers)
    timeout_ms = stage.config.get_int("broker.session.timeout.ms")
    interval_ms = brokers.session_check_ms(stage.config)
    end_ms = stage.monotonic_ms + timeout_ms + 2 * interval_ms
    while stage.monotonic_ms < end_ms:
        stage.monotonic_ms += interval_ms
        for broker in stage.alive():
            _beat(stage, broker)
        while stage.decide(brokers.fence_stale_brokers) is not None:
            pass


def _shut_down(stage: Stage, node: int) -> None:
    for _ in range(_MAX_ROUNDS):
        state = _beat(stage, stage.image.brokers[node], want_stop=True)
        if state is BrokerState.SHUTDOWN_NOW:
            return
        for broker in stage.alive():
            if broker.broker_id != node:
                _beat(stage, broker)
    raise NoQuorumError(f"node {node} could not hand over its leaderships")


def _beat(stage: Stage, broker: Broker, *, want_stop: bool = False, offline: Sequence[Uuid] = ()) -> BrokerState:
    request = BrokerHeartbeatRequest(
        broker_id=broker.broker_id,
        broker_epoch=broker.epoch,
        current_metadata_offset=stage.image.offset,
        want_shut_down=want_stop,
        offline_log_dirs=list(offline),
        cordoned_log_dirs=None if broker.cordoned_log_dirs is None else list(broker.cordoned_log_dirs),
    )
    return stage.decide(brokers.heartbeat, request).state


def _register(stage: Stage, broker: Broker) -> None:
    """Register a broker as before, as a new process does. After a kill, it does not know its last epoch."""
    row = BrokerRegistrationRequest
    request = row(
        broker_id=broker.broker_id,
        incarnation_id=stage.situation.new_uuid(),
        rack=broker.rack,
        listeners=[
            row.Listener(name=each.name, host=each.host, port=each.port, security_protocol=each.security_protocol)
            for each in broker.listeners.values()
        ],
        features=[
            row.Feature(name=name, min_supported_version=range_.min, max_supported_version=range_.max)
            for name, range_ in broker.features.items()
        ],
        log_dirs=list(broker.log_dirs),
        previous_broker_epoch=-1 if broker.broker_id in stage.killed else broker.epoch,
    )
    stage.decide(brokers.register, request, _REGISTRATION_VERSION)


def _require(stage: Stage, nodes: Iterable[int]) -> None:
    known = {*stage.image.brokers, *stage.voters, *stage.image.controllers}
    for node in nodes:
        if node not in known:
            there = ", ".join(map(str, sorted(known)))
            raise OperationError(f"there is no such node; there are {there}", resource=f"node {node}")


def _nodes(nodes: Sequence[int]) -> str:
    return f"node {nodes[0]}" if len(nodes) == 1 else f"nodes {', '.join(map(str, nodes))}"


def in_rack(stage: Stage, rack: str) -> list[int]:
    """Return the brokers of a rack. Raises OperationError if it has none."""
    found = [broker.broker_id for _, broker in sorted(stage.image.brokers.items()) if broker.rack == rack]
    if not found:
        racks = sorted({broker.rack for broker in stage.image.brokers.values() if broker.rack is not None})
        known = f"there are {', '.join(racks)}" if racks else "no broker has one"
        raise OperationError(f"there is no such rack; {known}", resource=f"rack {rack}")
    return found


@dataclass(frozen=True, slots=True)
class KillRack:
    """All nodes of a rack die at once."""

    rack: str

    def carry_out(self, stage: Stage) -> None:
        nodes = [node for node in in_rack(stage, self.rack) if node not in stage.dead]
        Kill(nodes, f"rack {self.rack} is lost: {_nodes(nodes)}").carry_out(stage)


@dataclass(frozen=True, slots=True)
class StartRack:
    """All nodes of a rack return."""

    rack: str

    def carry_out(self, stage: Stage) -> None:
        alive = stage.alive()
        nodes = [node for node in in_rack(stage, self.rack) if stage.image.brokers[node] not in alive]
        Start(nodes, f"rack {self.rack} returns: {_nodes(nodes)}").carry_out(stage)
