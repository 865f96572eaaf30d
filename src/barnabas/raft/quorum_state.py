"""The persistent election state of a replica: its epoch, the leader of that epoch, and its vote.

Its one rule: it is on disk before any message that depends on it is sent. In Kafka's file `quorum-state`, the data
version is 0 while the voters are configured, and 1 when they are in the log.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple, Protocol

from barnabas.raft.voters import RECONFIGURATION_VERSION, ReplicaKey, VoterSet
from barnabas.storage.quorum_state import read_quorum_state, write_quorum_state
from barnabas.wire.records.raft import QuorumStateData

NO_ID = -1


class Election(NamedTuple):
    """The state of one epoch's election, as one replica knows it."""

    epoch: int = 0
    leader_id: int | None = None
    voted_key: ReplicaKey | None = None


class QuorumState(NamedTuple):
    """The election state, with the voters and kraft.version that the file format depends on."""

    election: Election
    kraft_version: int = 0
    voters: VoterSet = VoterSet()

    def to_record(self) -> tuple[QuorumStateData, int]:
        """Return Kafka's form and its version."""
        epoch, leader_id, voted_key = self.election
        data = QuorumStateData(
            leader_id=NO_ID if leader_id is None else leader_id,
            leader_epoch=epoch,
            voted_id=NO_ID if voted_key is None else voted_key.id,
        )
        if self.kraft_version < RECONFIGURATION_VERSION:
            data.current_voters = [QuorumStateData.Voter(voter_id=voter.id) for voter in self.voters]
            return data, 0
        if voted_key is not None:
            data.voted_directory_id = voted_key.wire_directory_id
        return data, 1


def election_of(data: QuorumStateData) -> Election:
    voted_key = None if data.voted_id < 0 else ReplicaKey.of(data.voted_id, data.voted_directory_id)
    return Election(data.leader_epoch, None if data.leader_id < 0 else data.leader_id, voted_key)


class QuorumStateStore(Protocol):
    """Storage of the election state. `save` returns when it is on disk, and may run in another thread."""

    def load(self) -> Election | None: ...
    def save(self, state: QuorumState) -> None: ...


class FileQuorumState:
    """The file `quorum-state` in the directory of the log."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    def load(self) -> Election | None:
        found = read_quorum_state(self.directory)
        return None if found is None else election_of(found)

    def save(self, state: QuorumState) -> None:
        write_quorum_state(self.directory, *state.to_record())


class MemoryQuorumState:
    """A store for tests and simulations."""

    def __init__(self) -> None:
        self.saved: QuorumState | None = None

    def load(self) -> Election | None:
        return None if self.saved is None else self.saved.election

    def save(self, state: QuorumState) -> None:
        self.saved = state
