"""Replicas, sets of voters, and the history of the sets."""

from __future__ import annotations

from pathlib import Path

import pytest

from barnabas.raft.quorum_state import Election, FileQuorumState, QuorumState, election_of
from barnabas.raft.voters import Endpoint, Node, ReplicaKey, Voter, VoterHistory, VoterSet, node_of
from barnabas.wire import ZERO_UUID, Uuid
from tests.raft.simulation import key_of, voter_of, voter_set


def test_a_key_without_a_directory_means_any_directory() -> None:
    known, unknown = key_of(1), ReplicaKey(1)
    assert unknown.is_known_as(known)
    assert not known.is_known_as(unknown)
    assert not unknown.is_known_as(key_of(2))
    assert ReplicaKey.of(1, ZERO_UUID) == unknown
    assert (unknown.wire_directory_id, str(unknown)) == (ZERO_UUID, "ReplicaKey(id=1, directoryId=<undefined>)")


@pytest.mark.parametrize(("count", "majority"), [(1, 1), (2, 2), (3, 2), (4, 3), (5, 3)])
def test_a_majority_is_more_than_half(count: int, majority: int) -> None:
    assert voter_set(*range(count)).majority == majority


def test_a_set_gives_another_set() -> None:
    voters = voter_set(1, 2)
    assert voters.add(voter_of(3)) == voter_set(1, 2, 3)
    assert voters.add(voter_of(2)) is None
    assert voters.remove(key_of(2)) == voter_set(1)
    assert voters.remove(key_of(3)) is None
    assert voters.remove(ReplicaKey(2)) is None, "the directory belongs to the key"
    assert voter_set(1).remove(key_of(1)) is None, "somebody must be left"
    moved = Voter(key_of(2), (Endpoint("C", "elsewhere", 1),))
    updated = voters.update(moved)
    assert updated is not None
    assert updated.get(2) == moved
    assert voters.update(Voter(ReplicaKey(2, Uuid(bytes(16)[:-1] + b"\x63")))) is None
    assert voters == voter_set(2, 1)


def test_voters_are_parsed_as_kafka_writes_them() -> None:
    voters = VoterSet.parse(" 1@one:9093, 2@[::1]:9094 ", "CONTROLLER")
    assert voters.keys == (ReplicaKey(1), ReplicaKey(2))
    assert node_of(2, voters.listeners_of(2), "CONTROLLER") == Node(2, "::1", 9094)
    assert node_of(2, voters.listeners_of(2), "OTHER") is None
    assert voters.is_voter(key_of(1))
    assert len(VoterSet.parse("", "C")) == 0


@pytest.mark.parametrize(
    "text", ["1", "1@host", "@host:1", "x@host:1", "1@host:port", "1@:1", "1@h:70000", "1@h:1,1@h:2"]
)
def test_what_is_no_list_of_voters_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="voter"):
        VoterSet.parse(text, "C")


def test_the_history_is_undone_by_a_truncation() -> None:
    history = VoterHistory(voter_set(9))
    assert (history.current, history.current_offset, history.kraft_version) == (voter_set(9), None, 0)
    history.append_kraft_version(-1, 1)
    history.append_voters(-1, voter_set(1))
    history.append_voters(5, voter_set(1, 2))
    history.append_voters(9, voter_set(1, 2, 3))
    assert (set(history.current.ids), history.current_offset) == ({1, 2, 3}, 9)
    history.truncate(9)
    assert (set(history.current.ids), history.current_offset) == ({1, 2}, 5)
    assert history.can_reconfigure
    history.truncate(0)
    assert history.current.ids == {1}
    history.truncate(-1)
    assert (history.current, history.kraft_version) == (voter_set(9), 0)


def test_the_history_forgets_what_lies_before_a_snapshot() -> None:
    history = VoterHistory()
    for offset in (0, 5, 9):
        history.append_voters(offset, voter_set(*range(1, offset + 2)))
    history.forget(7)
    assert history.at(8)[1] == voter_set(*range(1, 7)), "what counts at the snapshot is kept"
    assert history.at(5)[1] is None
    assert history.current_offset == 9


@pytest.mark.parametrize("kraft_version", [0, 1])
@pytest.mark.parametrize("leader_id", [None, 2])
@pytest.mark.parametrize("voted", [None, 3])
def test_an_election_survives_its_file(
    tmp_path: Path, kraft_version: int, leader_id: int | None, voted: int | None
) -> None:
    voted_key = None if voted is None else (key_of(voted) if kraft_version else ReplicaKey(voted))
    election = Election(7, leader_id, voted_key)
    state = QuorumState(election, kraft_version, voter_set(1, 2, 3))
    store = FileQuorumState(tmp_path)
    assert store.load() is None
    store.save(state)
    assert store.load() == election == election_of(state.to_record()[0])
