"""The inputs and outputs of the core: its settings, the messages it receives, and the actions it returns.

Its one rule: these are plain values. `Ready` defines the order in which actions are executed.
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
    """This replica does not lead the epoch in question. What was proposed may or may not still be committed."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.NOT_LEADER_OR_FOLLOWER, message)


class ProposalTooLargeError(KafkaError):
    """The records do not fit into one batch, which is the unit of an atomic commit."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.RECORD_LIST_TOO_LARGE, message)


class TooManyProposalsError(KafkaError):
    """The disk does not keep up. Retry later."""

    def __init__(self, message: str) -> None:
        super().__init__(ErrorCode.THROTTLING_QUOTA_EXCEEDED, message)


class CommittedLogLostError(Exception):
    """A leader lacks records that are committed here. This is unrecoverable: the node must stop."""


@dataclass(frozen=True, slots=True)
class RaftConfig:
    """The identity of this replica, and Kafka's `controller.quorum.*` settings with their defaults."""

    node_id: int
    directory_id: Uuid
    cluster_id: str
    listener_name: str  # used between voters
    listeners: Endpoints = ()  # endpoints of this replica
    bootstrap_servers: tuple[tuple[str, int], ...] = ()
    joins: bool = False  # asks to become a voter while it is none: controller.quorum.auto.join.enable
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
    """An incoming request. The answer in Ready has the same id."""

    id: int
    message: Message
    version: int
    listener_name: str


class Response(NamedTuple):
    """The response to a request that was sent, or None if it failed."""

    correlation_id: int
    message: Message | None


class Send(NamedTuple):
    correlation_id: int
    destination: Node
    message: Message


class LogRead(NamedTuple):
    """The records to add to a response."""

    offset: int
    max_bytes: int


class SnapshotRead(NamedTuple):
    """The part of a snapshot to add to a response."""

    snapshot_id: OffsetAndEpoch
    position: int
    max_bytes: int


class Answer(NamedTuple):
    request_id: int
    message: Message
    read: LogRead | SnapshotRead | None = None


class SnapshotChunk(NamedTuple):
    """A part of a snapshot received from the leader. After the last one the snapshot replaces the log."""

    snapshot_id: OffsetAndEpoch
    position: int
    data: bytes
    is_last: bool


class DiskWork(NamedTuple):
    """Truncate the log, then append; or write a chunk of a snapshot."""

    truncate_to: int | None = None
    batches: bytes = b""
    chunk: SnapshotChunk | None = None


class Leadership(NamedTuple):
    """The leader of the epoch.

    `start_offset` is the start of the epoch if this replica leads it, and None otherwise.
    """

    leader_id: int | None
    epoch: int
    start_offset: int | None = None


class Ready(NamedTuple):
    """The actions to execute, in this order."""

    quorum_state: QuorumState | None
    disk: DiskWork | None
    sends: Sequence[Send]
    answers: Sequence[Answer]
    high_watermark: int | None  # None: unchanged
    leadership: Leadership | None  # None: unchanged


class ParkedFetch(NamedTuple):
    """A fetch that waits for records, or for a higher high watermark than its sender knows."""

    request: Request
    offset: int
    high_watermark: int
    max_bytes: int
    deadline_ms: int
