"""KRaft, the consensus of Kafka's controllers: who leads, and what of the metadata log is committed.

core (pure: told what happened, says what to do), ready (what goes in and comes out), roles (and which may follow which),
requests and responses (what is answered, what answers lead to), messages, connections, voters, reconfiguration, records
(control records), log (the interface of one, and one in memory), quorum_state, disk (carrying it out), driver (asyncio).
Not done: joining by itself (controller.quorum.auto.join.enable), and raising kraft.version of several voters.
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
