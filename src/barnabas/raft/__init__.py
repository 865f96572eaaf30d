"""KRaft, the consensus protocol of Kafka's controllers: elects the leader of the metadata log and commits its records.

core (pure: events in, actions out), ready (the types of both), roles (and their transitions), requests and responses
(their handlers), messages, connections, voters, reconfiguration, records (control records), log (its interface, and one
in memory), quorum_state, disk (executes disk work), driver (asyncio), stored_log (the log on disk), formatting (new
directories).

Not implemented: joining automatically (controller.quorum.auto.join.enable), and upgrading kraft.version with several
voters.
"""

from barnabas.raft.core import RaftCore
from barnabas.raft.driver import CommittedBatch, Listener, RaftDriver, Snapshot, Transport
from barnabas.raft.log import (
    BOOTSTRAP_SNAPSHOT_ID,
    EpochStart,
    LogView,
    MemoryLog,
    OffsetAndEpoch,
    RaftLog,
    SnapshotReader,
    SnapshotWriter,
)
from barnabas.raft.messages import TOPIC, TOPIC_ID
from barnabas.raft.quorum_state import (
    Election,
    FileQuorumState,
    MemoryQuorumState,
    QuorumState,
    QuorumStateStore,
)
from barnabas.raft.ready import (
    CommittedLogLostError,
    Leadership,
    NotLeaderError,
    ProposalTooLargeError,
    RaftConfig,
    Ready,
    Request,
    Response,
    TooManyProposalsError,
)
from barnabas.raft.records import load
from barnabas.raft.voters import Endpoint, Node, ReplicaKey, Voter, VoterHistory, VoterSet

__all__ = [
    "BOOTSTRAP_SNAPSHOT_ID",
    "TOPIC",
    "TOPIC_ID",
    "CommittedBatch",
    "CommittedLogLostError",
    "Election",
    "Endpoint",
    "EpochStart",
    "FileQuorumState",
    "Leadership",
    "Listener",
    "LogView",
    "MemoryLog",
    "MemoryQuorumState",
    "Node",
    "NotLeaderError",
    "OffsetAndEpoch",
    "ProposalTooLargeError",
    "QuorumState",
    "QuorumStateStore",
    "RaftConfig",
    "RaftCore",
    "RaftDriver",
    "RaftLog",
    "Ready",
    "ReplicaKey",
    "Request",
    "Response",
    "Snapshot",
    "SnapshotReader",
    "SnapshotWriter",
    "TooManyProposalsError",
    "Transport",
    "Voter",
    "VoterHistory",
    "VoterSet",
    "load",
]
