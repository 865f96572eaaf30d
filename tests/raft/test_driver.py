"""The driver under asyncio: a single voter, three in one process, and what listeners and clients see of them."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from barnabas import wire
from barnabas.batches import decode_header, decode_records, iterate_batches
from barnabas.raft import driver as driver_module
from barnabas.raft import messages
from barnabas.raft.driver import Clock, CommittedBatch, RaftDriver, Snapshot
from barnabas.raft.log import BOOTSTRAP_SNAPSHOT_ID, MemoryLog, OffsetAndEpoch
from barnabas.raft.quorum_state import MemoryQuorumState, QuorumState
from barnabas.raft.ready import NotLeaderError, ProposalTooLargeError
from barnabas.raft.voters import Node, ReplicaKey, VoterSet
from barnabas.steps import at_once
from barnabas.wire import ErrorCode, KafkaError, Message
from barnabas.wire.messages.describe_quorum import DescribeQuorumRequest
from barnabas.wire.messages.fetch import FetchRequest
from barnabas.wire.messages.metadata import MetadataRequest
from barnabas.wire.records.metadata import NoOpRecord, TopicRecord
from tests.raft.simulation import CLUSTER_ID, LISTENER, VERSIONS, config_of, key_of, voter_set
from tests.raft.snapshots import SnapshotBuilder, bootstrap_snapshot

TIMEOUT_S = 20


def run(test: Callable[[], Awaitable[None]]) -> None:
    async def bounded() -> None:
        async with asyncio.timeout(TIMEOUT_S):
            await test()

    asyncio.run(bounded())


def append(driver: RaftDriver, epoch: int, records: list[tuple[Message, int]]) -> int:
    return at_once(driver.append(epoch, records))


def topic(name: str) -> tuple[Message, int]:
    return TopicRecord(name=name), 0


class Nowhere:
    """A network with nobody on it."""

    async def send(self, destination: Node, request: Message) -> Message:
        raise OSError("unreachable")


class Network:
    """Drivers that reach each other in one process."""

    def __init__(self) -> None:
        self.drivers: dict[int, RaftDriver] = {}
        self.down: set[int] = set()

    async def send(self, destination: Node, request: Message) -> Message:
        await asyncio.sleep(0)
        driver = self.drivers.get(int(destination.host.removeprefix("host")))
        if driver is None or driver.config.node_id in self.down:
            raise OSError("unreachable")
        key = request.schema().key
        assert key is not None
        return await driver.handle(request, VERSIONS[key], LISTENER)


class SlowLog(MemoryLog):
    """A log whose flushes take time, in a thread, and are counted."""

    def __init__(self, flush_s: float = 0.0) -> None:
        super().__init__()
        self.flush_s = flush_s
        self.flushes = 0
        self.appends = 0
        self.threads: set[str] = set()

    def append(self, batches: bytes) -> None:
        self.appends += 1
        super().append(batches)

    def flush(self) -> None:
        self.flushes += 1
        self.threads.add(threading.current_thread().name)
        time.sleep(self.flush_s)
        super().flush()


class Follower:
    """A listener that notes everything."""

    def __init__(self) -> None:
        self.batches: list[CommittedBatch] = []
        self.events: list[tuple[Any, ...]] = []
        self.names: list[str] = []

    async def load_snapshot(self, snapshot: Snapshot) -> None:
        self.events.append(("snapshot", snapshot.snapshot_id, snapshot.last_contained_log_timestamp))
        self.names = [record.name for record in snapshot.records() if isinstance(record, TopicRecord)]

    def committed(self, batch: CommittedBatch) -> None:
        self.batches.append(batch)
        self.names += [record.name for record in batch.records if isinstance(record, TopicRecord)]

    async def follow(self) -> None:
        pass

    def leadership_gained(self, epoch: int, end_offset: int) -> None:
        self.events.append(("gained", epoch, end_offset))

    def leadership_lost(self, epoch: int) -> None:
        self.events.append(("lost", epoch))

    def leader_changed(self, leader_id: int | None, epoch: int) -> None:
        self.events.append(("leader", leader_id, epoch))


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def formatted(log: MemoryLog, voters: VoterSet) -> MemoryLog:
    writer = log.create_snapshot(BOOTSTRAP_SNAPSHOT_ID)
    writer.append(bootstrap_snapshot(1, voters, 0))
    writer.freeze()
    return log


def single(log: MemoryLog | None = None, store: MemoryQuorumState | None = None, **changes: Any) -> RaftDriver:
    if log is None:
        log = formatted(MemoryLog(), voter_set(1))
    store = MemoryQuorumState() if store is None else store
    return RaftDriver(config_of(1, **changes), log, store, Nowhere(), clock=now_ms, random=Random())


@asynccontextmanager
async def started(*drivers: RaftDriver) -> Any:
    try:
        for driver in drivers:
            await driver.start()
        yield
    finally:
        for driver in drivers:
            await driver.stop(timeout_ms=100)


async def until(condition: Callable[[], Any]) -> None:
    while not condition():
        await asyncio.sleep(0.005)


def test_a_single_voter_leads_appends_and_commits() -> None:
    async def test() -> None:
        driver, listener = single(), Follower()
        driver.subscribe(listener)
        async with started(driver):
            assert (driver.is_leader, driver.epoch, driver.leader_id) == (True, 1, 1)
            await until(lambda: ("gained", 1, 3) in listener.events)
            assert (driver.high_watermark, driver.end_offset) == (3, 3)
            before_ms = int(time.time() * 1000)
            offset = append(driver, 1, [topic("a"), topic("b")])
            assert (offset, driver.end_offset, driver.high_watermark) == (4, 5, 3)
            await driver.wait_committed(offset)
            assert driver.high_watermark == 5
            assert listener.names == ["a", "b"]
            assert [
                (each.base_offset, each.last_offset, each.epoch, len(each.records)) for each in listener.batches
            ] == [
                (0, 2, 1, 0),
                (3, 4, 1, 2),
            ]
            assert before_ms <= listener.batches[1].timestamp_ms <= time.time() * 1000
            await driver.wait_committed(0)

    run(test)


def test_a_restart_keeps_the_log_and_raises_the_epoch() -> None:
    async def test() -> None:
        log, store = formatted(MemoryLog(), voter_set(1)), MemoryQuorumState()
        for epoch in (1, 2, 3):
            driver, listener = single(log, store), Follower()
            driver.subscribe(listener)
            async with started(driver):
                assert (driver.is_leader, driver.epoch) == (True, epoch)
                await until(lambda: any(event[0] == "gained" for event in listener.events))  # noqa: B023
                assert listener.names == [f"of {each}" for each in range(1, epoch)]
                await driver.wait_committed(append(driver, epoch, [topic(f"of {epoch}")]))
            assert log.flushed_offset == log.end_offset

    run(test)


def test_many_proposals_share_a_write_and_a_flush() -> None:
    async def test() -> None:
        log = SlowLog(0.02)
        driver = single(formatted(log, voter_set(1)))
        async with started(driver):
            await driver.wait_committed(2)
            flushes, appends = log.flushes, log.appends

            async def write(number: int) -> None:
                await asyncio.sleep(number % 7 / 1000)
                await driver.wait_committed(append(driver, 1, [topic(str(number))]))

            await asyncio.gather(*(write(number) for number in range(300)))
            assert log.flushes - flushes < 60
            assert log.appends - appends == log.flushes - flushes
            assert all(name.startswith("raft-disk") for name in log.threads)
        names = [
            record for _, header in iterate_batches(log.read(3, 1 << 20)) for record in range(header.records_count)
        ]
        assert len(names) == 300

    run(test)


def test_the_loop_goes_on_while_the_disk_flushes() -> None:
    async def test() -> None:
        log = SlowLog()
        driver = single(formatted(log, voter_set(1)))
        async with started(driver):
            await driver.wait_committed(2)
            log.flush_s = 1.0
            offset = append(driver, 1, [topic("slow")])
            waiting = asyncio.create_task(driver.wait_committed(offset))
            await asyncio.sleep(0.05)
            answer = await asyncio.wait_for(fetch(driver, 3), 0.8)
            assert decode_header(records_of(answer)).base_offset == 3, "what is written can be read"
            assert answer.responses[0].partitions[0].high_watermark == 3
            assert not waiting.done()
            await waiting

    run(test)


async def fetch(driver: RaftDriver, offset: int, wait_ms: int = 0, replica_id: int = -1, epoch: int = 1) -> Any:
    end = OffsetAndEpoch(offset, 1 if offset else 0)
    key = key_of(replica_id) if replica_id >= 0 else ReplicaKey(-1)
    request: FetchRequest = messages.fetch_request(CLUSTER_ID, epoch, key, end, 1 << 62, wait_ms, 1 << 20)
    return await driver.handle(request, 17, LISTENER)


def records_of(answer: Any) -> bytes:
    data = answer.responses[0].partitions[0].records
    assert isinstance(data, bytes)
    return data


def test_anybody_may_fetch_the_log_and_wait_for_more() -> None:
    async def test() -> None:
        driver = single()
        async with started(driver):
            await driver.wait_committed(2)
            assert decode_records(records_of(await fetch(driver, 0)))[0].offset == 0
            in_vain = asyncio.create_task(fetch(driver, 3, wait_ms=100))
            await asyncio.sleep(0.02)
            assert not in_vain.done()
            assert records_of(await in_vain) == b""
            waiting = asyncio.create_task(fetch(driver, 3, wait_ms=10_000))
            await asyncio.sleep(0.02)
            assert not waiting.done()
            append(driver, 1, [topic("news")])
            assert decode_header(records_of(await waiting)).base_offset == 3
            refused = await fetch(driver, 0, epoch=9)
            assert refused.responses[0].partitions[0].error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(test)


def test_a_fetch_whose_client_left_is_dropped() -> None:
    async def test() -> None:
        driver = single()
        async with started(driver):
            await driver.wait_committed(2)
            waiting = asyncio.create_task(fetch(driver, 3, wait_ms=10_000))
            await until(lambda: driver.core.parked)
            waiting.cancel()
            await asyncio.gather(waiting, return_exceptions=True)
            assert driver.core.parked == {}

    run(test)


def test_the_quorum_is_described_and_other_requests_are_not_taken() -> None:
    async def test() -> None:
        driver = single()
        async with started(driver):
            await driver.wait_committed(2)
            await fetch(driver, 3, replica_id=7)
            partition = DescribeQuorumRequest.PartitionData(partition_index=0)
            asked = DescribeQuorumRequest.TopicData(topic_name=messages.TOPIC, partitions=[partition])
            answer: Any = await driver.handle(DescribeQuorumRequest(topics=[asked]), 2, LISTENER)
            state = answer.topics[0].partitions[0]
            assert (state.leader_id, state.high_watermark, state.observers[0].replica_id) == (1, 3, 7)
            assert answer.nodes[0].listeners[0].host == "host1"
            with pytest.raises(ValueError, match="MetadataRequest"):
                await driver.handle(MetadataRequest(), 1, LISTENER)

    run(test)


def test_only_the_leader_of_the_epoch_appends() -> None:
    async def test() -> None:
        driver = single(max_batch_bytes=1000)
        with pytest.raises(KafkaError):
            append(driver, 1, [topic("too early")])
        async with started(driver):
            with pytest.raises(NotLeaderError):
                append(driver, 2, [topic("a")])
            with pytest.raises(ProposalTooLargeError):
                append(driver, 1, [topic("a" * 2000)])
            append(driver, 1, [topic("a")])
        with pytest.raises(KafkaError) as raised:
            append(driver, 1, [topic("too late")])
        assert raised.value.code is ErrorCode.BROKER_NOT_AVAILABLE

    run(test)


def test_waiters_are_told_when_the_lead_is_lost() -> None:
    async def test() -> None:
        log = SlowLog()
        driver, listener = single(formatted(log, voter_set(1))), Follower()
        driver.subscribe(listener)
        async with started(driver):
            await until(lambda: ("gained", 1, 3) in listener.events)
            log.flush_s = 0.1
            offset = append(driver, 1, [topic("a")])
            waiting = asyncio.create_task(driver.wait_committed(offset))
            await asyncio.sleep(0.02)
            driver.resign(1)
            with pytest.raises(NotLeaderError):
                await waiting
            assert ("lost", 1) in listener.events
            with pytest.raises(NotLeaderError):
                await driver.wait_committed(offset + 10)
            await until(lambda: any(event[:2] == ("gained", 3) for event in listener.events))
            assert listener.names == ["a"], "it was on disk, so the next epoch commits it"

    run(test)


def test_a_late_listener_gets_everything_and_nothing_is_kept() -> None:
    async def test() -> None:
        driver, first = single(), Follower()
        driver.subscribe(first)
        async with started(driver):
            await until(lambda: ("gained", 1, 3) in first.events)
            last = 0
            for number in range(500):
                last = append(driver, 1, [topic(f"{number}.a"), topic(f"{number}.b")])
            await driver.wait_committed(last)
            late = Follower()
            driver.subscribe(late)
            await until(lambda: late.names == first.names)
            assert len(late.names) == 1000
            await until(lambda: ("gained", 1, last + 1) in late.events)
            assert driver._kept == {} and driver._kept_records == 0

    run(test)


def test_too_many_records_are_not_kept_but_read_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(driver_module, "MAX_KEPT_RECORDS", 10)

    async def test() -> None:
        log = SlowLog()
        driver, listener = single(formatted(log, voter_set(1))), Follower()
        driver.subscribe(listener)
        async with started(driver):
            await until(lambda: ("gained", 1, 3) in listener.events)
            log.flush_s = 0.02
            offsets = [append(driver, 1, [topic(str(number)), topic("-")]) for number in range(53)]
            await driver.wait_committed(offsets[-1])
            assert listener.names == [name for number in range(53) for name in (str(number), "-")]
            ends = [each.last_offset for each in listener.batches]
            assert ends == sorted(ends)

    run(test)


def create_snapshot(driver: RaftDriver, log: MemoryLog, snapshot_id: OffsetAndEpoch) -> None:
    version, voters = driver.voters_at(snapshot_id.offset)
    assert voters is not None
    builder = SnapshotBuilder(snapshot_id)
    writer = log.create_snapshot(snapshot_id)
    writer.append(builder.header(5, 77, version, VoterSet.from_record(voters)))
    writer.append(builder.records([wire.encode_record(*topic("from the snapshot"))], 5))
    writer.append(builder.footer(5))
    writer.freeze()
    driver.snapshot_created(snapshot_id)


def test_a_listener_begins_with_the_snapshot() -> None:
    async def test() -> None:
        log, store = formatted(MemoryLog(), voter_set(1)), MemoryQuorumState()
        driver = single(log, store)
        async with started(driver):
            await driver.wait_committed(append(driver, 1, [topic("old")]))
            snapshot_id = OffsetAndEpoch(4, 1)
            create_snapshot(driver, log, snapshot_id)
            driver.trim(snapshot_id)
            await driver.wait_committed(append(driver, 1, [topic("new")]))
            await until(lambda: log.start_offset == 4)
            answer = await fetch(driver, 0)
            assert answer.responses[0].partitions[0].snapshot_id.end_offset == 4
        again, listener = single(log, store), Follower()
        again.subscribe(listener)
        async with started(again):
            await until(lambda: any(event[0] == "gained" for event in listener.events))
            assert listener.events[0] == ("snapshot", snapshot_id, 77)
            assert listener.names == ["from the snapshot", "new"]
            assert again.core.voters.current == voter_set(1)

    run(test)


def test_a_fetch_in_the_turn_before_a_trim_reads_what_is_trimmed() -> None:
    async def test() -> None:
        log, store = formatted(MemoryLog(), voter_set(1)), MemoryQuorumState()
        driver = single(log, store)
        async with started(driver):
            await driver.wait_committed(append(driver, 1, [topic("old")]))
            snapshot_id = OffsetAndEpoch(4, 1)
            create_snapshot(driver, log, snapshot_id)
            answer = asyncio.create_task(fetch(driver, 3))
            await asyncio.sleep(0)
            driver.trim(snapshot_id)
            partition = (await answer).responses[0].partitions[0]
            assert partition.error_code == 0
            assert partition.records
            await until(lambda: log.start_offset == 4)

    run(test)


def test_a_listener_that_fails_ends_the_driver() -> None:
    class Broken(Follower):
        def committed(self, batch: CommittedBatch) -> None:
            if batch.records:
                raise RuntimeError("cannot replay this")

    async def test() -> None:
        driver, listener = single(), Broken()
        driver.subscribe(listener)
        async with started(driver):
            await until(lambda: ("gained", 1, 3) in listener.events)
            with pytest.raises(KafkaError) as raised:
                await driver.wait_committed(append(driver, 1, [topic("bad")]))
            assert raised.value.code is ErrorCode.UNKNOWN_SERVER_ERROR
            with pytest.raises(RuntimeError, match="cannot replay this"):
                await driver.wait_closed()
            assert not driver.is_leader
            with pytest.raises(KafkaError):
                append(driver, 1, [topic("more")])

    run(test)


def test_a_listener_that_takes_its_time_is_told_nothing_more_until_it_has_followed() -> None:
    class Slow(Follower):
        def __init__(self) -> None:
            super().__init__()
            self.may_go_on = asyncio.Event()

        async def follow(self) -> None:
            self.events.append(("follows", len(self.batches)))
            await self.may_go_on.wait()
            self.events.append(("has followed",))

    async def test() -> None:
        log, store = formatted(MemoryLog(), voter_set(1)), MemoryQuorumState()
        before = single(log, store)
        async with started(before):
            await before.wait_committed(append(before, 1, [topic("a")]))
        driver, listener = single(log, store), Slow()
        driver.subscribe(listener)
        async with started(driver):
            await until(lambda: listener.batches)
            for _ in range(100):
                await asyncio.sleep(0)
            names = [event[0] for event in listener.events]
            assert (names[-1], names.count("follows"), names.count("gained")) == ("follows", 1, 0)
            assert listener.events[-1] == ("follows", len(listener.batches))
            listener.may_go_on.set()
            await until(lambda: ("gained", 2, driver.high_watermark) in listener.events)
            assert listener.events[-2:] == [("has followed",), ("gained", 2, driver.high_watermark)]

    run(test)


def test_a_disk_that_fails_ends_the_driver() -> None:
    class BrokenLog(SlowLog):
        def flush(self) -> None:
            if self.end_offset > 3:
                raise OSError("no space left on device")
            super().flush()

    async def test() -> None:
        driver = single(formatted(BrokenLog(), voter_set(1)))
        async with started(driver):
            await driver.wait_committed(2)
            with pytest.raises(KafkaError, match="no space left"):
                await driver.wait_committed(append(driver, 1, [topic("a")]))
            with pytest.raises(OSError, match="no space left"):
                await driver.wait_closed()

    run(test)


def test_a_vote_that_cannot_be_saved_is_not_told() -> None:
    class BrokenStore(MemoryQuorumState):
        def save(self, state: QuorumState) -> None:
            if state.election.epoch > 1:
                raise OSError("read-only file system")
            super().save(state)

    async def test() -> None:
        log = formatted(MemoryLog(), voter_set(1, 2, 3))
        driver = RaftDriver(
            config_of(1, election_timeout_ms=60_000), log, BrokenStore(), Nowhere(), clock=now_ms, random=Random()
        )
        async with started(driver):
            vote = messages.vote_request(CLUSTER_ID, 5, key_of(2), key_of(1), OffsetAndEpoch(0, 0), pre_vote=False)
            with pytest.raises(KafkaError):
                await driver.handle(vote, 2, LISTENER)
            with pytest.raises(OSError, match="read-only"):
                await driver.wait_closed()

    run(test)


def quorum(network: Network, **changes: Any) -> Iterator[RaftDriver]:
    quick = {"election_timeout_ms": 200, "fetch_timeout_ms": 1000, "fetch_max_wait_ms": 50, **changes}
    servers = (("host1", 9093), ("host2", 9093), ("host3", 9093))
    for node_id in (1, 2, 3, 4):
        log = MemoryLog() if node_id == 4 else formatted(MemoryLog(), voter_set(1, 2, 3))
        config = config_of(node_id, bootstrap_servers=servers, **quick)
        network.drivers[node_id] = RaftDriver(config, log, MemoryQuorumState(), network, clock=now_ms, random=Random())
        yield network.drivers[node_id]


async def commit(drivers: list[RaftDriver], *names: str) -> RaftDriver:
    """Have these topics committed, by whoever leads; on a busy machine that may change. Who led then."""
    while True:
        await until(lambda: any(driver.is_leader for driver in drivers))
        leader = next(driver for driver in drivers if driver.is_leader)
        try:
            for name in names:
                offset = append(leader, leader.epoch, [topic(name), (NoOpRecord(), 0)])
            await leader.wait_committed(offset)
            return leader
        except NotLeaderError:
            continue


def test_three_voters_and_an_observer_in_one_process() -> None:
    async def test() -> None:
        network = Network()
        drivers = list(quorum(network))
        listeners = [Follower() for _ in drivers]
        for driver, listener in zip(drivers, listeners, strict=True):
            driver.subscribe(listener)
        async with started(*drivers):
            names = [str(number) for number in range(50)]
            leader = await commit(drivers[:3], *names)
            await until(lambda: all(listener.names[-50:] == names for listener in listeners))
            assert not drivers[3].is_leader
            epoch = leader.epoch
            network.down.add(leader.config.node_id)
            await leader.stop(timeout_ms=300)
            others = [driver for driver in drivers[:3] if driver is not leader]
            heir = await commit(others, "after")
            assert heir.epoch > epoch
            await until(lambda: listeners[3].names[-1] == "after")
            assert listeners[drivers.index(heir)].names == listeners[3].names

    run(test)


def test_a_leader_that_stops_hands_over() -> None:
    async def test() -> None:
        network = Network()
        drivers = list(quorum(network, fetch_timeout_ms=TIMEOUT_S * 1000))
        async with started(*drivers):
            leader = await commit(drivers, "a")
            await until(lambda: all(driver.leader_id == leader.config.node_id for driver in drivers))
            await leader.stop(timeout_ms=TIMEOUT_S * 1000)  # nobody would notice within that time by itself
            assert leader.leader_id not in (None, leader.config.node_id)

    run(test)


def test_the_clock_never_goes_back() -> None:
    walls = iter([1_000_000, 1_000_500, 900_000, 900_500, 5_000_000])
    monotonics = iter([0, 500, 1000, 1500, 2000])
    clock = Clock(lambda: next(walls), lambda: next(monotonics))
    assert [clock() for _ in range(4)] == [1_000_500, 1_001_000, 1_001_500, 5_000_000]
