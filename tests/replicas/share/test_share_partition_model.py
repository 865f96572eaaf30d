"""Random histories of a share partition beside the model: no record is lost, and none is delivered too often."""

from __future__ import annotations

from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.replicas.share.in_flight import AcknowledgeType, RecordState, StateBatch
from barnabas.replicas.share.share_partition import Acknowledged, Asked, Limits, LogBatch, SharePartition
from barnabas.steps import at_once
from tests.replicas.share.model import Model

MEMBERS = ("a", "b")
LOCK_MS = 1000
STATES = {
    AcknowledgeType.ACCEPT: RecordState.ACKNOWLEDGED,
    AcknowledgeType.RELEASE: RecordState.AVAILABLE,
    AcknowledgeType.REJECT: RecordState.ARCHIVED,
}


def size(batches: list[StateBatch]) -> int:
    return sum(each.last_offset - each.first_offset + 1 for each in batches)


class History:
    """A log, a share partition and its model."""

    def __init__(self, sizes: list[int], limit: int, in_flight: int) -> None:
        self.log: list[LogBatch] = []
        for size in sizes:
            base = self.log[-1].last_offset + 1 if self.log else 0
            self.log.append(LogBatch(base, base + size - 1))
        self.end = self.log[-1].last_offset + 1
        self.limits = Limits(limit, in_flight, LOCK_MS)
        self.model = Model(limit)
        self.partition = SharePartition(0)
        self.stored_start = 0
        self.now_ms = 0

    def fetch(self, member_id: str, max_records: int, batch_size: int, is_record_limit: bool) -> int:
        partition = self.partition
        if not partition.can_acquire(self.limits):
            return 0
        offset = partition.next_fetch_offset()
        batches = [batch for batch in self.log if batch.last_offset >= offset]
        asked = Asked(member_id, offset, max_records, batch_size, is_record_limit)
        acquired = partition.acquire(asked, batches, self.limits, self.now_ms)
        for each in acquired:
            self.model.acquired(member_id, range(each.first_offset, each.last_offset + 1), each.delivery_count)
        count = sum(each.size for each in acquired)
        assert not is_record_limit or count <= max_records
        return count

    def acknowledge(self, member_id: str, kinds: list[AcknowledgeType], first: int, is_stored: bool) -> None:
        held = [offset for offset in sorted(self.model.held_by(member_id)) if offset >= self.partition.start_offset]
        chosen = held[first % len(held) :][: len(kinds)] if held else []
        said = [Acknowledged(offset, offset, [kind]) for offset, kind in zip(chosen, kinds, strict=False)]
        write = at_once(self.partition.acknowledge(member_id, said, self.limits, self.now_ms))
        if write is None:
            assert not chosen
        elif is_stored:
            self.stored(write.batches)
            at_once(self.partition.commit(write))
            before = self.model.given_up
            for offset, kind in zip(chosen, kinds, strict=False):
                self.model.ended([offset], STATES[kind])
            assert size(write.given_up) == self.model.given_up - before
        else:
            at_once(self.partition.roll_back(write))

    def release(self, member_id: str) -> None:
        write = self.partition.release(member_id, self.limits)
        held = self.model.held_by(member_id)
        assert (write is None) == (not held)
        if write is not None:
            self.stored(write.batches)
            at_once(self.partition.commit(write))
            before = self.model.given_up
            self.model.ended(held, RecordState.AVAILABLE)
            assert size(write.given_up) == self.model.given_up - before

    def expire(self) -> None:
        self.now_ms += LOCK_MS
        released = self.partition.expire(self.limits, self.now_ms)
        if released:
            self.stored(released)
        for member_id in MEMBERS:
            self.model.ended(self.model.held_by(member_id), RecordState.AVAILABLE)
        assert self.partition.next_deadline_ms is None
        self.partition.advance()

    def stored(self, batches: list[StateBatch]) -> None:
        self.stored_start = self.partition.start_offset
        self.model.store(batches)

    def restart(self) -> None:
        stored = [batch for batch in self.model.restart() if batch.first_offset >= self.stored_start]
        self.partition = SharePartition(self.stored_start, 0, stored)

    def finish(self) -> None:
        """Accept whatever can still be delivered, and check that everything was."""
        for _ in range(10 * self.end * self.limits.max_delivery_count):
            self.expire()
            if self.fetch("a", 1000, 1000, False):
                held = sorted(self.model.held_by("a"))
                said = [Acknowledged(offset, offset, [AcknowledgeType.ACCEPT]) for offset in held]
                write = at_once(self.partition.acknowledge("a", said, self.limits, self.now_ms))
                assert write is not None
                at_once(self.partition.commit(write))
                self.model.ended(held, RecordState.ACKNOWLEDGED)
            elif self.partition.start_offset == self.end:
                break
        assert self.partition.start_offset == self.end
        assert self.partition.delivery_complete_count == 0
        assert all(self.model.records[offset].state.is_terminal for offset in range(self.end))


MEMBER = st.sampled_from(MEMBERS)
KIND = st.sampled_from(list(STATES))
STEP = st.one_of(
    st.tuples(st.just("fetch"), MEMBER, st.integers(1, 12), st.integers(1, 8), st.booleans()),
    st.tuples(
        st.just("acknowledge"), MEMBER, st.lists(KIND, min_size=1, max_size=5), st.integers(0, 20), st.booleans()
    ),
    st.tuples(st.just("release"), MEMBER),
    st.tuples(st.just("expire")),
    st.tuples(st.just("restart")),
)


@settings(max_examples=300)
@given(
    st.lists(st.integers(1, 6), min_size=1, max_size=8),
    st.integers(2, 6),
    st.integers(1, 20),
    st.lists(STEP, min_size=20, max_size=60),
)
def test_no_record_is_lost_or_delivered_too_often(
    sizes: list[int],
    limit: int,
    in_flight: int,
    steps: list[tuple[Any, ...]],
) -> None:
    history = History(sizes, limit, in_flight)
    for name, *arguments in steps:
        getattr(history, name)(*arguments)
        history.model.check(history.partition.start_offset, history.partition.spans)
    history.finish()
