"""The roles of a replica, their state, and the allowed transitions.

Its one rule: a role object lives while the replica has that role, and holds only state that is dropped with it;
persistent state is in the Election. Roles have no clock: deadlines are in milliseconds of the time passed to the core.

A replica that is not a voter is an observer, and only ever unattached or a follower.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import TypeAlias

from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.reconfiguration import VoterChange
from barnabas.raft.voters import Endpoints, ReplicaKey, Voter, VoterSet

FOREVER_MS = 1 << 62
OBSERVER_SESSION_TIMEOUT_MS = 300_000
MAX_OBSERVERS = 10_000
CAUGHT_UP_WITHIN_MS = 3_600_000


class Votes:
    """The votes of one election, counted among the voters at its start."""

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
    """Has no leader to fetch from. A voter waits for one, or for its election timeout; an observer asks other nodes."""

    deadline_ms: int


@dataclass(slots=True)
class Download:
    """A snapshot that a follower is downloading from its leader."""

    snapshot_id: OffsetAndEpoch
    position: int = 0


@dataclass(slots=True)
class Follower:
    """Fetches from a leader."""

    leader_listeners: Endpoints
    deadline_ms: int
    update_voter_ms: int
    has_fetched: bool = False
    has_updated_leader: bool = False  # the leader knows the endpoints of this voter, which are in no record
    download: Download | None = None


@dataclass(slots=True)
class Prospective:
    """Asks whether it would be elected (pre-vote), before it disturbs the quorum with a new epoch."""

    votes: Votes
    deadline_ms: int
    leader_listeners: Endpoints = ()


@dataclass(slots=True)
class Candidate:
    """Asks for votes, after voting for itself."""

    votes: Votes
    deadline_ms: int


@dataclass(slots=True)
class Resigned:
    """A former leader of this epoch. It informs the voters, and can neither lead nor vote in this epoch."""

    unacknowledged: set[int]
    preferred_successors: tuple[ReplicaKey, ...]
    deadline_ms: int


@dataclass(slots=True)
class Progress:
    """How far another replica is, according to its fetches."""

    key: ReplicaKey
    end_offset: int = -1
    last_fetch_ms: int = -1
    last_caught_up_ms: int = -1
    _leader_end_offset_at_last_fetch: int = -1

    def fetched(self, now_ms: int, offset: int, leader_end_offset: int) -> None:
        """Record a fetch. A replica was caught up at a time if it has what the leader had then."""
        if offset >= leader_end_offset:
            self.last_caught_up_ms = max(now_ms, self.last_caught_up_ms)
        elif 0 < self._leader_end_offset_at_last_fetch <= offset:
            self.last_caught_up_ms = max(self.last_fetch_ms, self.last_caught_up_ms)
        self.last_fetch_ms = max(now_ms, self.last_fetch_ms)
        self.end_offset = offset
        self._leader_end_offset_at_last_fetch = leader_end_offset


@dataclass(slots=True)
class Leader:
    """Leads one epoch. It tracks how far the other replicas are, and so what is committed.

    The high watermark is unknown until a majority has a record of this epoch: only then can no later leader lack what
    is before it. The leader resigns unless a majority keeps fetching (check quorum).
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
    updated_voters: dict[int, Voter] = field(default_factory=dict)  # as configured voters described themselves
    change: VoterChange | None = None
    resign_requested: bool = False

    def set_voters(self, voters: VoterSet) -> None:
        """Use another voter set. The progress of a replica is kept when it becomes a voter or an observer."""
        if self.is_alone:  # nobody had to fetch so far
            self.check_quorum_ms = FOREVER_MS
        known = {**self.observers, **{progress.key: progress for progress in self.voters.values()}}
        self.voters = {}
        for key in voters.keys:
            found = next((known.pop(each) for each in list(known) if key.is_known_as(each)), None)
            self.voters[key.id] = Progress(key) if found is None else found
        known.pop(self.own_key, None)
        self.observers = known
        self.fetched_voters &= voters.ids

    def progress_of(self, replica: ReplicaKey, now_ms: int) -> Progress | None:
        """Return the progress of a voter or an observer, or None if there are too many observers to add one."""
        progress = self.voters.get(replica.id)
        if progress is not None and progress.key.is_known_as(replica):
            progress.key = replica  # a configured voter reports its directory itself
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
        """Whether an observer once had the whole log and still fetches, so that it may become a voter."""
        progress = self.observers.get(replica)
        return (
            progress is not None
            and progress.last_caught_up_ms > 0
            and progress.last_fetch_ms > now_ms - CAUGHT_UP_WITHIN_MS
        )

    def heard_from(self, replica: ReplicaKey, now_ms: int) -> None:
        """Record a fetch of a voter. Once a majority has fetched, the check quorum timeout restarts."""
        progress = self.voters.get(replica.id)
        if progress is None or not progress.key.is_known_as(replica):
            return
        self.fetched_voters.add(replica.id)
        majority = len(self.voters) // 2 + 1 - (self.own_key.id in self.voters)
        if len(self.fetched_voters) >= majority:
            self.fetched_voters.clear()
            self.check_quorum_ms = now_ms + self.check_quorum_timeout_ms

    def expect_fetches(self, now_ms: int) -> None:
        """Start the check quorum timeout if this leader is no longer the only voter."""
        if self.check_quorum_ms == FOREVER_MS and not self.is_alone:
            self.check_quorum_ms = now_ms + self.check_quorum_timeout_ms

    @property
    def quorum_deadline_ms(self) -> int:
        return FOREVER_MS if self.is_alone else self.check_quorum_ms

    @property
    def is_alone(self) -> bool:
        return self.voters.keys() == {self.own_key.id}

    def advance(self, own_flushed_offset: int) -> bool:
        """Update the high watermark and return whether it advanced."""
        if not self.voters:
            return False
        own_id = self.own_key.id
        offsets = sorted(
            (own_flushed_offset if voter == own_id else progress.end_offset for voter, progress in self.voters.items()),
            reverse=True,
        )
        agreed = offsets[len(offsets) // 2]
        if agreed <= self.epoch_start_offset or (self.high_watermark is not None and agreed <= self.high_watermark):
            return False  # it may be lower after a change of voters, but what is committed stays committed
        self.high_watermark = agreed
        return True

    def voters_to_remind(self, now_ms: int, silent_for_ms: int) -> list[ReplicaKey]:
        """Return the voters that have not fetched recently, and may not know the leader."""
        return [
            progress.key
            for voter, progress in self.voters.items()
            if voter != self.own_key.id
            and (progress.last_fetch_ms < 0 or now_ms - progress.last_fetch_ms >= silent_for_ms)
        ]

    def successors(self) -> tuple[ReplicaKey, ...]:
        """Return the other voters, those with the longest logs first."""
        others: Iterable[Progress] = (each for voter, each in self.voters.items() if voter != self.own_key.id)
        return tuple(each.key for each in sorted(others, key=lambda each: -each.end_offset))


Role: TypeAlias = Unattached | Follower | Prospective | Candidate | Leader | Resigned

TRANSITIONS: dict[type[Role], frozenset[type[Role]]] = {
    # higher epoch, or vote granted; election timeout; leader found
    Unattached: frozenset({Unattached, Prospective, Follower}),
    # higher epoch; pre-vote won; leader found, or pre-vote lost with a known leader
    Prospective: frozenset({Unattached, Candidate, Follower}),
    # higher epoch; election timeout; election won; leader found
    Candidate: frozenset({Unattached, Prospective, Leader, Follower}),
    # higher epoch, with or without a leader; resigned on request, without a majority, or on shutdown
    Leader: frozenset({Unattached, Follower, Resigned}),
    # higher epoch; fetch timeout; other leader
    Follower: frozenset({Unattached, Prospective, Follower}),
    # higher epoch, or timeout; only voter, so no vote is needed; leader found
    Resigned: frozenset({Unattached, Prospective, Follower}),
}
