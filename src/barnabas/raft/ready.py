"""What the core is told and what it says: its settings, its inputs, and the one value that holds everything to be done.

Its one rule: plain values, nothing that acts. `Ready` says in which order the world must do things.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from barnabas.raft.log import OffsetAndEpoch
from barnabas.raft.quorum_state import QuorumState
from barnabas.raft.voters import Endpoints, Node
from barnabas.wire import ErrorCode, KafkaError, Message, Uuid


class NotLeaderError(KafkaError):
    """This replica does not lead the epoch in question; what was proposed may yet be committed, or may not."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)


class ProposalTooLargeError(KafkaError):
    """More than fits into one batch, which is the unit that is committed as a whole."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.RECORD_LIST_TOO_LARGE, message)


class TooManyProposalsError(KafkaError):
    """The disk does not keep up; retry later."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)


class CommittedLogLostError(Exception):
    """A leader does not have what was committed here. Nothing can be right after that: the node must stop."""


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """Who this replica is, and Kafka's `controller.quorum.*` settings with their defaults."""

    node_id: int
    directory_id: Uuid
    cluster_id: str
    listener_name: str  # on which voters talk to each other
    listeners: Endpoints = ()  # where this one is reached
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    election_timeout_ms: int = 1000
    fetch_timeout_ms: int = 2000
    election_backoff_max_ms: int = 1000
    request_timeout_ms: int = 2000
    retry_backoff_ms: int = 20
    fetch_max_wait_ms: int = 500
    fetch_max_bytes: int = 1 << 20
    fetch_snapshot_max_bytes: int = 1 << 20
    max_batch_bytes: int = 8 << 20
    max_proposed_bytes: int = 32 << 20


class Request(NamedTuple):
    """A request that came in; the answer in Ready has the same id."""

    id: int
    message: Message
    version: int
    listener_name: str


class Response(NamedTuple):
    """The answer to a request that was sent; None when there was none."""

    correlation_id: int
    message: Message | None


class Send(NamedTuple):
    correlation_id: int
    destination: Node
    message: Message


class LogRead(NamedTuple):
    """The records that an answer is to be filled with."""

    offset: int
    max_bytes: int


class SnapshotRead(NamedTuple):
    """The part of a snapshot that an answer is to be filled with."""

    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class Answer(NamedTuple):
    request_id: int
    message: Message
    read: LogRead | SnapshotRead | None = None


class SnapshotChunk(NamedTuple):
    """A part of a snapshot that came from the leader. After the last one the snapshot takes the place of the log."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes
    is_last: bool


class DiskWork(NamedTuple):
    """First cut the log, then append; or write a part of a snapshot."""

    truncate_to: int | None = None
    batches: bytes = b""
    chunk: SnapshotChunk | None = None


class Leadership(NamedTuple):
    """Who leads the epoch; `start_offset` is where the epoch begins if it is this replica, and None otherwise."""

    leader_id: int | None
    epoch: int
    start_offset: int | None = None


class Ready(NamedTuple):
    """What the world must do, in this order."""

    quorum_state: QuorumState | None
    disk: DiskWork | None
    sends: Sequence[Send]
    answers: Sequence[Answer]
    high_watermark: int | None  # None: as it was
    leadership: Leadership | None  # None: as it was


class ParkedFetch(NamedTuple):
    """A fetch that waits for records, or for a higher high watermark than the replica knows."""

    request: Request
    offset: int
    high_watermark: int
    max_bytes: int
    deadline_ms: int
