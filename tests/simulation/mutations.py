"""Planted bugs: each changes the product in the process of one run, to show that the simulation finds it.

A bug is an entry of `MUTATIONS`: what is wrong, how many nodes it needs, the faults that hit its weak moment if others seldom
do, and the first seed that finds it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas import slices
from barnabas.controller import configs
from barnabas.metadata.loader import MetadataLoader
from barnabas.raft.core import RaftCore
from barnabas.raft.quorum_state import FileQuorumState
from barnabas.raft.stored_log import StoredLog
from barnabas.replicas.following.fetcher import Fetcher
from barnabas.replicas.leading import Leading
from barnabas.replicas.partition import Partition
from barnabas.replicated.decision import Producer, Result
from barnabas.storage import producers
from barnabas.storage.compaction import Compaction
from barnabas.storage.log import Log
from barnabas.transactions import decide
from barnabas.transactions.state import TransactionState
from tests.simulation.plan import Kind


class Mutation(NamedTuple):
    """`seed` is the first one, from 1 on, that found the bug when this was written."""

    what: str
    nodes: int
    plant: Callable[[], None]
    only: Kind | None = None
    seed: int = 1
    counts_turns: bool = False


def _replace(owner: Any, name: str, value: Any) -> None:
    assert hasattr(owner, name), f"{owner} has no {name} to plant a bug in"
    setattr(owner, name, value)


def _does_nothing(*arguments: Any, **more: Any) -> None:
    pass


def _raft_log_not_flushed() -> None:
    _replace(StoredLog, "flush", _does_nothing)


def _votes_not_saved() -> None:
    _replace(FileQuorumState, "save", _does_nothing)


def _high_watermark_ignores_followers() -> None:
    _replace(Leading, "high_watermark", lambda self, leader_end, now_ms: leader_end)


def _isr_expanded_early() -> None:
    def expand(self: Leading, replica_id: int, high_watermark: int, epoch_start: int, own_epoch: int) -> Any:
        if self.proposed is not None or replica_id not in self.followers or replica_id in self.isr:
            return None
        return self._propose((*self.isr, replica_id), own_epoch)

    _replace(Leading, "expand", expand)


def _truncation_skipped() -> None:
    async def cut(self: Fetcher, followed: Any, diverging: Any) -> None:
        self._continue(followed)

    _replace(Fetcher, "_cut", cut)


def _duplicates_accepted() -> None:
    _replace(producers.Producers, "check", _does_nothing)


def _producers_forgotten() -> None:
    opened = Log.__dict__["open"].__func__

    def open_log(cls: type[Log], *arguments: Any, **more: Any) -> Log:
        log: Log = opened(cls, *arguments, **more)
        log.producers = producers.Producers()
        return log

    _replace(Log, "open", classmethod(open_log))


def _fence_ignored() -> None:
    end = decide.end

    def end_any(
        situation: decide.TransactionSituation, transactional_id: str, producer: Producer, *more: Any
    ) -> Result[decide.Ended]:
        current = situation.get(transactional_id)
        if current is not None and current.state is TransactionState.ONGOING:
            producer = producer._replace(producer_epoch=current.producer_epoch)
        return end(situation, transactional_id, producer, *more)

    _replace(decide, "end", end_any)
    _replace(producers, "_check_not_fenced", _does_nothing)
    _replace(producers, "_check_marker", _does_nothing)


def _marker_lost() -> None:
    append_marker = Partition.append_marker

    def lost(self: Partition, producer: Any, marker: Any, *more: Any) -> Any:
        if marker.is_commit and producer.producer_id % 2:
            marker = marker._replace(is_commit=False)
        return append_marker(self, producer, marker, *more)

    _replace(Partition, "append_marker", lost)


def _open_transactions_visible() -> None:
    _replace(Partition, "last_stable_offset", property(lambda self: self.high_watermark))


def _aborted_visible() -> None:
    _replace(Log, "aborted_transactions", lambda self, fetch_offset, upper_bound: [])


def _names_not_flushed() -> None:
    _replace(Log, "flush_names", _does_nothing)


def _coordinators_do_not_flush() -> None:
    _replace(Partition, "_flush_if_due", _does_nothing)
    advance = Partition._advance

    def early(self: Partition, appended_bytes: int) -> None:
        log = self.log
        before, log.recovery_point = log.recovery_point, log.log_end_offset
        try:
            advance(self, appended_bytes)
        finally:
            log.recovery_point = before

    _replace(Partition, "_advance", early)


def _settings_lost() -> None:
    alter = configs.alter_incrementally

    def lost(*arguments: Any, **more: Any) -> Any:
        result = yield from alter(*arguments, **more)
        return result._replace(records=()) if len(result.records) == 1 else result

    _replace(configs, "alter_incrementally", lost)


def _trims_under_answers() -> None:
    _replace(RaftCore, "has_answers", False)


def _snapshot_cut() -> None:
    load = MetadataLoader.load_snapshot_in_slices

    def cut(self: MetadataLoader, records: Any, provenance: Any) -> Any:
        *some, _ = records
        return (yield from load(self, some, provenance))

    _replace(MetadataLoader, "load_snapshot_in_slices", cut)


def _compaction_loses() -> None:
    last_of_keys = Compaction._last_of_keys

    def lost(self: Compaction, header: Any, spans: Any) -> Any:
        return last_of_keys(self, header, spans)[:-1]

    _replace(Compaction, "_last_of_keys", lost)


def _never_pauses() -> None:
    _replace(slices, "TURN_S", 60.0)
    _replace(slices, "MAX_STEPS", 1 << 30)


MUTATIONS = {
    "raft-log-not-flushed": Mutation("The metadata log is not flushed", 3, _raft_log_not_flushed),
    "votes-not-saved": Mutation("A voter forgets its vote when it restarts", 3, _votes_not_saved, Kind.BALLOT),
    "high-watermark-early": Mutation(
        "The high watermark does not wait for followers", 3, _high_watermark_ignores_followers, seed=4
    ),
    "isr-expanded-early": Mutation(
        "A follower joins the ISR before it has caught up", 3, _isr_expanded_early, Kind.LAGGARD, seed=2
    ),
    "truncation-skipped": Mutation("A follower keeps what its leader does not have", 3, _truncation_skipped, seed=2),
    "duplicates-accepted": Mutation("A batch that is sent again is appended again", 1, _duplicates_accepted, seed=4),
    "producers-forgotten": Mutation("Sequences of producers are lost by a restart", 1, _producers_forgotten, seed=4),
    "fence-ignored": Mutation("Old epochs of producers are accepted, also by the coordinator", 1, _fence_ignored),
    "marker-lost": Mutation("Some commits write the marker of an abort", 1, _marker_lost),
    "open-transactions-visible": Mutation(
        "read_committed reads beyond the last stable offset", 1, _open_transactions_visible, seed=5
    ),
    "aborted-visible": Mutation("Fetch does not name aborted transactions", 1, _aborted_visible),
    "names-not-flushed": Mutation("The names of new log files are not flushed", 1, _names_not_flushed),
    "settings-lost": Mutation("A changed setting is answered, and not written", 1, _settings_lost),
    "trims-under-answers": Mutation(
        "The metadata log is trimmed under answers that read it", 3, _trims_under_answers, Kind.TRIM, seed=4
    ),
    "snapshot-cut": Mutation("The last record of a snapshot is not loaded", 3, _snapshot_cut),
    "compaction-loses": Mutation("Compaction loses the last record of a batch", 1, _compaction_loses),
    "never-pauses": Mutation("Work in slices never pauses", 3, _never_pauses, counts_turns=True),
    "committed-before-flush": Mutation(
        "flush.messages does not hold back what is committed", 1, _coordinators_do_not_flush
    ),
}
