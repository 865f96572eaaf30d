"""A log and its producers beside a list of batches, from which everything is counted anew each time."""

from __future__ import annotations

import shutil
import tempfile
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.batches import ControlType
from barnabas.storage import AppendInfo, Log, LogConfig
from barnabas.wire.errors import ErrorCode, KafkaError
from tests.storage.made import NOW_MS, open_log, produced, whole_log

CONFIG = LogConfig(segment_bytes=600, index_interval_bytes=150, transaction_partition_verification_enable=False)
PRODUCERS = st.integers(1, 4)


class Sent(NamedTuple):
    """A batch of the list; `ends` says how it ends a transaction, if it does."""

    offset: int
    records: int
    producer_id: int
    epoch: int
    sequence: int
    transactional: bool
    ends: ControlType | None
    coordinator_epoch: int

    @property
    def last_offset(self) -> int:
        return self.offset + self.records - 1


class Transaction(NamedTuple):
    """From a first batch to a marker, or without one."""

    producer_id: int
    first_offset: int
    last_offset: int | None
    is_aborted: bool


def transactions_of(batches: list[Sent]) -> list[Transaction]:
    """Every transaction, those that ended in the order of their ends, and then those that did not."""
    ended: list[Transaction] = []
    begun: dict[int, int] = {}
    for sent in batches:
        if sent.ends is not None:
            if sent.producer_id in begun:
                first = begun.pop(sent.producer_id)
                ended.append(Transaction(sent.producer_id, first, sent.offset, sent.ends is ControlType.ABORT))
        elif sent.transactional:
            begun.setdefault(sent.producer_id, sent.offset)
    return ended + [Transaction(producer_id, first, None, False) for producer_id, first in begun.items()]


class LogAndProducers(RuleBasedStateMachine):
    """The list has every batch that was taken; what the log knows of producers has to follow from it."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.log = open_log(self.directory / "log", CONFIG)
        self.batches: list[Sent] = []
        # How many of its last batches the log has to remember of a producer: of those in a snapshot, one.
        self.remembered = 5

    def teardown(self) -> None:
        self.log.abandon()
        shutil.rmtree(self.directory)

    # What the list says

    def of(self, producer_id: int) -> list[Sent]:
        return [sent for sent in self.batches if sent.producer_id == producer_id]

    def epoch(self, producer_id: int) -> int:
        return self.of(producer_id)[-1].epoch if self.of(producer_id) else -1

    def in_epoch(self, producer_id: int) -> list[Sent]:
        """The batches with records that the producer has sent since its epoch changed."""
        epoch = self.epoch(producer_id)
        return [sent for sent in self.of(producer_id) if sent.epoch == epoch and sent.ends is None]

    def next_sequence(self, producer_id: int) -> int:
        sent = self.in_epoch(producer_id)
        return sent[-1].sequence + sent[-1].records if sent else 0

    def is_in_transaction(self, producer_id: int) -> bool:
        return any(
            found.producer_id == producer_id and found.last_offset is None for found in transactions_of(self.batches)
        )

    def send(self, producer_id: int, epoch: int, sequence: int, count: int, transactional: bool) -> AppendInfo:
        data = produced(producer_id, sequence, *[b"x" * 20] * count, epoch=epoch, transactional=transactional)
        return self.log.append_as_leader(data, 0)

    def took(self, info: AppendInfo, *rest: Any) -> None:
        assert not info.is_duplicate
        assert info.base_offset == (self.batches[-1].last_offset + 1 if self.batches else 0)
        self.batches.append(Sent(info.base_offset, info.last_offset - info.base_offset + 1, *rest))

    # What producers and coordinators do

    @rule(producer_id=PRODUCERS, count=st.integers(1, 3), transactional=st.booleans(), bump=st.integers(0, 5))
    def send_the_next(self, producer_id: int, count: int, transactional: bool, bump: int) -> None:
        transactional = transactional or self.is_in_transaction(producer_id)
        bumped = bump == 0 or not self.of(producer_id)
        epoch = self.epoch(producer_id) + bumped
        sequence = 0 if bumped else self.next_sequence(producer_id)
        info = self.send(producer_id, epoch, sequence, count, transactional)
        self.took(info, producer_id, epoch, sequence, transactional, None, -1)

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def send_again(self, data: Any) -> None:
        sent = data.draw(st.sampled_from(self.batches))
        if sent.ends is not None:
            return
        before = self.log.log_end_offset
        known = self.in_epoch(sent.producer_id)
        age = len(known) - known.index(sent) if sent in known else 0
        try:
            info = self.send(sent.producer_id, sent.epoch, sent.sequence, sent.records, sent.transactional)
            assert 1 <= age <= 5
            assert info.is_duplicate
            assert (info.base_offset, info.last_offset) == (sent.offset, sent.last_offset)
        except KafkaError as error:
            is_old = sent.epoch < self.epoch(sent.producer_id)
            if is_old:
                assert error.code is ErrorCode.INVALID_PRODUCER_EPOCH
            else:
                assert age > self.remembered
                assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        assert self.log.log_end_offset == before

    @rule(producer_id=PRODUCERS, ahead=st.integers(1, 3))
    def leave_a_gap(self, producer_id: int, ahead: int) -> None:
        if self.of(producer_id):
            try:
                sequence = self.next_sequence(producer_id) + ahead
                self.send(producer_id, self.epoch(producer_id), sequence, 1, self.is_in_transaction(producer_id))
                raise AssertionError("there is a gap")
            except KafkaError as error:
                assert error.code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER

    @rule(producer_id=PRODUCERS, commit=st.booleans(), bump=st.booleans(), coordinator_epoch=st.integers(0, 3))
    def end(self, producer_id: int, commit: bool, bump: bool, coordinator_epoch: int) -> None:
        """With a bump as in transaction version 2, without one as before."""
        epoch = max(0, self.epoch(producer_id)) + bump
        markers = [sent for sent in self.of(producer_id) if sent.ends is not None]
        try:
            info = self.log.append_marker(
                producer_id=producer_id,
                producer_epoch=epoch,
                commit=commit,
                coordinator_epoch=coordinator_epoch,
                leader_epoch=0,
                now_ms=NOW_MS,
                transaction_version=2 if bump else 1,
            )
        except KafkaError as error:
            assert error.code is ErrorCode.TRANSACTION_COORDINATOR_FENCED
            assert coordinator_epoch < markers[-1].coordinator_epoch
            return
        assert not markers or coordinator_epoch >= markers[-1].coordinator_epoch
        ends = ControlType.COMMIT if commit else ControlType.ABORT
        self.took(info, producer_id, epoch, -1, True, ends, coordinator_epoch)

    # What happens to the log

    @rule()
    def roll(self) -> None:
        self.log.roll()

    @rule()
    def flush(self) -> None:
        self.log.flush()

    @precondition(lambda self: self.batches)
    @rule(data=st.data())
    def truncate(self, data: Any) -> None:
        kept = data.draw(st.integers(0, len(self.batches)))
        self.log.truncate_to(self.batches[kept].offset if kept < len(self.batches) else self.log.log_end_offset)
        if kept < len(self.batches):
            self.remembered = 1
        self.batches = self.batches[:kept]

    @rule(clean=st.booleans())
    def reopen(self, clean: bool) -> None:
        if clean:
            self.log.close()
        else:
            self.log.abandon()
        self.log = open_log(
            self.directory / "log", CONFIG, clean_shutdown=clean, recovery_point=self.log.recovery_point
        )
        self.remembered = 1

    @rule(size=st.integers(0, 60))
    def tear_the_newest_snapshot(self, size: int) -> None:
        """It is read when the log is opened, or truncated."""
        newest = max(self.log.directory.glob("*.snapshot"), default=None)
        if newest is not None:
            newest.write_bytes(newest.read_bytes()[:size])

    # What has to be true

    @invariant()
    def producers_are_known(self) -> None:
        states = {state.producer_id: state for state in self.log.active_producers()}
        assert set(states) == {sent.producer_id for sent in self.batches}
        for producer_id, state in states.items():
            sent, markers = self.in_epoch(producer_id), [sent for sent in self.of(producer_id) if sent.ends is not None]
            assert state.producer_epoch == self.epoch(producer_id)
            assert state.coordinator_epoch == (markers[-1].coordinator_epoch if markers else -1)
            known = [(found.first_sequence, found.first_offset, found.last_offset) for found in state.batches]
            listed = [(one.sequence, one.offset, one.last_offset) for one in sent][-5:]
            assert min(len(listed), self.remembered) <= len(known) <= len(listed)
            assert known == listed[len(listed) - len(known) :]

    @invariant()
    def transactions_are_known(self) -> None:
        found = transactions_of(self.batches)
        ongoing = {one.producer_id: one.first_offset for one in found if one.last_offset is None}
        states = self.log.active_producers()
        firsts = {state.producer_id: state.current_txn_first_offset for state in states}
        assert {producer_id: first for producer_id, first in firsts.items() if first >= 0} == ongoing
        aborted = [(one.producer_id, one.first_offset, one.last_offset) for one in found if one.is_aborted]
        indexed = [one for segment in self.log.segments for one in segment.txn_index.transactions()]
        assert [one[:3] for one in indexed] == aborted
        assert not [fault for segment in self.log.segments if (fault := segment.index_fault())]

    @rule(data=st.data())
    def ask_what_is_stable(self, data: Any) -> None:
        high_watermark = data.draw(st.integers(0, self.log.log_end_offset))
        unstable = [
            one.first_offset
            for one in transactions_of(self.batches)
            if one.last_offset is None or one.last_offset >= high_watermark
        ]
        expected = min([high_watermark, *unstable])
        # A lower high watermark than before is not seen: what was replicated is.
        assert expected <= self.log.last_stable_offset(high_watermark) <= high_watermark
        end = self.log.log_end_offset
        ongoing = [one.first_offset for one in transactions_of(self.batches) if one.last_offset is None]
        assert self.log.last_stable_offset(end) == min([end, *ongoing])

    @rule(data=st.data())
    def ask_what_was_aborted(self, data: Any) -> None:
        end = self.log.log_end_offset
        first = data.draw(st.integers(0, end))
        bound = data.draw(st.integers(first, end + 1))
        assert [one[:3] for one in self.log.aborted_transactions(first, bound)] == [
            (one.producer_id, one.first_offset, one.last_offset)
            for one in transactions_of(self.batches)
            if one.is_aborted and one.last_offset is not None and one.last_offset >= first and one.first_offset < bound
        ]

    @rule(data=st.data())
    def a_follower_knows_the_same(self, data: Any) -> None:
        """However the batches are cut into answers."""
        stored = whole_log(self.log)
        directory = self.directory / "follower"
        follower = open_log(directory, CONFIG)
        while stored:
            count = data.draw(st.integers(1, len(stored)))
            follower.append_as_follower(b"".join(stored[:count]))
            stored = stored[count:]
        assert last_batches(follower) == last_batches(self.log)
        indexed = [one for segment in follower.segments for one in segment.txn_index.transactions()]
        assert indexed == [one for segment in self.log.segments for one in segment.txn_index.transactions()]
        follower.abandon()
        shutil.rmtree(directory)


def last_batches(log: Log) -> set[Any]:
    return {state._replace(batches=state.batches[-1:]) for state in log.active_producers()}


TestLogAndProducers = LogAndProducers.TestCase
TestLogAndProducers.settings = settings(max_examples=50, stateful_step_count=30, deadline=None)
