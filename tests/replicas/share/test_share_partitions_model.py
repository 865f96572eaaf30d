"""Random histories of a share group on a real broker beside the model: sessions, time, failed writes, changes of the leader."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from barnabas.replicas.share.fetching import ShareFetch
from barnabas.replicas.share.in_flight import AcknowledgeType, RecordState, StateBatch
from barnabas.replicas.share.led import LedSharePartition, ShareKey
from barnabas.replicas.share.sessions import MemberKey, PartitionKey
from barnabas.replicas.share.share_partition import Acknowledged
from barnabas.share_state.persister import Persister
from barnabas.slices import in_slices
from barnabas.testing import AsyncBroker
from barnabas.wire import ErrorCode, KafkaError
from barnabas.wire.messages.write_share_group_state import WriteShareGroupStateRequest, WriteShareGroupStateResponse
from tests.broker.sharing import create_topic, initialize, produce, until
from tests.replicas.share.model import Model

MEMBERS = ("a", "b", "c")
LOCK_MS = 30_000
SETTINGS = {
    "share.coordinator.state.topic.num.partitions": "1",
    "group.share.delivery.count.limit": "3",
    "offsets.topic.num.partitions": "1",
}
STATES = {
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


class Running:
    """A broker for all histories, in an event loop that runs while one of them does."""

    def __init__(self) -> None:
        self.runner = asyncio.Runner()
        self.broker = AsyncBroker(config=SETTINGS)
        self.count = 0
        self.runner.run(self._start())

    async def _start(self) -> None:
        await self.broker.start()

    @property
    def address(self) -> tuple[str, int]:
        return self.broker.host, self.broker.port

    def close(self) -> None:
        self.runner.run(self.broker.close())
        self.runner.close()


@pytest.fixture(scope="module")
def running() -> Iterator[Running]:
    found = Running()
    yield found
    found.close()


class History:
    """One group on one partition, and its model."""

    def __init__(self, running: Running) -> None:
        running.count += 1
        self.broker = running.broker
        self.address = running.address
        self.group = f"group-{running.count}"
        self.topic = f"topic-{running.count}"
        self.model = Model(3)
        self.fails = False
        self.end = 0

    async def begin(self) -> None:
        self.shares = self.broker._running().share_partitions
        self.persister: Persister = self.shares._shell.persister
        self.topic_id = await create_topic(self.address, self.topic)
        await initialize(self.address, self.topic_id, group=self.group)
        self.key = PartitionKey(self.topic_id, 0)
        await self.produce(4, 2)

    async def write(self, request: WriteShareGroupStateRequest) -> WriteShareGroupStateResponse:
        """Store what the broker writes, in the model too, unless it fails."""
        if self.fails:
            kind = WriteShareGroupStateResponse
            row = kind.PartitionResult(partition=0, error_code=ErrorCode.COORDINATOR_NOT_AVAILABLE)
            return kind(results=[kind.WriteStateResult(topic_id=self.topic_id, partitions=[row])])
        response = await type(self.persister).write(self.persister, request)
        asked = request.topics[0].partitions[0]
        if not response.results[0].partitions[0].error_code:
            self.stored_start = asked.start_offset
            self.model.store(
                StateBatch(each.first_offset, each.last_offset, RecordState(each.delivery_state), each.delivery_count)
                for each in asked.state_batches
            )
        return response

    @property
    def led(self) -> LedSharePartition | None:
        return self.shares.get(ShareKey(self.group, *self.key))

    def restarted(self) -> None:
        """The state is that which was stored."""
        start = getattr(self, "stored_start", 0)
        self.model.restart()
        for offset in [offset for offset in self.model.records if offset < start]:
            self.model.records[offset].state = RecordState.ACKNOWLEDGED  # done, whatever was stored of it before

    # --- steps

    async def produce(self, count: int, batches: int) -> None:
        await produce(self.address, self.topic_id, count, batches=batches)
        self.end += count * batches

    async def fetch(self, member_id: str, max_records: int, batch_size: int, is_record_limit: bool) -> int:
        member = MemberKey(self.group, member_id)
        if member not in self.shares.sessions:
            await in_slices(self.shares.sessions.begin(member, [self.key], member))
        asked = ShareFetch(member_id, 0, 1, 1 << 20, max_records, batch_size, is_record_limit, False, lambda: False)
        answers = await self.shares.fetch(self.group, asked, [(self.key, self.topic)])
        led = self.led
        assert led is not None
        if led.state is None:
            await until(lambda: led.state is not None or led.failure is not None)
            assert led.failure is None
            answers = await self.shares.fetch(self.group, asked, [(self.key, self.topic)])
        answer = answers.get(self.key)
        if answer is None:
            return 0
        assert answer.error is None
        for each in answer.acquired:
            self.model.acquired(member_id, range(each.first_offset, each.last_offset + 1), each.delivery_count)
        count = sum(each.size for each in answer.acquired)
        assert not is_record_limit or count <= max_records
        return count

    async def acknowledge(self, number: int, kinds: list[AcknowledgeType], first: int, is_stored: bool = True) -> None:
        """Let one of the members that hold records acknowledge some of them."""
        holders = [each for each in MEMBERS if self.model.held_by(each)] or ["a"]
        member_id = holders[number % len(holders)]
        self.fails = not is_stored
        held = sorted(self.model.held_by(member_id))
        chosen = held[first % len(held) :][: len(kinds)] if held else []
        said = [Acknowledged(offset, offset, [kind]) for offset, kind in zip(chosen, kinds, strict=False)]
        errors = await self.shares.acknowledge(MemberKey(self.group, member_id), [(self.key, said)])
        error: KafkaError | None = errors[self.key]
        if not chosen:
            return
        if self.fails:
            assert error is not None and error.code is ErrorCode.COORDINATOR_NOT_AVAILABLE
            return
        assert error is None
        for offset, kind in zip(chosen, kinds, strict=False):
            self.model.ended([offset], STATES[kind])

    async def steal(self, member_id: str) -> None:
        """Acknowledge what another member holds."""
        others = [offset for other in MEMBERS if other != member_id for offset in self.model.held_by(other)]
        if others:
            said = [Acknowledged(others[0], others[0], [AcknowledgeType.ACCEPT])]
            errors = await self.shares.acknowledge(MemberKey(self.group, member_id), [(self.key, said)])
            error = errors[self.key]
            assert error is not None and error.code is ErrorCode.INVALID_RECORD_STATE

    async def close(self, member_id: str, is_stored: bool = True) -> None:
        self.fails = not is_stored
        member = MemberKey(self.group, member_id)
        if member not in self.shares.sessions:
            return
        self.shares.disconnected(member)
        await until(lambda: not self.shares._tasks)
        if not self.fails:
            self.model.ended(self.model.held_by(member_id), RecordState.AVAILABLE)
        if self.led is None:  # nobody is left
            self.restarted()

    async def expire(self, is_stored: bool = True) -> None:
        self.fails = not is_stored
        self.broker.faults.advance_time(LOCK_MS + 1)
        led = self.led
        if led is not None and led.state is not None:
            await until(lambda: all(span.state is not RecordState.ACQUIRED for span in led.state.spans))  # type: ignore[union-attr]
            await until(lambda: not led.is_busy)
        for member_id in MEMBERS:
            self.model.ended(self.model.held_by(member_id), RecordState.AVAILABLE)

    async def lose(self) -> None:
        """Another broker leads the partition, and then this one does again."""
        led = self.led
        if led is not None:
            replica = led.replica
            self.shares.led(replica, False)
            assert self.led is None
            self.restarted()

    def check(self) -> None:
        led = self.led
        if led is not None and led.state is not None:
            self.model.check(led.state.start_offset, led.state.spans)

    async def finish(self) -> None:
        """Accept whatever can still be delivered, and check that nothing is left."""
        for _ in range(10 * self.end):
            await self.expire()
            if await self.fetch("a", 1000, 1000, False):
                held = sorted(self.model.held_by("a"))
                await self.acknowledge(0, [AcknowledgeType.ACCEPT] * len(held), 0)
            led = self.led
            assert led is not None and led.state is not None
            if led.state.start_offset == self.end:
                break
        self.check()
        assert set(self.model.records) == set(range(self.end))
        assert all(record.state.is_terminal for record in self.model.records.values())
        await self.close("a")
        for member_id in MEMBERS:
            await self.close(member_id)

    async def run(self, steps: list[tuple[Any, ...]]) -> None:
        await self.begin()
        self.persister.write = self.write  # type: ignore[method-assign]
        try:
            for name, *arguments in steps:
                await getattr(self, name)(*arguments)
                self.check()
            await self.finish()
        finally:
            del self.persister.write


MEMBER = st.sampled_from(MEMBERS)
KIND = st.sampled_from(list(STATES))
IS_STORED = st.sampled_from((True, True, False))
ACKNOWLEDGE = st.tuples(
    st.just("acknowledge"), st.integers(0, 2), st.lists(KIND, min_size=1, max_size=5), st.integers(0, 20), IS_STORED
)
STEP = st.one_of(
    st.tuples(st.just("fetch"), MEMBER, st.integers(1, 12), st.integers(1, 8), st.booleans()),
    ACKNOWLEDGE,
    ACKNOWLEDGE,
    st.tuples(st.just("steal"), MEMBER),
    st.tuples(st.just("close"), MEMBER, IS_STORED),
    st.tuples(st.just("expire"), IS_STORED),
    st.tuples(st.just("lose")),
    st.tuples(st.just("produce"), st.integers(1, 4), st.integers(1, 3)),
)


@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(STEP, min_size=20, max_size=40))
def test_no_record_is_lost_whatever_happens_to_members_writes_and_leaders(
    running: Running, steps: list[tuple[Any, ...]]
) -> None:
    running.runner.run(History(running).run(steps))
