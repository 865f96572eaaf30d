"""One group of 100 members with 100 partitions, a share group and a streams group: barnabas beside Apache Kafka in one run.

Members join one after another over one connection, and each join computes an assignment: no interval delays it. Then all send
heartbeats in turn: until everybody has what it should have, then a thousand times with nothing to say, and once more
after one has left, until the others have divided what it had.
"""

from __future__ import annotations

import time
from abc import abstractmethod
from collections.abc import Callable
from typing import Any, NamedTuple

from tools.apache_kafka import KAFKA_JVM, VERSION, ApacheKafka, Barnabas, Node

from barnabas.wire import ErrorCode
from barnabas.wire.messages.create_topics import CreateTopicsRequest
from barnabas.wire.messages.find_coordinator import FindCoordinatorRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.messages.share_group_heartbeat import ShareGroupHeartbeatRequest
from barnabas.wire.messages.streams_group_heartbeat import StreamsGroupHeartbeatRequest
from bench.connection import Client
from bench.table import Row, from_rounds
from bench.timing import alternating

SECTION = "share"
PEER = f"Apache Kafka {VERSION}"
ROUNDS = 5
MEMBERS = PARTITIONS = 100
THREADS = 10  # of each process of a streams application
BEATS = 1000
JOIN, LEAVE = 0, -1
GIVE_UP_S = 60.0
NOT_YET = (ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.NOT_COORDINATOR)
SETTINGS = {
    "offsets.topic.num.partitions": "1",
    "share.coordinator.state.topic.num.partitions": "1",
    "share.coordinator.state.topic.replication.factor": "1",
    "share.coordinator.state.topic.min.isr": "1",
    "group.share.assignment.interval.ms": "0",
    "group.streams.assignment.interval.ms": "0",
    "group.streams.initial.rebalance.delay.ms": "0",
}


class _Seen(NamedTuple):
    """One round of one node."""

    join_ms: float  # of each join
    beat_us: float  # of each heartbeat with nothing to say
    cpu_us: float  # the same, processor time of the node
    settle_ms: float  # until all have their part after one has left


class _Group:
    """The members of one group, and what they have."""

    version: int

    def __init__(self, client: Client, name: str) -> None:
        self.name = name
        self.epochs: dict[str, int] = {}
        self.parts: dict[str, frozenset[tuple[str, int]]] = {}
        self._client = client

    @abstractmethod
    def request(self, member: str, epoch: int) -> Any:
        """Return the heartbeat of a member."""

    @abstractmethod
    def part(self, response: Any) -> frozenset[tuple[str, int]] | None:
        """Return what the member has to do from now on, or None if that has not changed."""

    def beat(self, member: str, epoch: int | None = None) -> None:
        response, _ = self._client.call(
            self.request(member, self.epochs[member] if epoch is None else epoch), self.version
        )
        assert not response.error_code, response
        self.epochs[member] = response.member_epoch
        told = self.part(response)
        if told is not None:
            self.parts[member] = told

    def wait_loaded(self) -> None:
        """Wait until the coordinator has loaded its log: what is asked of an unknown member is known then."""
        deadline = time.monotonic() + GIVE_UP_S
        while self._client.call(self.request("nobody", 1), self.version)[0].error_code in NOT_YET:
            assert time.monotonic() < deadline
            time.sleep(0.1)

    def leave(self, member: str) -> None:
        self.beat(member, LEAVE)
        del self.epochs[member], self.parts[member]

    def settle(self) -> None:
        """Send heartbeats until all have the same epoch, and everything is somebody's."""
        deadline = time.monotonic() + GIVE_UP_S
        while True:
            for member in self.epochs:
                self.beat(member)
            if len(set(self.epochs.values())) == 1 and len(frozenset().union(*self.parts.values())) == PARTITIONS:
                return
            assert time.monotonic() < deadline, self.epochs


class _ShareGroup(_Group):
    version = 1

    def request(self, member: str, epoch: int) -> ShareGroupHeartbeatRequest:
        names = [self.name] if epoch == JOIN else None
        return ShareGroupHeartbeatRequest(
            group_id=self.name, member_id=member, member_epoch=epoch, subscribed_topic_names=names
        )

    def part(self, response: Any) -> frozenset[tuple[str, int]] | None:
        if response.assignment is None:
            return None
        rows = response.assignment.topic_partitions
        return frozenset((str(row.topic_id), number) for row in rows for number in row.partitions)


class _StreamsGroup(_Group):
    version = 0

    def request(self, member: str, epoch: int) -> StreamsGroupHeartbeatRequest:
        kind = StreamsGroupHeartbeatRequest
        asked = kind(group_id=self.name, member_id=member, member_epoch=epoch)
        if epoch == JOIN:
            asked.topology = kind.Topology(
                epoch=0, subtopologies=[kind.Subtopology(subtopology_id="0", source_topics=[self.name])]
            )
            asked.process_id = f"process-{int(member) // THREADS}"
            asked.rebalance_timeout_ms = 60_000
            asked.client_tags = []
        if epoch != LEAVE:
            tasks = sorted(number for _, number in self.parts.get(member, ()))
            asked.active_tasks = [kind.TaskIds(subtopology_id="0", partitions=tasks)] if tasks else []
            asked.standby_tasks = asked.warmup_tasks = []
        return asked

    def part(self, response: Any) -> frozenset[tuple[str, int]] | None:
        if response.active_tasks is None:
            return None
        return frozenset((row.subtopology_id, number) for row in response.active_tasks for number in row.partitions)


def run() -> list[Row]:
    rows = []
    with Barnabas(overrides=SETTINGS) as ours, ApacheKafka(overrides=SETTINGS, jvm=KAFKA_JVM) as theirs:
        for kind, what in ((_ShareGroup, "share group"), (_StreamsGroup, "streams group")):
            seen: tuple[list[_Seen], list[_Seen]] = ([], [])
            for number in range(ROUNDS + 1):  # the first one warms up
                for side, node in alternating([(0, ours), (1, theirs)], number):
                    seen[side].append(_live(node, kind, f"{what.replace(' ', '-')}-{number}"))
            rows += _rows(what, *(each[1:] for each in seen))
    return rows


def _rows(what: str, ours: list[_Seen], theirs: list[_Seen]) -> list[Row]:
    def row(question: str, unit: str, of: Callable[[_Seen], float]) -> Row:
        asked = f"a {what} of {MEMBERS} members, {PARTITIONS} partitions: {question}"
        return from_rounds(SECTION, asked, [of(each) for each in ours], PEER, [of(each) for each in theirs], unit, None)

    return [
        row("a join, with its assignment", "ms", lambda seen: seen.join_ms),
        row("a heartbeat", "us", lambda seen: seen.beat_us),
        row("a heartbeat, server CPU", "us", lambda seen: seen.cpu_us),
        row("one leaves, until all have their part", "ms", lambda seen: seen.settle_ms),
    ]


def _live(node: Node, kind: type[_Group], name: str) -> _Seen:
    with Client(node) as client:
        _prepare(client, name)
        group = kind(client, name)
        group.wait_loaded()
        started = time.perf_counter()
        for number in range(MEMBERS):
            group.beat(str(number), JOIN)
        join_ms = (time.perf_counter() - started) / MEMBERS * 1e3
        group.settle()
        cpu_s, started = node.cpu_s(), time.perf_counter()
        for number in range(BEATS):
            group.beat(str(number % MEMBERS))
        beat_us, cpu_us = ((end - begin) / BEATS * 1e6 for end, begin in _since(node, started, cpu_s))
        started = time.perf_counter()
        group.leave("0")
        group.settle()
        settle_ms = (time.perf_counter() - started) * 1e3
        for member in list(group.epochs):
            group.leave(member)
        return _Seen(join_ms, beat_us, cpu_us, settle_ms)


def _since(node: Node, started: float, cpu_s: float) -> tuple[tuple[float, float], tuple[float, float]]:
    return (time.perf_counter(), started), (node.cpu_s(), cpu_s)


def _prepare(client: Client, name: str) -> None:
    """Create a topic, and wait for it and for the coordinators."""
    topic = CreateTopicsRequest.CreatableTopic(name=name, num_partitions=PARTITIONS, replication_factor=1)
    created, _ = client.call(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7)
    topic_id = created.topics[0].topic_id
    deadline = time.monotonic() + GIVE_UP_S
    while True:
        group, _ = client.call(FindCoordinatorRequest(key_type=0, coordinator_keys=[name]), 6)
        state, _ = client.call(FindCoordinatorRequest(key_type=2, coordinator_keys=[f"{name}:{topic_id}:0"]), 6)
        told, _ = client.call(MetadataRequest(topics=[MetadataRequest.MetadataRequestTopic(name=name)]), 12)
        there = [each for each in told.topics[0].partitions if not each.error_code]
        if len(there) == PARTITIONS and not any(row.coordinators[0].error_code for row in (group, state)):
            return
        assert time.monotonic() < deadline, told
        time.sleep(0.2)
