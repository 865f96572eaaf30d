"""What each role remembers and computes, and the table of transitions."""

from __future__ import annotations

import pytest

from barnabas.raft.roles import (
    FOREVER_MS,
    MAX_OBSERVERS,
    OBSERVER_SESSION_TIMEOUT_MS,
    TRANSITIONS,
    Candidate,
    Follower,
    Leader,
    Progress,
    Prospective,
    Resigned,
    Unattached,
    Votes,
)
from barnabas.raft.voters import ReplicaKey, VoterSet
from tests.raft.harness import Replica
from tests.raft.simulation import key_of, voter_set

NOW_MS = 1_000_000


def leader(voters: VoterSet, start_offset: int = 10, own_id: int = 1) -> Leader:
    found = Leader(key_of(own_id), start_offset, 3000, NOW_MS + 3000, NOW_MS)
    found.set_voters(voters)
    return found


def fetched(role: Leader, voter: int, offset: int, end_offset: int = 100, now_ms: int = NOW_MS) -> None:
    progress = role.progress_of(key_of(voter), now_ms)
    assert progress is not None
    progress.fetched(now_ms, offset, end_offset)
    role.heard_from(key_of(voter), now_ms)


def test_every_role_has_its_transitions_and_nobody_becomes_leader_without_votes() -> None:
    assert set(TRANSITIONS) == {Unattached, Follower, Prospective, Candidate, Leader, Resigned}
    assert [role for role, to in TRANSITIONS.items() if Leader in to] == [Candidate]
    assert [role for role, to in TRANSITIONS.items() if Candidate in to] == [Prospective]
    assert [role for role, to in TRANSITIONS.items() if Resigned in to] == [Leader]


def test_votes_are_counted_among_the_voters() -> None:
    votes = Votes(voter_set(1, 2, 3, 4, 5), 1)
    assert (votes.is_won, votes.is_lost, set(votes.missing)) == (False, False, {2, 3, 4, 5})
    votes.record(9, granted=True)
    votes.record(2, granted=True)
    assert not votes.is_won
    votes.record(3, granted=False)
    votes.record(4, granted=False)
    assert not votes.is_lost
    votes.record(5, granted=True)
    assert votes.is_won
    assert votes.granting == {1, 2, 5}


def test_an_election_is_lost_when_no_majority_is_left() -> None:
    votes = Votes(voter_set(1, 2, 3), 1)
    votes.record(2, granted=False)
    assert not votes.is_lost
    votes.record(3, granted=False)
    assert votes.is_lost


def test_one_who_is_no_voter_does_not_count_itself() -> None:
    votes = Votes(voter_set(2), 1)
    assert not votes.is_won
    votes.record(2, granted=True)
    assert votes.is_won


@pytest.mark.parametrize(
    ("offsets", "own", "expected"),
    [
        ({2: 12}, 15, 12),
        ({2: 12, 3: 14}, 15, 14),
        ({2: 20, 3: 20}, 11, 20),
        ({2: 12, 3: 14, 4: 13}, 15, 13),
        ({2: 11, 3: 12, 4: 13, 5: 14}, 15, 13),
    ],
)
def test_the_high_watermark_is_what_a_majority_has(offsets: dict[int, int], own: int, expected: int) -> None:
    role = leader(voter_set(1, *offsets))
    for voter, offset in offsets.items():
        fetched(role, voter, offset)
    assert role.advance(own)
    assert role.high_watermark == expected


def test_only_a_record_of_its_own_epoch_commits() -> None:
    role = leader(voter_set(1, 2, 3), start_offset=10)
    fetched(role, 2, 10)
    assert not role.advance(11)
    assert role.high_watermark is None
    fetched(role, 2, 11)
    assert role.advance(11)


def test_a_leader_counts_what_it_has_flushed() -> None:
    role = leader(voter_set(1))
    assert not role.advance(10)
    assert role.advance(11)
    assert role.high_watermark == 11


def test_the_high_watermark_never_goes_back() -> None:
    role = leader(voter_set(1, 2, 3))
    fetched(role, 2, 20)
    assert role.advance(20)
    fetched(role, 2, 15)
    assert not role.advance(20)
    role.set_voters(voter_set(1, 2, 3, 4))
    assert not role.advance(20)
    assert role.high_watermark == 20


def test_a_leader_that_was_removed_does_not_count_itself() -> None:
    role = leader(voter_set(1, 2, 3))
    role.set_voters(voter_set(2, 3))
    fetched(role, 2, 20)
    assert not role.advance(30)
    fetched(role, 3, 25)
    assert role.advance(30)
    assert role.high_watermark == 20


def test_a_leader_that_was_the_only_voter_gives_a_second_one_time_to_fetch() -> None:
    replica = Replica(1, voter_set(1))
    replica.after(1_000_000)
    replica.core.append_voters(replica.now_ms, voter_set(1, 2))
    replica.process()
    replica.after(2000)
    assert replica.core.is_leader
    replica.after(2000)
    assert not replica.core.is_leader


def test_progress_is_kept_when_an_observer_becomes_a_voter_and_back() -> None:
    role = leader(voter_set(1, 2))
    fetched(role, 3, 50)
    role.set_voters(voter_set(1, 2, 3))
    assert role.voters[3].end_offset == 50
    assert role.observers == {}
    role.set_voters(voter_set(1, 3))
    role.set_voters(voter_set(1))
    assert role.observers.keys() == {key_of(2), key_of(3)}


def test_a_configured_voter_says_which_directory_it_has() -> None:
    role = leader(VoterSet.parse("1@h:1,2@h:2", "C"))
    fetched(role, 2, 5)
    assert role.voters[2].key == key_of(2)
    assert role.observers == {}


def test_another_directory_of_a_voter_is_an_observer() -> None:
    role = leader(voter_set(1, 2))
    assert role.progress_of(ReplicaKey(2), NOW_MS) is not None
    assert role.voters[2].end_offset == -1
    assert role.observers.keys() == {ReplicaKey(2)}


def test_observers_are_forgotten_after_a_while_and_never_too_many() -> None:
    role = leader(voter_set(1))
    fetched(role, 2, 5)
    fetched(role, 3, 5, now_ms=NOW_MS + OBSERVER_SESSION_TIMEOUT_MS + 1)
    assert role.observers.keys() == {key_of(3)}
    now_ms = NOW_MS + OBSERVER_SESSION_TIMEOUT_MS + 1
    for node_id in range(10, 10 + MAX_OBSERVERS):
        progress = role.progress_of(key_of(node_id), now_ms)
        if progress is not None:
            progress.fetched(now_ms, 0, 0)
    assert len(role.observers) == MAX_OBSERVERS
    assert role.progress_of(key_of(5), now_ms) is None


def test_a_replica_is_caught_up_to_when_it_had_what_the_leader_had() -> None:
    progress = Progress(key_of(2))
    progress.fetched(1000, 50, 100)
    assert (progress.last_fetch_ms, progress.last_caught_up_ms) == (1000, -1)
    progress.fetched(2000, 100, 150)
    assert progress.last_caught_up_ms == 1000, "at the last fetch the leader had 100"
    progress.fetched(3000, 150, 150)
    assert progress.last_caught_up_ms == 3000


def test_check_quorum_needs_a_majority_with_the_leader() -> None:
    role = leader(voter_set(1, 2, 3, 4, 5))
    fetched(role, 2, 5, now_ms=NOW_MS + 100)
    fetched(role, 2, 5, now_ms=NOW_MS + 200)
    fetched(role, 9, 5, now_ms=NOW_MS + 200)
    assert role.quorum_deadline_ms == NOW_MS + 3000
    fetched(role, 3, 5, now_ms=NOW_MS + 300)
    assert role.quorum_deadline_ms == NOW_MS + 3300


def test_a_single_voter_needs_nobody() -> None:
    assert leader(voter_set(1)).quorum_deadline_ms == FOREVER_MS
    assert leader(voter_set(2)).quorum_deadline_ms < FOREVER_MS, "a leader that is no voter does"


def test_silent_voters_are_reminded_and_the_longest_log_is_preferred() -> None:
    role = leader(voter_set(1, 2, 3))
    assert role.voters_to_remind(NOW_MS, 1000) == [key_of(2), key_of(3)]
    fetched(role, 2, 5)
    fetched(role, 3, 9)
    assert role.voters_to_remind(NOW_MS + 999, 1000) == []
    assert role.voters_to_remind(NOW_MS + 1000, 1000) == [key_of(2), key_of(3)]
    assert role.successors() == (key_of(3), key_of(2))
