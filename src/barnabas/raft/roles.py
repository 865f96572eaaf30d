"""The roles of a replica, what each of them remembers, and which may follow which.

Its one rule: a role lives for one stay in it and holds only what is lost with it; what must survive is in the Election.
Roles know no time of their own: deadlines are in milliseconds of the clock that the core is told.

A replica that is no voter is an observer: it is only ever unattached or a follower.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.reconfiguration import VoterChange
from barnabas.raft.voters import Endpoints, ReplicaKey, VoterSet

FOREVER_MS = 1 << 62
OBSERVER_SESSION_TIMEOUT_MS = 300_000
MAX_OBSERVERS = 10_000
CAUGHT_UP_WITHIN_MS = 3_600_000


class Votes:
    """The votes of one election, counted among the voters at its beginning."""

    def __init__(self, voters: VoterSet, own_id: int) -> None:
        self._votes: dict[int, bool | None] = {voter.id: None for voter in voters}
        self._majority = voters.majority
        self.record(own_id, granted=True)

    def record(self, voter_id: int, *, granted: bool) -> None:
        if voter_id in self._votes:
            self._votes[voter_id] = granted

    @property
    def granting(self) -> frozenset[int]:
        return frozenset(voter for voter, vote in self._votes.items() if vote)

    @property
    def missing(self) -> frozenset[int]:
        return frozenset(voter for voter, vote in self._votes.items() if vote is None)

    @property
    def is_won(self) -> bool:
        return len(self.granting) >= self._majority

    @property
    def is_lost(self) -> bool:
        return len(self.granting) + len(self.missing) < self._majority


@dataclass(slots=True)
class Unattached:
    """Knows no leader to fetch from. A voter waits for one, or for its time to run; an observer asks around."""

    deadline_ms: int


@dataclass(slots=True)
class Download:
    """A snapshot that a follower gets from its leader, and how much of it is there."""

    snapshot_id: OffsetAndEpoch
    position: int = 0


@dataclass(slots=True)
class Follower:
    """Fetches from a leader."""

    leader_listeners: Endpoints
    deadline_ms: int
    update_voter_ms: int
    has_fetched: bool = False
    download: Download | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected (pre-vote), before it disturbs anybody with a new epoch."""

    votes: Votes
    deadline_ms: int
    leader_listeners: Endpoints = ()


@dataclass(slots=True)
class Candidate:
    """Asks for votes, having given itself its own."""

    votes: Votes
    deadline_ms: int


@dataclass(slots=True)
class Resigned:
    """Was the leader of this epoch and is no more. It tells the voters, and can neither lead nor vote in this epoch."""

    unacknowledged: set[int]
    preferred_successors: tuple[ReplicaKey, ...]
    deadline_ms: int


@dataclass(slots=True)
class Progress:
    """How far another replica is, as its fetches say."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    _leader_end_offset_at_last_fetch: int = -1

    def fetched(self, now_ms: int, offset: int, leader_end_offset: int) -> None:
        """It is caught up to a time if it has what the leader had at that time."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(now_ms, self.last_caught_up_ms)
        elif 0 < self._leader_end_offset_at_last_fetch <= offset:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self.last_fetch_ms = max(now_ms, self.last_fetch_ms)
        self.end_offset = offset
        self._leader_end_offset_at_last_fetch = leader_end_offset


@dataclass(slots=True)
class Leader:
    """Leads one epoch: knows how far everybody is, and with that, what is committed.

    The high watermark is unknown until a record of its own epoch is on a majority: only then is everything before it
    safe from any later leader. A majority must keep fetching, or the leader resigns (check quorum).
    """

    own_key: ReplicaKey
    epoch_start_offset: int
    check_quorum_timeout_ms: int
    check_quorum_ms: int
    begin_epoch_ms: int
    voters: dict[int, Progress] = field(default_factory=dict)
    observers: dict[ReplicaKey, Progress] = field(default_factory=dict)
    fetched_voters: set[int] = field(default_factory=set)
    high_watermark: int | None = None
    change: VoterChange | None = None
    resign_requested: bool = False

    def set_voters(self, voters: VoterSet) -> None:
        """Other voters count now; what is known of a replica is kept when it becomes one or ceases to be one."""
        known = {**self.observers, **{progress.key: progress for progress in self.voters.values()}}
        self.voters = {}
        for key in voters.keys:
            found = next((known.pop(each) for each in list(known) if key.is_known_as(each)), None)
            self.voters[key.id] = Progress(key) if found is None else found
        known.pop(self.own_key, None)
        self.observers = known
        self.fetched_voters &= voters.ids

    def progress_of(self, replica: ReplicaKey, now_ms: int) -> Progress | None:
        """Of a voter or an observer, a new one too; None when there are too many to remember another."""
        progress = self.voters.get(replica.id)
        if progress is not None and progress.key.is_known_as(replica):
            progress.key = replica  # a configured voter says itself which directory it has
            return progress
        if replica not in self.observers:
            self.forget_observers(now_ms)
            if len(self.observers) >= MAX_OBSERVERS:
                return None
            self.observers[replica] = Progress(replica)
        return self.observers[replica]

    def forget_observers(self, now_ms: int) -> None:
        oldest = now_ms - OBSERVER_SESSION_TIMEOUT_MS
        for key in [key for key, progress in self.observers.items() if progress.last_fetch_ms < oldest]:
            del self.observers[key]

    def is_caught_up(self, replica: ReplicaKey, now_ms: int) -> bool:
        """Whether an observer had the whole log once, and has not been silent since: then it may become a voter."""
        progress = self.observers.get(replica)
        return (
            progress is not None
            and progress.last_caught_up_ms > 0
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def heard_from(self, replica: ReplicaKey, now_ms: int) -> None:
        """A fetch of a voter; once a majority has fetched, the time for check quorum begins anew."""
        progress = self.voters.get(replica.id)
        if progress is None or not progress.key.is_known_as(replica):
            return
        self.fetched_voters.add(replica.id)
        majority = len(self.voters) // 2 + 1 - (self.own_key.id in self.voters)
        if len(self.fetched_voters) >= majority:
            self.fetched_voters.clear()
            self.check_quorum_ms = now_ms + self.check_quorum_timeout_ms

    @property
    def quorum_deadline_ms(self) -> int:
        return FOREVER_MS if self.is_alone else self.check_quorum_ms

    @property
    def is_alone(self) -> bool:
        return self.voters.keys() == {self.own_key.id}

    def advance(self, own_flushed_offset: int) -> bool:
        """Compute the high watermark; whether it moved."""
        if not self.voters:
            return False
        own_id = self.own_key.id
        offsets = sorted(
            (own_flushed_offset if voter == own_id else progress.end_offset for voter, progress in self.voters.items()),
            reverse=True,
        )
        agreed = offsets[len(offsets) // 2]
        if agreed <= self.epoch_start_offset or (self.high_watermark is not None and agreed <= self.high_watermark):
            return False  # it may be smaller after a change of voters; what is committed stays committed
        self.high_watermark = agreed
        return True

    def voters_to_remind(self, now_ms: int, silent_for_ms: int) -> list[ReplicaKey]:
        """Voters that have not fetched lately, and so may not know who leads."""
        return [
            progress.key
            for voter, progress in self.voters.items()
            if voter != self.own_key.id
            and (progress.last_fetch_ms < 0 or now_ms - progress.last_fetch_ms >= silent_for_ms)
        ]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """The other voters, those with the longest logs first."""
        others: Iterable[Progress] = (each for voter, each in self.voters.items() if voter != self.own_key.id)
        return tuple(each.key for each in sorted(others, key=lambda each: -each.end_offset))


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned

TRANSITIONS: dict[type[Role], frozenset[type[Role]]] = {
    # a higher epoch, or a vote; its time ran out; a leader
    Unattached: frozenset({Unattached, Prospective, Follower}),
    # a higher epoch; a majority would vote for it; a leader, or nobody else would vote for it and it knew one before
    Prospective: frozenset({Unattached, Candidate, Follower}),
    # a higher epoch; its time ran out; a majority; a leader
    Candidate: frozenset({Unattached, Prospective, Leader, Follower}),
    # a higher epoch, with a leader or not; asked to, without a majority, or on its way out
    Leader: frozenset({Unattached, Follower, Resigned}),
    # a higher epoch; its leader fell silent; another leader
    Follower: frozenset({Unattached, Prospective, Follower}),
    # a higher epoch, or its time ran out; alone, so that nobody need be asked; a leader
    Resigned: frozenset({Unattached, Prospective, Follower}),
}
