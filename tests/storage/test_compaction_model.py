"""A compacted log beside a list of everything that was written to it, through appends, transactions, cleanings and kills."""

from __future__ import annotations

import shutil
import tempfile
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from barnabas.batches import Compression, TimestampType
from barnabas.storage import compaction
from barnabas.storage.compaction import Compaction
from barnabas.storage.offline import check_indexes
from tests.storage.compacting import (
    CONFIG,
    append,
    end_transaction,
    last_values,
    open_compacted,
    seen,
    seen_committed,
)
from tests.storage.made import Clock

SMALL = replace(CONFIG, segment_bytes=600)
PRODUCERS = (1, 2)
TRANSACTIONAL = (11, 12)
LASTING = 13  # its transactions stay open for a while, and what is open holds compaction back

records = st.lists(
    st.tuples(st.sampled_from([b"a", b"b", b"c", b"long" * 10]), st.one_of(st.none(), st.binary(max_size=30))),
    min_size=1,
    max_size=4,
)
formats = st.fixed_dictionaries(
    {
        "compression": st.sampled_from(Compression),
        "timestamp_type": st.sampled_from(TimestampType),
        "timestamp": st.integers(0, 5000),
    }
)


class Wrote(NamedTuple):
    """A record, and the transaction it is in."""

    key: bytes
    value: bytes | None
    transaction: tuple[int, int] | None = None


class LogAndHistory(RuleBasedStateMachine):
    """The history has every record that was ever written; compaction may take away what nobody needs."""

    def __init__(self) -> None:
        super().__init__()
        self.directory = Path(tempfile.mkdtemp())
        self.clock = Clock(1_000_000)
        self.log = open_compacted(self.directory / "log", self.clock, SMALL)
        self.checkpoint: int | None = None
        self.history: dict[int, Wrote] = {}
        self.sequences: dict[int, int] = {}
        self.transactions: dict[int, int] = {}
        self.open: set[int] = set()
        self.aborted: set[tuple[int, int]] = set()
        self.end = 0
        self.slice_records = compaction._SLICE_RECORDS
        compaction._SLICE_RECORDS = 3

    def teardown(self) -> None:
        compaction._SLICE_RECORDS = self.slice_records
        self.log.abandon()
        shutil.rmtree(self.directory)

    # What is written

    def write(self, wrote: list[Wrote], form: dict[str, Any], producer_id: int = -1) -> None:
        producer = (-1, -1, -1)
        if producer_id >= 0:
            producer = (producer_id, 0, self.sequences.get(producer_id, 0))
            self.sequences[producer_id] = producer[2] + len(wrote)
        pairs = [(record.key, record.value) for record in wrote]
        is_transactional = wrote[0].transaction is not None
        first = append(self.log, *pairs, producer=producer, is_transactional=is_transactional, **form)
        assert first == self.end
        self.end += len(wrote)
        self.history |= dict(enumerate(wrote, first))

    @rule(pairs=records, form=formats, producer_id=st.sampled_from((-1, *PRODUCERS)))
    def append(self, pairs: list[tuple[bytes, bytes | None]], form: dict[str, Any], producer_id: int) -> None:
        self.write([Wrote(key, value) for key, value in pairs], form, producer_id)

    @rule(
        batches=st.lists(records, min_size=1, max_size=3),
        form=formats,
        producer_id=st.sampled_from(TRANSACTIONAL),
        commit=st.booleans(),
        roll=st.booleans(),
    )
    def run_transaction(
        self,
        batches: list[list[tuple[bytes, bytes | None]]],
        form: dict[str, Any],
        producer_id: int,
        commit: bool,
        roll: bool,
    ) -> None:
        for pairs in batches:
            self.append_in_transaction(pairs, form, producer_id)
            if roll:
                self.log.roll()
        self.end_transaction(producer_id, commit)

    @rule(pairs=records, form=formats)
    def go_on_with_transaction(self, pairs: list[tuple[bytes, bytes | None]], form: dict[str, Any]) -> None:
        self.append_in_transaction(pairs, form, LASTING)

    @precondition(lambda self: self.open)
    @rule(commit=st.booleans())
    def end_lasting_transaction(self, commit: bool) -> None:
        self.end_transaction(LASTING, commit)

    def append_in_transaction(
        self, pairs: list[tuple[bytes, bytes | None]], form: dict[str, Any], producer_id: int
    ) -> None:
        self.open.add(producer_id)
        transaction = (producer_id, self.transactions.setdefault(producer_id, 0))
        self.write([Wrote(key, value, transaction) for key, value in pairs], form, producer_id)

    def end_transaction(self, producer_id: int, commit: bool) -> None:
        self.open.discard(producer_id)
        if not commit:
            self.aborted.add((producer_id, self.transactions[producer_id]))
        self.transactions[producer_id] += 1
        end_transaction(self.log, self.clock, producer_id, commit=commit)
        self.end += 1

    # What happens to it

    @rule()
    def clean(self) -> None:
        self.clean_partly(entries=1000, steps=None)

    @rule(entries=st.sampled_from((2, 4, 1000)), steps=st.one_of(st.none(), st.integers(0, 60)))
    def clean_partly(self, entries: int, steps: int | None) -> None:
        self.log.roll()
        self.clock.now_ms += 600  # what gets its delete horizon now, goes the time after the next
        dirty = self.log.find_dirty(self.checkpoint, self.end, self.clock())
        if not dirty.is_due:
            return
        cleaning = Compaction(self.log, dirty, now_ms=self.clock(), dedupe_buffer_size=160 * entries, load_factor=1.0)
        work = cleaning.steps()
        for step in islice(work, steps):
            if step is not None:
                step()
        work.close()  # if it was not at its end, it is given up
        assert cleaning.is_done or steps is not None
        if cleaning.is_done:
            assert self.checkpoint is None or cleaning.end_offset > self.checkpoint
            self.checkpoint = cleaning.end_offset

    @rule(clean_shutdown=st.booleans(), forget_snapshots=st.booleans())
    def reopen(self, clean_shutdown: bool, forget_snapshots: bool) -> None:
        if clean_shutdown:
            self.log.close()
        else:
            self.log.abandon()
        if forget_snapshots:
            for path in self.log.directory.glob("*.snapshot"):
                path.unlink()
        self.log = open_compacted(
            self.directory / "log",
            self.clock,
            SMALL,
            clean_shutdown=clean_shutdown,
            recovery_point=self.log.recovery_point,
        )

    # What has to hold

    @invariant()
    def readers_see_the_last_value_of_each_key(self) -> None:
        assert self.log.log_end_offset == self.end
        stable = self.log.last_stable_offset(self.end)
        assert (stable < self.end) == bool(self.open)
        kept = {offset: (wrote.key, wrote.value) for offset, wrote in self.history.items() if self.is_kept(wrote)}
        committed = seen_committed(self.log, 150)
        assert committed.items() <= kept.items()
        expected = {offset: record for offset, record in kept.items() if offset < stable}
        assert last_values(committed) == last_values(expected)
        written = {offset: (wrote.key, wrote.value) for offset, wrote in self.history.items()}
        uncommitted = seen(self.log)
        assert uncommitted.items() <= written.items()
        # Of what is open or committed, the last of each key is there, unless it is a tombstone.
        needed = {record[0]: (offset, record) for offset, record in sorted(kept.items())}
        for offset, record in needed.values():
            assert record[1] is None or uncommitted[offset] == record

    @invariant()
    def producers_are_known_by_their_last_sequences(self) -> None:
        for producer_id, sequence in self.sequences.items():
            state = self.log.producers.get(producer_id)
            assert state is not None
            assert state.last_sequence == sequence - 1
            assert (state.current_txn_first_offset >= 0) == (producer_id in self.open)

    @invariant()
    def files_are_in_order(self) -> None:
        for segment in self.log.segments:
            assert segment.index_fault() is None
            assert not list(check_indexes(self.log.directory, segment.base_offset))

    def is_kept(self, wrote: Wrote) -> bool:
        return wrote.transaction not in self.aborted


TestLogAndHistory = LogAndHistory.TestCase
TestLogAndHistory.settings = settings(max_examples=40, stateful_step_count=40, deadline=None)
